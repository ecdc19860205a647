//! The program: its commands, the server that one of them runs, and the private mongod.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`commands`] | the commands of the program, their flags and exit statuses |
//! | [`server`] | one running service: bind, serve, drain |
//! | [`telemetry`] | the log |
//! | [`config`] | the typed settings; their doc comments are `--help` |
//! | [`reference`](mod@reference) | what is generated from flags and metrics: pages of the reference, manual pages, completions |
//! | [`embedded`] | the private mongod of a machine that has no other |
//!
//! What they serve is in the crates below: `pagebucket_http`, `pagebucket_streams`, `pagebucket_page_views`,
//! `pagebucket_engine`, `pagebucket_model`.

pub mod commands;
pub mod config;
pub mod embedded;
mod reference;
pub mod server;
pub mod telemetry;
