//! What is counted: a view of one of some pages, in a minute and a second of it.

use pagebucket::domain::Instant;
use rand::Rng;
use rand::rngs::StdRng;

use crate::harness::Result;

/// Pages in most workloads: the scenario's "series".
pub const PAGES: u32 = 1_000;

/// 2014-01-01T10:00Z: when the views of a benchmark begin, whatever the clock says.
const FIRST_MINUTE: i64 = 1_388_570_400_000 / 60_000;

/// A minute of the run: 0 is the first.
pub type MinuteNumber = u32;

#[derive(Clone, Copy)]
pub struct View {
    pub page: u32,
    pub minute: MinuteNumber,
    pub second: u8,
}

/// Which page a view is of, and when.
#[derive(Clone)]
pub enum Pattern {
    /// A random one of so many pages, in a random second of one minute. Views before the window are in another.
    Random { pages: u32, warm_up: MinuteNumber, measured: MinuteNumber },
    /// Each view in a minute of its page's that has none yet: [`PAGES`] in one minute and then the next ones.
    First { from: MinuteNumber },
}

impl Pattern {
    /// The view with this number, from 0.
    pub fn view(&self, number: u64, measured: bool, rng: &mut StdRng) -> View {
        let second = rng.random_range(0..60);
        match self {
            Self::Random { pages, warm_up, measured: minute } => View {
                page: rng.random_range(1..=*pages),
                minute: if measured { *minute } else { *warm_up },
                second,
            },
            Self::First { from } => View {
                page: (number % u64::from(PAGES)) as u32 + 1,
                minute: from + (number / u64::from(PAGES)) as u32,
                second,
            },
        }
    }
}

impl View {
    pub fn at(self) -> Result<Instant> {
        Ok(Instant::from_millis(start(self.minute) + i64::from(self.second) * 1000)?)
    }

    /// As the API has it.
    pub fn json(self) -> Result<String> {
        Ok(format!(r#"{{"path":"{}","at":"{}"}}"#, path(self.page), self.at()?))
    }
}

/// The name of a page.
pub fn path(page: u32) -> String {
    format!("/page/{page}")
}

/// When a minute begins, in milliseconds since 1970.
pub fn start(minute: MinuteNumber) -> i64 {
    (FIRST_MINUTE + i64::from(minute)) * 60_000
}
