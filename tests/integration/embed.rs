//! The engine in a program of one's own: the example of the README.

#[path = "../../examples/embed.rs"]
#[allow(dead_code, reason = "its `main` takes arguments")]
mod example;

use crate::harness::{Setup, shared, test};

#[test]
async fn the_example_runs() {
    let connection = Setup::on(shared().await).connection;
    for _ in 0..2 {
        example::run(&connection.uri, &connection.database).await.expect("no failure, and no finding");
    }
}
