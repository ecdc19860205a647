//! Limits on the number of requests of one kind that are under way at once. One client has at most a quarter
//! of the permits, so that it keeps no others out. A few requests of each client may wait for a permit: a
//! browser sends all that a page shows at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hashlink::DefaultHashBuilder;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use crate::problem::{Problem, ProblemKind};

/// Into how many shares the permits are divided. One client has at most one of them.
const SHARES: usize = 4;

/// The most requests of one client that wait for a permit.
const MOST_WAITING: usize = 16;

/// How long a request waits for a permit.
const PATIENCE: Duration = Duration::from_secs(5);

/// The permits for requests of one kind. Clones share them.
#[derive(Debug, Clone)]
pub struct Permits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many there are.
    most: usize,
    /// How many of them one client may take.
    most_of_one: usize,
    /// What takes the permits, in the plural.
    what: &'static str,
    taken: Mutex<Taken>,
    /// Tells those that wait that a permit is free.
    freed: Notify,
}

/// The permits that are taken.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// By each client that has any. There are few at once, so the hash need not withstand chosen names, only
    /// be fast.
    of: HashMap<Client, usize, DefaultHashBuilder>,
    /// How many requests of a client wait.
    waiting: HashMap<Client, usize, DefaultHashBuilder>,
}

/// One permit, taken until it is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    client: Client,
}

/// The permit of a request whose answer outlives its handler.
pub(crate) type LongPermit = Arc<Permit>;

impl Permits {
    /// `most` permits for `what`, in the plural. One client may take a quarter of them, and at least one.
    pub fn new(most: usize, what: &'static str) -> Self {
        let most_of_one = (most / SHARES).max(1);
        Self(Arc::new(Shared { most, most_of_one, what, taken: Mutex::default(), freed: Notify::new() }))
    }

    /// Takes a permit for a client.
    ///
    /// # Errors
    /// All permits are taken, or the client has as many as it may have.
    pub fn take(&self, client: Client) -> Result<Permit, Problem> {
        let Shared { most, most_of_one, what, taken, .. } = &*self.0;
        let refused = |detail: String| Err(Problem::new(ProblemKind::Overloaded, detail));
        let mut taken = taken.lock();
        if taken.all == *most {
            return refused(format!("Too many {what} are under way."));
        }
        let of_client = taken.of.entry(client.clone()).or_default();
        if of_client == most_of_one {
            return refused(format!(
                "Too many {what} of this client are under way: it may have {most_of_one} at once."
            ));
        }
        *of_client += 1;
        taken.all += 1;
        Ok(Permit { permits: self.clone(), client })
    }

    /// Takes a permit for a client, and waits a short time until one is free.
    ///
    /// # Errors
    /// None became free in time, or as many requests of the client wait as may.
    pub async fn take_soon(&self, client: Client) -> Result<Permit, Problem> {
        let until = Instant::now() + PATIENCE;
        let mut waiting = None;
        loop {
            // Before the permits are looked at, so that none that becomes free after that is missed.
            let mut freed = std::pin::pin!(self.0.freed.notified());
            freed.as_mut().enable();
            let refused = match self.take(client.clone()) {
                Err(refused) => refused,
                taken => return taken,
            };
            if waiting.is_none() {
                waiting = WaitingRequest::begin(self, &client);
            }
            if waiting.is_none() || timeout_at(until, freed).await.is_err() {
                return Err(refused);
            }
        }
    }
}

/// A request that waits for a permit, until it is dropped.
struct WaitingRequest<'a>(&'a Permits, Client);

impl<'a> WaitingRequest<'a> {
    /// `None` if too many wait.
    fn begin(permits: &'a Permits, client: &Client) -> Option<Self> {
        let mut taken = permits.0.taken.lock();
        let waiting = taken.waiting.entry(client.clone()).or_default();
        if *waiting == MOST_WAITING {
            return None;
        }
        *waiting += 1;
        Some(Self(permits, client.clone()))
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        count_down(&mut self.0.0.taken.lock().waiting, &self.1);
    }
}

/// Counts one less. Only what is not 0 takes memory.
fn count_down(counts: &mut HashMap<Client, usize, DefaultHashBuilder>, client: &Client) {
    if let Some(count) = counts.get_mut(client) {
        *count -= 1;
        if *count == 0 {
            counts.remove(client);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.0.taken.lock();
        taken.all -= 1;
        count_down(&mut taken.of, &self.client);
        drop(taken);
        self.permits.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Client {
        Client::Name(name.into())
    }

    fn refusal(permits: &Permits, name: &str) -> String {
        let problem = permits.take(client(name)).unwrap_err().in_line();
        assert_eq!((&problem["status"], &problem["type"]), (&503.into(), &"/problems#overloaded".into()));
        problem["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn one_client_has_a_quarter() {
        let permits = Permits::new(11, "visits");
        let take = |name: &str| permits.take(client(name));
        let of_ann = [take("ann").unwrap(), take("ann").unwrap()];
        let too_many = "Too many visits of this client are under way: it may have 2 at once.";
        assert_eq!(refusal(&permits, "ann"), too_many);
        let of_bob = take("bob").unwrap();
        // The name of a principal is no address.
        let address = Client::Address("192.0.2.1".parse().unwrap());
        let others = [permits.take(address).unwrap(), take("192.0.2.1").unwrap(), take("bob").unwrap()];
        drop((of_ann, of_bob));
        let again = [take("ann").unwrap(), take("ann").unwrap(), take("bob").unwrap()];
        assert_eq!((refusal(&permits, "ann"), refusal(&permits, "bob")), (too_many.into(), too_many.into()));
        drop((others, again));
        let taken = permits.0.taken.lock();
        assert!(taken.all == 0 && taken.of.is_empty(), "only clients with permits take memory: {taken:?}");
    }

    #[test]
    fn few_permits_are_one_for_each_client() {
        let permits = Permits::new(2, "visits");
        let taken = [permits.take(client("ann")).unwrap(), permits.take(client("bob")).unwrap()];
        assert_eq!(refusal(&permits, "ann"), "Too many visits are under way.");
        drop(taken);
        let _of_ann = permits.take(client("ann")).unwrap();
        assert!(refusal(&permits, "ann").contains("it may have 1 at once"));
    }

    /// Those of one client that are too many at once come one after the other, and only so many wait.
    #[tokio::test]
    async fn a_few_wait() {
        let permits = Permits::new(SHARES, "visits");
        let held = permits.take(client("ann")).unwrap();
        let mut visits = tokio::task::JoinSet::new();
        for _ in 0..=MOST_WAITING {
            let permits = permits.clone();
            visits.spawn(async move { permits.take_soon(client("ann")).await.is_ok() });
        }
        assert!(!visits.join_next().await.unwrap().unwrap(), "one too many does not wait");
        drop(held);
        assert!(visits.join_all().await.into_iter().all(|is_taken| is_taken));
        let taken = permits.0.taken.lock();
        assert!(taken.all == 0 && taken.of.is_empty() && taken.waiting.is_empty(), "{taken:?}");
    }
}
