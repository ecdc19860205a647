//! How many rows may be sent that have no outcome yet. Rows that were sent cannot be called back: after an
//! interrupt their outcomes are awaited. So there are as many as the server answers in about a second.

use std::time::Duration;

use tokio::time::Instant;

/// The least number of rows: enough to keep a server busy until its rate is known.
const LEAST: usize = 1_000;

/// The greatest number of rows.
const MOST: usize = 16_000;

/// How long the server's answers are counted.
const COUNTED: Duration = Duration::from_secs(1);

/// How many rows may be without an outcome.
pub(crate) struct SendWindow {
    most: usize,
    /// The outcomes since `since`.
    answered: usize,
    since: Instant,
}

impl SendWindow {
    /// Before the server has answered.
    pub(crate) fn from(now: Instant) -> Self {
        Self { most: LEAST, answered: 0, since: now }
    }

    /// The greatest number of rows without an outcome.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// An outcome has come.
    pub(crate) fn answered(&mut self, now: Instant) {
        self.answered += 1;
        let counted = now - self.since;
        if counted >= COUNTED {
            let in_a_second = self.answered as f64 / counted.as_secs_f64();
            *self = Self { most: (in_a_second as usize).clamp(LEAST, MOST), ..Self::from(now) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_as_many_as_a_second_has_brought() {
        let mut now = Instant::now();
        let mut window = SendWindow::from(now);
        for (seconds, outcomes, most) in [
            (1, 1, LEAST),
            (1, 5_000, 5_000),
            (2, 5_000, 2_500),
            (1, 100_000, MOST),
            (30, 100_000, 3_333),
            (9, 1, LEAST),
        ] {
            (1..outcomes).for_each(|_| window.answered(now));
            now += Duration::from_secs(seconds);
            window.answered(now);
            assert_eq!(window.most(), most, "{outcomes} in {seconds} s");
        }
    }
}
