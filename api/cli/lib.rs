//! The program: its commands.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`commands`] | the commands of the program, their flags and exit statuses |
//! | `telemetry` | the log, and traces |
//! | [`config`] | the flags as typed fields; their doc comments are `--help` |
//! | [`reference`](mod@reference) | what is generated from flags and metrics: pages of the reference, manual pages, completions |
//!
//! What they use is in the crates below: `pagebucket_service`, `pagebucket_server`, `pagebucket_http`,
//! `pagebucket_streams`, `pagebucket_page_views`, `pagebucket_engine`, `pagebucket_embedded`,
//! `pagebucket_model`.

pub mod commands;
pub mod config;
mod reference;
mod telemetry;
