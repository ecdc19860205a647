//! What a client may send that it should not, and the one answer that is decided for it.

mod bodies;
mod connections;
mod headers;
mod hosts;
mod parameters;
mod values;
mod versions;

use serde_json::{Value, json};

use crate::harness::{Answer, Client};

/// Words of the driver, the database, the framework and the machine: none of a client's business.
const NOT_FOR_CLIENTS: [&str; 14] = [
    "mongo",
    "E11000",
    "errmsg",
    "127.0.0.1",
    "axum",
    "hyper",
    "tower",
    "serde",
    "panicked",
    "unwrap",
    ".rs",
    "/root",
    "/work",
    "password",
];

/// A whole problem of this status and kind, without a word that is not for clients. Says for which
/// input where it is not.
#[track_caller]
fn refused(answer: &Answer, status: u16, slug: &str, input: &str) -> Value {
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, status, "{input}: {body}");
    let problem = answer.problem(status, slug);
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{input}");
    for word in NOT_FOR_CLIENTS {
        assert!(!body.contains(word), "{input}: {word:?} in {body}");
    }
    problem
}

/// The pointers of a problem's faults, in order.
fn pointers(problem: &Value) -> Vec<&str> {
    let errors = problem["errors"].as_array().expect("errors");
    assert!(
        errors.iter().all(|error| error["detail"].as_str().is_some_and(|text| !text.is_empty())),
        "{problem}"
    );
    errors.iter().map(|error| error["pointer"].as_str().expect("a pointer")).collect()
}

/// How many trades a customer has.
async fn total(client: &Client, customer: u64) -> u64 {
    client.total(customer).await
}

/// A trade with these members changed or added.
fn trade_with(members: Value) -> Value {
    let mut trade = json!({ "type": "buy", "ticker": "MDB", "qty": 1 });
    let (Value::Object(all), Value::Object(members)) = (&mut trade, members) else { unreachable!() };
    all.extend(members);
    trade
}
