//! Tests of the engine by itself, against a real mongod, in one binary. `cargo nextest run` runs each in a
//! process of its own; `.config/nextest.toml` says how.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]
#![allow(unreachable_pub, reason = "no other crate can use a test")]

use pagebucket_engine_tests as harness;

mod adopt;
mod embed;
mod faults;
mod histories;
mod live;
mod markers;
mod migrations;
mod properties;
