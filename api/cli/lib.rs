//! The program: its commands, and the server that one of them runs.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`commands`] | the commands of the program, their flags and exit statuses |
//! | [`server`] | one running service: bind, serve, drain |
//! | [`telemetry`] | the log |
//! | [`config`] | the typed settings; their doc comments are `--help` |
//! | [`reference`](mod@reference) | what is generated from flags and metrics: pages of the reference, manual pages, completions |
//!
//! What they serve is in the crates below: `pagebucket_http`, `pagebucket_streams`, `pagebucket_page_views`,
//! `pagebucket_engine`, `pagebucket_model`; the private mongod of a machine that has no other: `pagebucket_embedded`.

pub mod commands;
pub mod config;
mod reference;
pub mod server;
pub mod telemetry;
