//! Tests of a service, its API and its connections, against a real mongod, in one binary. `cargo nextest run`
//! runs each in a process of its own; `.config/nextest.toml` says how.

#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]
#![allow(unreachable_pub, reason = "no other crate can use a test")]

use pagebucket_service_tests as harness;

mod api_keys;
mod appends;
mod auth;
mod bad_input;
mod caching;
mod catalog;
mod concerns;
mod connections;
mod cost;
mod customers;
mod dates;
mod deleted;
mod expected_seq;
mod export;
mod failover;
mod faults;
mod filters;
mod histories;
mod keys;
mod live;
mod markers;
mod offsets;
mod outage;
mod page_cache;
mod page_views;
mod rates;
mod secondaries;
mod series;
mod service;
mod sharding;
mod snapshots;
mod summaries;
mod uploads;
mod windows;
