//! An open loop: views come when they come, whether or not those before them are answered.
//!
//! They are spread evenly over each second, and a view's latency runs from the moment at which it was to be sent. So one
//! that had to wait, for a connection or because the load itself was late, has waited, and a server that stands
//! still for a tenth of a second delays all views of that time and not one for each connection (the fault
//! that is called coordinated omission).
//!
//! The load shares the machine's cores with what it measures. One thread sleeps until views are due and hands them
//! to connections that are idle, the one that was busy last first; what waits for a connection does so in order.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};

use crate::harness::Result;
use crate::harness::block::Block;
use crate::harness::settings::Timing;
use crate::views::{MinuteNumber, Pattern, View};

/// Among which users are divided, as in the scenario. Each has connections of its own.
pub const PROCESSES: usize = 4;

/// Views that are due within this time of each other may be sent at once: a thread that woke for each of 20,000 a
/// second would take a core for itself.
const TICK: Duration = Duration::from_micros(500);

/// What comes in.
#[derive(Clone)]
pub struct Arrivals {
    /// Users in a second, all processes together.
    pub per_second: f64,
    pub timing: Timing,
    pub pattern: Pattern,
    pub seed: u64,
    /// What has not been sent so long after the last was due is not sent, and has failed.
    pub patience: Duration,
}

/// One connection, or what a bare driver has in its place.
pub trait Counter: Send + 'static {
    /// Prepares for the first view.
    fn ready(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Counts a view; true when it is acknowledged.
    fn count(&mut self, view: View) -> impl Future<Output = bool> + Send;
}

/// What clients were told of the views of a minute.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told {
    /// That they are counted.
    pub counted: u64,
    /// Something else, or nothing.
    pub failed: u64,
}

/// What has become of all that came in.
#[derive(Default)]
pub struct Answers {
    /// Within the window: acknowledged.
    counted: u64,
    /// Within the window: refused, not answered, or not even sent.
    failed: u64,
    /// Of views acknowledged within the window, in microseconds.
    latencies: Vec<u32>,
    /// How long after they were to be sent those of the window were sent, in microseconds, sorted.
    pub lateness: Vec<u32>,
    /// By minute, the warm-up included.
    pub told: HashMap<MinuteNumber, Told>,
}

impl Answers {
    fn note(&mut self, arrival: Arrival, sent: Instant, counted: bool) {
        let told = self.told.entry(arrival.view.minute).or_default();
        if counted {
            told.counted += 1;
        } else {
            told.failed += 1;
        }
        if !arrival.measured {
            return;
        }
        self.lateness.push(micros(sent - arrival.due));
        if counted {
            self.counted += 1;
            self.latencies.push(micros(arrival.due.elapsed()));
        } else {
            self.failed += 1;
        }
    }

    fn merge(&mut self, other: Self) {
        self.counted += other.counted;
        self.failed += other.failed;
        self.latencies.extend(other.latencies);
        self.lateness.extend(other.lateness);
        for (minute, told) in other.told {
            let all = self.told.entry(minute).or_default();
            all.counted += told.counted;
            all.failed += told.failed;
        }
    }

    /// The window as a block, its latencies sorted.
    pub fn block(&self, window: Duration) -> Block {
        Block::of(self.counted, self.failed, self.latencies.clone(), window)
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

/// A view that is due.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    view: View,
    due: Instant,
    measured: bool,
}

/// Where a process's connections get their views.
#[derive(Default)]
struct Line {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Views without a connection.
    waiting: VecDeque<Arrival>,
    /// Connections without a view, the one that was busy last at the end.
    idle: Vec<oneshot::Sender<Arrival>>,
    /// Set when no more will come: when to stop sending.
    until: Option<Instant>,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand(&self, arrival: Arrival) {
        let mut state = self.state();
        // None is dropped before the end.
        match state.idle.pop() {
            Some(idle) => drop(idle.send(arrival)),
            None => state.waiting.push_back(arrival),
        }
    }

    fn close(&self, patience: Duration) {
        let mut state = self.state();
        state.until = Some(Instant::now() + patience);
        state.idle.clear();
    }

    /// The next view; `None` when there will be no more.
    async fn next(&self) -> Option<Arrival> {
        let coming = {
            let mut state = self.state();
            match (state.waiting.front(), state.until) {
                (_, Some(until)) if Instant::now() > until => return None,
                (Some(_), _) => return state.waiting.pop_front(),
                (None, Some(_)) => return None,
                (None, None) => {
                    let (sender, coming) = oneshot::channel();
                    state.idle.push(sender);
                    coming
                }
            }
        };
        coming.await.ok()
    }
}

/// Sends what comes in through these connections, in the runtime that calls; an element of `counters` is a
/// process.
pub async fn run<C: Counter>(counters: Vec<Vec<C>>, arrivals: Arrivals) -> Result<Answers> {
    let lines: Vec<Arc<Line>> = counters.iter().map(|_| Arc::default()).collect();
    let mut getting_ready = JoinSet::new();
    for (process, counters) in counters.into_iter().enumerate() {
        for mut counter in counters {
            getting_ready.spawn(async move { counter.ready().await.map(|()| (process, counter)) });
        }
    }
    let mut connections = JoinSet::new();
    for ready in getting_ready.join_all().await {
        let (process, counter) = ready?;
        connections.spawn(connection(counter, Arc::clone(&lines[process])));
    }
    let clock = lines.clone();
    spawn_blocking(move || send_in_time(&clock, &arrivals)).await?;
    let mut all = Answers::default();
    for answers in connections.join_all().await {
        all.merge(answers);
    }
    for line in lines {
        all.failed += line.state().waiting.iter().filter(|arrival| arrival.measured).count() as u64;
    }
    all.lateness.sort_unstable();
    Ok(all)
}

async fn connection<C: Counter>(mut counter: C, line: Arc<Line>) -> Answers {
    let mut answers = Answers::default();
    while let Some(arrival) = line.next().await {
        let sent = Instant::now();
        let counted = counter.count(arrival.view).await;
        answers.note(arrival, sent, counted);
    }
    answers
}

/// Hands views over as they come due, to one process after the other, and then closes the lines.
fn send_in_time(lines: &[Arc<Line>], arrivals: &Arrivals) {
    wake_in_time();
    let Arrivals { per_second, timing, pattern, seed, patience } = arrivals;
    let mut rng = StdRng::seed_from_u64(*seed);
    let count = |duration: Duration| (duration.as_secs_f64() * per_second).round() as u64;
    let (warm_up, all) = (count(timing.warm_up), count(timing.warm_up + timing.measured));
    // Up to 2,000 views a second it wakes for each.
    let least = if 1.0 / per_second < TICK.as_secs_f64() { TICK } else { Duration::ZERO };
    let began = Instant::now();
    for number in 0..all {
        let due = began + Duration::from_secs_f64(number as f64 / per_second);
        let now = Instant::now();
        if now < due {
            sleep((due - now).max(least));
        }
        let measured = number >= warm_up;
        let view = pattern.view(number, measured, &mut rng);
        lines[number as usize % lines.len()].hand(Arrival { view, due, measured });
    }
    lines.iter().for_each(|line| line.close(*patience));
}

/// Lets this thread be woken when it asked to be, and not up to 50 microseconds later, which is the system's habit.
fn wake_in_time() {
    if let Ok(path) = std::fs::read_link("/proc/thread-self")
        && let Some(thread) = path.file_name()
    {
        // Where it may not, it is woken later: that is in the latencies, and in `lateness`.
        std::fs::write(Path::new("/proc").join(thread).join("timerslack_ns"), "1").ok();
    }
}
