//! The limits of all clients, and the classes of requests that are limited separately.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::http::HeaderValue;
use pagebucket_model::metric::{RATE_CLIENTS, RATE_LIMITED};

use super::balances::{Balances, Short};
use crate::admission::client::Client;
use crate::problem::{Problem, ProblemKind};

/// What a bucket holds unless the operator chooses: what is refilled in this time.
const BURST: Duration = Duration::from_secs(10);

/// The largest bucket.
const LARGEST: u32 = 100_000;

/// What is counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Requests that store or count something.
    Appends,
    /// Requests that read.
    Reads,
    /// Uploads and exports: their beginnings.
    Streams,
    /// Tokens and keys that have to be verified.
    SignIn,
}

impl Class {
    /// All classes, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Appends, Self::Reads, Self::Streams, Self::SignIn];

    /// The name of the class: of its policy in `RateLimit-Policy`, and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Appends => "appends",
            Self::Reads => "reads",
            Self::Streams => "streams",
            Self::SignIn => "sign-in",
        }
    }
}

/// The limits of all clients, the same for each class.
#[derive(Debug)]
pub struct RateLimits {
    of_class: [(Balances, HeaderValue); Class::ALL.len()],
}

impl RateLimits {
    /// A client may use these units `per` second, minute or hour. A full bucket holds `burst` units, at most
    /// 100,000. Every bucket is full.
    pub fn new(units: NonZeroU32, per: Duration, burst: Option<NonZeroU32>) -> Self {
        let in_burst = (BURST.as_nanos() * u128::from(units.get()) / per.as_nanos()) as u32;
        let burst = burst.or(NonZeroU32::new(in_burst)).unwrap_or(NonZeroU32::MIN);
        let burst = burst.min(NonZeroU32::MIN.saturating_add(LARGEST - 1));
        let of_class = Class::ALL.map(|class| {
            let balances = Balances::new(per / units.get(), burst);
            let window = seconds(balances.interval * burst.get());
            let policy = format!("\"{}\";q={burst};w={window}", class.name());
            (balances, HeaderValue::try_from(policy).expect("words of ours, and numbers"))
        });
        Self { of_class }
    }

    /// Takes a unit from the bucket of the address of a request, for a token or key that has to be verified,
    /// or for a refusal: both cost the service time, and the client is not known.
    ///
    /// # Errors
    /// The bucket is empty.
    pub fn charge_sign_in(&self, address: &Client) -> Result<(), Problem> {
        let taken = self.balances(Class::SignIn).take(address, NonZeroU32::MIN, Instant::now());
        taken.map(drop).map_err(|short| refusal(Class::SignIn, short))
    }

    /// Updates the gauges.
    pub fn measure(&self) {
        for class in Class::ALL {
            let clients = self.balances(class).clients();
            metrics::gauge!(RATE_CLIENTS, "class" => class.name()).set(clients as f64);
        }
    }

    pub(crate) fn balances(&self, class: Class) -> &Balances {
        &self.of_class[class as usize].0
    }

    /// The item of `RateLimit-Policy`.
    pub(crate) fn policy(&self, class: Class) -> &HeaderValue {
        &self.of_class[class as usize].1
    }
}

/// Whole seconds, rounded up.
pub(crate) fn seconds(time: Duration) -> u32 {
    u32::try_from(time.as_nanos().div_ceil(1_000_000_000)).unwrap_or(u32::MAX)
}

/// Counts a refusal. The problem of it.
pub(crate) fn refusal(class: Class, short: Short) -> Problem {
    metrics::counter!(RATE_LIMITED, "class" => class.name()).increment(1);
    let what = match class {
        Class::Appends => "Too many appends",
        Class::Reads => "Too many reads",
        Class::Streams => "Too many uploads and exports",
        Class::SignIn => "Too many new tokens or API keys",
    };
    let seconds = seconds(short.wait).max(1);
    let detail = format!("{what} from this client. Retry in {seconds} s.");
    Problem::new(ProblemKind::TooManyRequests, detail).retried_after(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(units: u32, per: u64, burst: Option<u32>) -> RateLimits {
        let (units, burst) = (NonZeroU32::new(units).unwrap(), burst.and_then(NonZeroU32::new));
        RateLimits::new(units, Duration::from_secs(per), burst)
    }

    #[test]
    fn a_burst_is_ten_seconds_worth() {
        for (units, per, burst, policy) in [
            (100, 1, None, "\"reads\";q=1000;w=10"),
            (100, 1, Some(150), "\"reads\";q=150;w=2"),
            (90, 60, None, "\"reads\";q=15;w=10"),
            (1, 3600, None, "\"reads\";q=1;w=3600"),
            (1_000_000, 1, None, "\"reads\";q=100000;w=1"),
            (1, 3600, Some(100_000), "\"reads\";q=100000;w=360000000"),
        ] {
            assert_eq!(limits(units, per, burst).policy(Class::Reads), policy);
        }
    }

    #[test]
    fn classes_are_found_by_their_place() {
        for (place, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class as usize, place);
        }
    }

    #[test]
    fn tokens_are_counted_by_address() {
        let limits = limits(1, 3600, Some(2));
        let from = |address: &str| limits.charge_sign_in(&Client::Address(address.parse().unwrap()));
        assert!(from("192.0.2.1").is_ok() && from("192.0.2.1").is_ok());
        let problem = from("192.0.2.1").unwrap_err();
        assert_eq!(problem.in_line()["status"], 429);
        assert!(from("192.0.2.2").is_ok());
        assert_eq!(limits.balances(Class::SignIn).clients(), 2);
        assert_eq!(limits.balances(Class::Reads).clients(), 0);
    }
}
