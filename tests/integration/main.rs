//! Tests of the program, in one binary, against a real mongod; what needs no program is tested in
//! `api/service/tests` and `api/engine/tests`. `cargo nextest run` runs each in a process of
//! its own; `.config/nextest.toml` says how.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]
#![allow(unreachable_pub, reason = "no other crate can use a test")]

use pagebucket_service_tests as harness;

mod adopt;
mod browser;
mod commands;
mod connections;
mod contract;
mod deleted;
mod embedded;
mod exactly_once;
mod export;
mod histories;
mod import;
mod layering;
mod live;
mod markers;
mod metrics;
mod migrations;
mod overload;
mod page_views;
mod readme;
mod role;
mod series;
mod sharding;
mod upgrade;
mod uploads;
