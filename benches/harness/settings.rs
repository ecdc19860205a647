//! How much is run, from the environment.

use std::time::Duration;

use rand::random;

use super::Result;

/// Without these a run is the full one.
pub struct Settings {
    /// `QUICK=1`: fewer and shorter blocks, in under 3 minutes.
    pub quick: bool,
    /// `SEED`: decides the order of the blocks and the customers asked for. By chance unless given.
    pub seed: u64,
    /// `ROUNDS`: how many blocks each contender has in a workload.
    pub rounds: usize,
    /// `ONLY`: one stage, whose results are printed and not kept.
    pub only: Option<String>,
}

/// How long a block is.
#[derive(Clone, Copy)]
pub struct Timing {
    /// Under load, and not yet measured.
    pub warm_up: Duration,
    /// Measured.
    pub measured: Duration,
}

impl Settings {
    pub fn from_environment() -> Result<Self> {
        let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let quick = given("QUICK").is_some_and(|value| value != "0");
        Ok(Self {
            quick,
            seed: given("SEED").map_or_else(|| Ok(u64::from(random::<u32>())), |seed| seed.parse())?,
            rounds: given("ROUNDS").map_or(Ok(if quick { 3 } else { 7 }), |rounds| rounds.parse())?,
            only: given("ONLY"),
        })
    }

    /// Whether a stage is run.
    pub fn includes(&self, stage: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == stage)
    }

    /// Whether none of a benchmark's stages is run: the one asked for is another's.
    pub fn leaves_out(&self, stages: &[&str]) -> bool {
        self.only.as_deref().is_some_and(|only| !stages.contains(&only))
    }

    /// Of most workloads.
    pub fn timing(&self) -> Timing {
        let millis = Duration::from_millis;
        if self.quick {
            Timing { warm_up: millis(150), measured: millis(450) }
        } else {
            Timing { warm_up: millis(300), measured: millis(1500) }
        }
    }

    /// Of workloads with many blocks, of one connection each.
    pub fn short_timing(&self) -> Timing {
        let Timing { warm_up, measured } = self.timing();
        Timing { warm_up: warm_up / 5, measured: measured / 5 }
    }

    /// Of workloads in which a single request may take some tenths of a second: a block must hold several.
    pub fn long_timing(&self) -> Timing {
        let Timing { warm_up, measured } = self.timing();
        Timing { warm_up: warm_up * 2, measured: measured * 2 }
    }
}
