//! What a run ran on.

use std::process::Command;
use std::thread::available_parallelism;

use pagebucket::domain::Clock;

/// As it is at the start of a run.
pub struct Machine {
    pub date: String,
    pub cores: usize,
    pub processor: String,
    pub memory_gib: f64,
    pub kernel: String,
    /// Of the last minute, before anything was begun: above a tenth of the cores, somebody else was at work.
    pub load: String,
    pub rustc: String,
    pub commit: String,
}

impl Machine {
    pub fn look() -> Self {
        let memory = field("/proc/meminfo", "MemTotal");
        let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
        Self {
            date: Clock::system().now().to_string(),
            cores: available_parallelism().map_or(0, usize::from),
            processor: field("/proc/cpuinfo", "model name"),
            memory_gib: kib / 1024.0 / 1024.0,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
            rustc: output("rustc", &["--version"]),
            commit: output("git", &["describe", "--always", "--dirty"]),
        }
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// What follows `name` and a colon.
fn field(path: &str, name: &str) -> String {
    let text = read(path);
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.unwrap_or("unknown").trim().to_owned()
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    text.map_or_else(|| "unknown".to_owned(), |text| String::from_utf8_lossy(&text).trim().to_owned())
}
