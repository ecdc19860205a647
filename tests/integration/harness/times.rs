//! What the tests take: the time of each, and its processor time where no other test runs beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::mongod;

/// A tick of the counters in `/proc`, in milliseconds, on every Linux that Rust knows.
const TICK: u64 = 10;

/// The number of tests that are named at the end because they took longest.
const SLOWEST: usize = 10;

static TESTS: AtomicUsize = AtomicUsize::new(0);
static ONE_BY_ONE: AtomicBool = AtomicBool::new(false);
/// What the process has taken before the first test: a shell that becomes this program leaves it what its
/// commands took.
static BEFORE: OnceLock<Duration> = OnceLock::new();

static ENDED: Mutex<Vec<Ended>> = Mutex::new(Vec::new());

/// The processor time of each mongod that was seen, by its process and the start of that, also after its end.
static MONGODS: Mutex<BTreeMap<(u64, u64), Duration>> = Mutex::new(BTreeMap::new());

struct Ended {
    name: String,
    time: Duration,
    processor: Option<Duration>,
}

/// A test that runs; it has ended with this value, also when it fails.
pub struct Running {
    name: String,
    began: Instant,
    processor: Option<Duration>,
}

/// So many tests will run, with others beside them or not.
pub fn expect(tests: usize, one_by_one: bool) {
    TESTS.store(tests, Ordering::Relaxed);
    ONE_BY_ONE.store(one_by_one, Ordering::Relaxed);
    BEFORE.get_or_init(own_processor);
}

impl Running {
    pub fn begin(name: String) -> Self {
        let processor = ONE_BY_ONE.load(Ordering::Relaxed).then(|| own_processor() + mongods_processor());
        Self { name, began: Instant::now(), processor }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let time = self.began.elapsed();
        let processor = self.processor.map(|before| (own_processor() + mongods_processor()) - before);
        let mut ended = locked(&ENDED);
        ended.push(Ended { name: self.name.clone(), time, processor });
        let progress = format!("[{}/{}] {}", ended.len(), TESTS.load(Ordering::Relaxed), seconds(time));
        // The runner has begun the line of a test that runs alone; the lines of others come after their end.
        match processor {
            Some(processor) => print!("{progress}, {} of processor time, ", seconds(processor)),
            None => println!("{progress} {}", self.name),
        }
    }
}

/// The closing lines: the whole processor time, and what took longest.
pub fn summary() -> String {
    let own = own_processor() - BEFORE.get().copied().unwrap_or_default();
    let (own, mongods) = (seconds(own), seconds(mongods_processor()));
    let mut ended = locked(&ENDED);
    ended.sort_unstable_by_key(|test| std::cmp::Reverse(test.time));
    let mut lines = format!(
        "processor time: {own} of the tests and their programs, {mongods} of mongods in containers\n"
    );
    lines += &format!("slowest: {}", longest(ended.iter().map(|test| (test.time, &*test.name))));
    ended.sort_unstable_by_key(|test| std::cmp::Reverse(test.processor));
    if ended.iter().any(|test| test.processor.is_some()) {
        let busiest = ended.iter().filter_map(|test| Some((test.processor?, &*test.name)));
        lines += &format!("\nmost processor time: {}", longest(busiest));
    }
    lines
}

fn longest<'a>(tests: impl Iterator<Item = (Duration, &'a str)>) -> String {
    let named = tests.take(SLOWEST).map(|(took, name)| format!("{name} {}", seconds(took)));
    named.collect::<Vec<_>>().join(", ")
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Of this process, and of the programs that it has started and that have ended.
fn own_processor() -> Duration {
    counters("self").map_or(Duration::ZERO, |counters| ticks(&counters[11..15]))
}

/// Of the mongods in containers of this run. It sees them only where the container engine runs on this
/// machine.
fn mongods_processor() -> Duration {
    see_mongods();
    locked(&MONGODS).values().sum()
}

/// Notes the processor time of the mongods that run. What one takes after the last look is not counted, so it
/// is to be seen before it is removed.
pub fn see_mongods() {
    let own = u64::from(std::process::id());
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = process.file_name().to_str().and_then(|name| name.parse::<u64>().ok()) else {
            continue;
        };
        let is_ours = || {
            let line = std::fs::read(process.path().join("cmdline")).ok()?;
            let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
            let port = words.windows(2).find(|pair| pair[0] == "--port")?[1].parse().ok()?;
            Some(words[0].ends_with("mongod") && mongod::is_ours(port))
        };
        if is_ours() != Some(true) {
            continue;
        }
        // One that this process has started itself is among its programs.
        if let Some(counters) = counters(&id.to_string()).filter(|counters| counters[1] != own) {
            locked(&MONGODS).insert((id, counters[19]), ticks(&counters[11..13]));
        }
    }
}

/// What `/proc` counts of a process, from its state on (proc(5): field 3, which is no number and 0 here).
fn counters(process: &str) -> Option<Vec<u64>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    let counters: Vec<_> = fields.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    (counters.len() > 19).then_some(counters)
}

fn ticks(counters: &[u64]) -> Duration {
    Duration::from_millis(counters.iter().sum::<u64>() * TICK)
}

/// A test that failed has left nothing half done here.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
