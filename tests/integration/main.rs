//! All integration tests, in one binary, against a real mongod. `cargo nextest run` runs each in a process of
//! its own; `.config/nextest.toml` says how.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]
#![allow(unreachable_pub, reason = "no other crate can use a test")]

mod harness;

mod adopt;
mod api_keys;
mod appends;
mod auth;
mod bad_input;
mod browser;
mod caching;
mod catalog;
mod commands;
mod concerns;
mod connections;
mod contract;
mod cost;
mod customers;
mod dates;
mod deleted;
mod embed;
mod embedded;
mod exactly_once;
mod expected_seq;
mod export;
mod failover;
mod faults;
mod filters;
mod histories;
mod import;
mod keys;
mod layering;
mod live;
mod markers;
mod metrics;
mod migrations;
mod offsets;
mod outage;
mod overload;
mod page_cache;
mod page_views;
mod properties;
mod rates;
mod readme;
mod role;
mod secondaries;
mod series;
mod service;
mod sharding;
mod snapshots;
mod summaries;
mod upgrade;
mod uploads;
mod windows;
