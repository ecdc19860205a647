//! How much is run, from the environment, and on which machine.

use std::process::Command;
use std::time::Duration;

use super::Result;

/// A run without any of these variables is the full one.
#[derive(Clone)]
pub struct Settings {
    /// `QUICK=1`: fewer and shorter blocks.
    pub quick: bool,
    /// `SEED`: decides the order of the blocks and the customers asked for. Random unless given.
    pub seed: u64,
    /// `ROUNDS`: how many blocks each contender has in a workload.
    pub rounds: usize,
    /// `ONLY`: one part, whose results are printed and not kept.
    pub only: Option<String>,
}

/// How long a block is.
#[derive(Clone, Copy)]
pub struct Timing {
    /// Under load, and not yet measured.
    pub warm_up: Duration,
    pub measured: Duration,
}

impl Settings {
    pub fn from_environment() -> Result<Self> {
        let given = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let quick = given("QUICK").is_some_and(|value| value != "0");
        Ok(Self {
            quick,
            seed: given("SEED").map_or_else(|| Ok(u64::from(rand::random::<u32>())), |seed| seed.parse())?,
            rounds: given("ROUNDS").map_or(Ok(if quick { 3 } else { 7 }), |rounds| rounds.parse())?,
            only: given("ONLY"),
        })
    }

    /// Whether a part is run.
    pub fn includes(&self, part: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == part)
    }

    /// `times` is 1 in most workloads, less in those with many blocks of one connection each, and more in
    /// those in which a single request may take some tenths of a second: a block must hold several.
    pub fn timing(&self, times: f64) -> Timing {
        let (warm_up, measured) = if self.quick { (150.0, 450.0) } else { (300.0, 1500.0) };
        Timing::millis((warm_up * times) as u64, (measured * times) as u64)
    }
}

impl Timing {
    pub fn millis(warm_up: u64, measured: u64) -> Self {
        Self { warm_up: Duration::from_millis(warm_up), measured: Duration::from_millis(measured) }
    }
}

/// A machine at the start of a run, as a line of the report. A load above a tenth of the cores means that
/// other processes were at work.
pub fn machine() -> String {
    let memory = field("/proc/meminfo", "MemTotal");
    let gib = memory.trim_end_matches(" kB").parse().unwrap_or(0.0) / 1024.0 / 1024.0;
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let (processor, kernel) = (field("/proc/cpuinfo", "model name"), read("/proc/sys/kernel/osrelease"));
    let (kernel, load) = (kernel.trim(), read("/proc/loadavg"));
    let load = load.split(' ').next().unwrap_or_default();
    format!("{cores} cores, {processor}, {gib:.1} GiB, Linux {kernel}; load {load} at the start")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// What follows `name` and a colon in a file of `/proc`.
pub fn field(path: &str, name: &str) -> String {
    let text = read(path);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.unwrap_or("unknown").trim().to_owned()
}

/// What a program prints.
pub fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.map_or_else(|| "unknown".to_owned(), |text| String::from_utf8_lossy(&text).trim().to_owned())
}
