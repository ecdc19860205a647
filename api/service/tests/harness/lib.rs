//! What tests of a service stand on: services on databases of their own, clients of them, tokens; and all
//! that tests of the engine stand on.

#![allow(missing_docs, reason = "only tests use it")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails, and says where")]

mod client;
pub mod deleted;
pub mod differing;
pub mod events;
pub mod race;
mod raw;
pub mod series;
mod service;
pub mod tokens;
pub mod uploads;

pub use pagebucket_engine_tests::*;

pub use client::{Answer, Client, http, trade, trade_at};
pub use raw::Raw;
pub use service::{Service, Setup};
