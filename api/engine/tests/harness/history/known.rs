//! The three definitions that tests run over, and one of large items.

use mongodb::bson::{Bson, Decimal128, Document, doc};
use serde_json::{Value, json};

use super::History;

/// Those that differ in all.
pub const ALL: &[&History] = &[TRADES, NOTES, READINGS];

/// Where the definitions are that the binary does not embed.
const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/histories");

/// The embedded definition: integer owners, ten items a page.
pub const TRADES: &History = &History {
    name: "trades",
    owners: "customers",
    owner_field: "customerId",
    page_size: 10,
    max_item_bytes: 256,
    columns: &["type", "ticker", "qty", "price", "date"],
    date: "date",
    key: "key",
    definitions: None,
    number: &["qty"],
    owner: number,
    item: |number| json!({ "type": "buy", "ticker": "MDB", "qty": number }),
    stored: |number| doc! { "type": "buy", "ticker": "MDB", "qty": number as i64 },
    // Tests of trades alone send prices and sales, too.
    generated_alone: false,
};

/// The embedded definition, with a native time series.
pub const SERIES: &History = &History {
    definitions: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/data/series")),
    ..*TRADES
};

/// String owners, two items a page.
pub const NOTES: &History = &History {
    name: "notes",
    owners: "rooms",
    owner_field: "roomId",
    page_size: 2,
    max_item_bytes: 16 * 1024,
    columns: &["author", "number", "text", "writtenAt"],
    date: "writtenAt",
    key: "_key",
    definitions: Some(DEFINITIONS),
    number: &["number"],
    owner: room,
    item: |number| json!({ "author": "Ada", "number": number, "text": format!("note {number}") }),
    stored: |number| doc! { "author": "Ada", "number": number as i64, "text": format!("note {number}") },
    generated_alone: true,
};

/// 137 nested items a page.
pub const READINGS: &History = &History {
    name: "readings",
    owners: "devices",
    owner_field: "deviceId",
    page_size: 137,
    max_item_bytes: 30_615,
    columns: &[],
    date: "takenAt",
    key: "_key",
    definitions: Some(DEFINITIONS),
    number: &["reading", "number"],
    owner: number,
    item: reading,
    stored: stored_reading,
    generated_alone: true,
};

/// Integer owners, two items a page, each of which may take 2 MiB.
pub const TRACES: &History = &History {
    name: "traces",
    owners: "probes",
    owner_field: "probeId",
    page_size: 2,
    max_item_bytes: 2 * 1024 * 1024,
    columns: &[],
    date: "recordedAt",
    key: "_key",
    definitions: Some(DEFINITIONS),
    number: &["number"],
    owner: number,
    item: |number| json!({ "number": number, "samples": [0, 1] }),
    stored: |number| doc! { "number": number as i64, "samples": [0_i64, 1_i64] },
    generated_alone: false,
};

fn number(owner: u64) -> Value {
    json!(owner)
}

/// `room-1`, `Room-1`, `room-3`, `Room-3`, …: pairs that differ in case alone, and ids that begin with
/// others.
fn room(owner: u64) -> Value {
    json!(if owner % 2 == 1 { format!("room-{owner}") } else { format!("Room-{}", owner - 1) })
}

fn reading(number: u64) -> Value {
    json!({
        "sensor": format!("t{}", number % 5),
        "reading": { "number": number, "celsius": celsius(number), "cost": "0.10" },
        "samples": [number % 7, number % 11],
        "checkedBy": null,
        // Not in the definition, which is open.
        "battery": { "percent": number % 101 },
    })
}

fn stored_reading(number: u64) -> Document {
    let cost: Decimal128 = "0.10".parse().expect("a decimal");
    let samples = [number % 7, number % 11].map(|sample| Bson::Int64(sample as i64));
    doc! {
        "sensor": format!("t{}", number % 5),
        "reading": { "number": number as i64, "celsius": celsius(number), "cost": cost },
        "samples": samples.to_vec(),
        "checkedBy": null,
        "battery": { "percent": (number % 101) as i64 },
    }
}

/// Exact in binary: whole for every eighth.
fn celsius(number: u64) -> f64 {
    (number % 1000) as f64 / 8.0
}
