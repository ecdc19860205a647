//! How long a test waits, and how.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than anything that a test waits for takes on a slow machine: only a failure waits for it.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `condition` holds, and fails the test when it does not in time.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
