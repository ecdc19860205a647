//! What is counted: a view of one of some pages, in a minute and a second of it.

use pagebucket_model::domain::Instant;
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

/// Views of pages 1 to `pages`, each of a random one in a random second of a minute. Views before the window
/// are in another minute.
#[derive(Clone)]
pub struct Pattern {
    pub pages: u32,
    pub warm_up: MinuteNumber,
    pub measured: MinuteNumber,
}

impl Pattern {
    pub fn view(&self, measured: bool, rng: &mut StdRng) -> View {
        let minute = if measured { self.measured } else { self.warm_up };
        View { page: rng.random_range(1..=self.pages), minute, second: rng.random_range(0..60) }
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
