//! An open loop: views come when they come, whether or not those before them are answered.
//!
//! They are spread evenly over each second, and a view's latency runs from the moment at which it was to be
//! sent. So one that had to wait, for a connection or because the load itself was late, has waited, and a
//! server that stands still for a tenth of a second delays all views of that time and not one for each
//! connection (the fault that is called coordinated omission).
//!
//! The load shares the machine's cores with what it measures. One thread sleeps until views are due and hands
//! them to connections that are idle, the one that was busy last first; what waits for a connection does so
//! in order.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};

use super::ledger::Ledger;
use super::upsert::{COUNTING, Upserts};
use super::view::{Pattern, View, path, start};
use crate::harness::{Block, Client, Result, Timing, micros};

/// Among which users are divided, as in the scenario. Each has connections of its own.
pub const PROCESSES: usize = 4;

/// Views that are due within this time of each other may be sent at once: a thread that woke for each of
/// 20,000 a second would take a core for itself.
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

/// What counts one view at a time.
pub enum Counter {
    /// A connection to a server.
    Http(Client),
    Driver(Box<Upserts>),
}

impl Counter {
    /// Connects. A driver does that by itself, when there is no connection for a command: in the warm-up.
    async fn ready(&mut self) -> std::io::Result<()> {
        if let Self::Http(client) = self { client.connect().await } else { Ok(()) }
    }

    /// True when the view is acknowledged.
    async fn count(&mut self, view: View) -> bool {
        match self {
            Self::Http(client) => {
                let Ok(json) = view.json() else { return false };
                client.post(COUNTING, &json).await.is_ok_and(|answer| answer.status == 204)
            }
            Self::Driver(upserts) => {
                upserts.count(&path(view.page), start(view.minute), view.second, 1).await.is_ok()
            }
        }
    }
}

/// What has become of all that came in.
#[derive(Default)]
pub struct Answers {
    /// The window; views that were not even sent have failed.
    pub block: Block,
    /// How long after they were to be sent those of the window were sent, in microseconds.
    pub lateness: Vec<u32>,
    /// The warm-up included.
    pub told: Ledger,
}

/// A view that is due.
struct Arrival {
    view: View,
    due: Instant,
    measured: bool,
}

/// Where a process's connections get their views.
#[derive(Default)]
struct Line {
    /// Views without a connection.
    waiting: VecDeque<Arrival>,
    /// Connections without a view, the one that was busy last at the end.
    idle: Vec<oneshot::Sender<Arrival>>,
    /// Set when no more will come: when to stop sending.
    until: Option<Instant>,
}

fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next view; `None` when there will be no more.
async fn next(line: &Mutex<Line>) -> Option<Arrival> {
    let coming = {
        let mut line = lock(line);
        if line.until.is_some_and(|until| Instant::now() > until) {
            return None;
        }
        if let Some(arrival) = line.waiting.pop_front() {
            return Some(arrival);
        }
        let (sender, coming) = oneshot::channel();
        // After the end it is dropped here, and nothing comes.
        if line.until.is_none() {
            line.idle.push(sender);
        }
        coming
    };
    coming.await.ok()
}

/// Sends what comes in through these counters, in the runtime that calls; an element of `counters` is a
/// process.
pub async fn run(counters: Vec<Vec<Counter>>, arrivals: Arrivals) -> Result<Answers> {
    let lines: Vec<Arc<Mutex<Line>>> = counters.iter().map(|_| Arc::default()).collect();
    let mut getting_ready = JoinSet::new();
    for (counters, line) in counters.into_iter().zip(&lines) {
        for mut counter in counters {
            let line = Arc::clone(line);
            getting_ready.spawn(async move { counter.ready().await.map(|()| connection(counter, line)) });
        }
    }
    let mut connections = JoinSet::new();
    for ready in getting_ready.join_all().await {
        connections.spawn(ready?);
    }
    let (clock, window) = (lines.clone(), arrivals.timing.measured);
    spawn_blocking(move || send_in_time(&clock, &arrivals)).await?;
    let mut all = Answers::default();
    for answers in connections.join_all().await {
        all.block.add(answers.block);
        all.lateness.extend(answers.lateness);
        all.told.add(answers.told);
    }
    for line in lines {
        all.block.measured_failed +=
            lock(&line).waiting.iter().filter(|arrival| arrival.measured).count() as u64;
    }
    all.block.length = window;
    Ok(all)
}

async fn connection(mut counter: Counter, line: Arc<Mutex<Line>>) -> Answers {
    let mut answers = Answers::default();
    while let Some(Arrival { view, due, measured }) = next(&line).await {
        let sent = Instant::now();
        let counted = counter.count(view).await;
        answers.told.note(view.minute, counted);
        if measured {
            answers.lateness.push(micros(sent - due));
            answers.block.count(1, due.elapsed(), counted);
        }
    }
    answers
}

/// Hands views over as they come due, to one process after the other, and then closes the lines.
fn send_in_time(lines: &[Arc<Mutex<Line>>], arrivals: &Arrivals) {
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
        let view = pattern.view(measured, &mut rng);
        let mut line = lock(&lines[number as usize % lines.len()]);
        let arrival = Arrival { view, due, measured };
        // No idle connection is dropped before the end.
        match line.idle.pop() {
            Some(idle) => drop(idle.send(arrival)),
            None => line.waiting.push_back(arrival),
        }
    }
    for mut line in lines.iter().map(|line| lock(line)) {
        line.until = Some(Instant::now() + *patience);
        line.idle.clear();
    }
}

/// Lets the system wake this thread when it asked for it, and not up to 50 microseconds later, which is the
/// default.
fn wake_in_time() {
    if let Ok(path) = std::fs::read_link("/proc/thread-self")
        && let Some(thread) = path.file_name()
    {
        // Where that is not allowed, it wakes later: that is in the latencies, and in `lateness`.
        std::fs::write(Path::new("/proc").join(thread).join("timerslack_ns"), "1").ok();
    }
}
