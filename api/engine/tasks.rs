//! Tasks that live longer than a request. A panic ends such a task alone: the log and a metric say so, and
//! callers that wait get an error.
//!
//! What a task has is dropped when it ends, and that tells those who wait for it (`Door` in `live/room.rs`).
//! The next request that needs such a task starts another one. A task that lasts as long as the store is
//! started again ([`KeptTasks::keep`]).

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use pagebucket_model::metric::TASK_PANICS;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// How long after a panic a task is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts a task by its name. It has finished also if it has panicked.
pub fn start(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(caught(name, work).map(drop))
}

/// Does a step of a task. Returns whether it has panicked.
pub(crate) fn step(name: &'static str, work: impl FnOnce()) -> bool {
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(work)).is_err();
    if panicked {
        report(name);
    }
    panicked
}

/// Runs `work`. Returns whether it has panicked.
async fn caught(name: &'static str, work: impl Future<Output = ()>) -> bool {
    let panicked = AssertUnwindSafe(work).catch_unwind().await.is_err();
    if panicked {
        report(name);
    }
    panicked
}

fn report(name: &'static str) {
    metrics::counter!(TASK_PANICS, "task" => name).increment(1);
    tracing::error!(task = name, "a task has panicked: a fault of the program");
}

/// The tasks of a store, and of what serves it, that last as long as it. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct KeptTasks {
    /// By name, how many do not run because of a panic.
    down: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl KeptTasks {
    /// Runs what `work` makes, and again after a panic, until it ends or the handle is dropped.
    pub fn keep<W>(
        &self,
        name: &'static str,
        mut work: impl FnMut() -> W + Send + 'static,
    ) -> AbortOnDropHandle<()>
    where
        W: Future<Output = ()> + Send + 'static,
    {
        let down = Arc::clone(&self.down);
        AbortOnDropHandle::new(tokio::spawn(async move {
            while caught(name, work()).await {
                *down.lock().entry(name).or_default() += 1;
                sleep(PAUSE).await;
                down.lock().entry(name).and_modify(|count| *count -= 1);
            }
        }))
    }

    /// The name of a task that does not run because of a panic.
    pub fn down(&self) -> Option<&'static str> {
        self.down.lock().iter().find(|(_, count)| **count > 0).map(|(name, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn a_kept_task_runs_again_after_a_panic() {
        let (tasks, (began, mut begins)) = (KeptTasks::default(), unbounded_channel());
        let mut count = 0;
        let task = tasks.keep("of-the-test", move || {
            count += 1;
            let (began, count) = (began.clone(), count);
            async move {
                began.send(count).expect("the test goes on");
                assert!(count > 2, "as a bug would");
            }
        });
        for expected in 1..=3 {
            assert_eq!(begins.recv().await, Some(expected));
            assert_eq!(tasks.down(), (expected < 3).then_some("of-the-test"));
        }
        task.await.expect("it has ended by itself");
        assert_eq!(tasks.down(), None);
    }

    #[tokio::test]
    async fn a_step_that_panics_says_so() {
        assert!(!step("of-the-test", || {}));
        assert!(step("of-the-test", || panic!("as a bug would")));
    }
}
