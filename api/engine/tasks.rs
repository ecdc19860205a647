//! Tasks for which others wait. What a task has is dropped when it ends, also by a panic, and that tells those who wait.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use pagebucket_model::metric::TASK_PANICS;

/// Starts a task by its name. A panic ends it alone, which a metric and the log say; nothing starts it again here.
pub(crate) fn start(name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(async move {
        if AssertUnwindSafe(work).catch_unwind().await.is_err() {
            metrics::counter!(TASK_PANICS, "task" => name).increment(1);
            tracing::error!(task = name, "a task has panicked: a fault of the program");
        }
    });
}
