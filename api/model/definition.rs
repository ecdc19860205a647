//! The definition of a history: whose items it has, how many are on a page, what an item is.
//!
//! ```text
//! a file ─ Definition::parse ─▶ Definition { name, owner, page_size, max_item_bytes, date, item: Schema }
//!                                            │                                          │
//!                              routes, names, texts                    checks of items
//! ```
//!
//! That of trades (`trades.json`) is built in. Trades are hashed as in earlier versions, byte for byte, so
//! that a repeat across an upgrade finds its trades. The hashes of other histories begin with the history's
//! name, and the fingerprint of a request is of the client's JSON in canonical form, which no change of the
//! schema changes.
//!
//! | File | What it knows |
//! |---|---|
//! | `single.rs` | one definition, read from JSON |
//! | `definition.schema.json` | the JSON Schema of definitions, which is published |
//! | `summaries.rs` | what summaries of its items may be asked for |
//! | `time_series.rs` | whether it has a native time series |
//! | `set.rs` | all definitions of a server, which must agree |
//! | `names.rs` | which names a definition may use |

#[cfg(test)]
mod items_tests;
#[cfg(test)]
mod mistakes_tests;
mod names;
mod set;
mod single;
mod summaries;
mod time_series;

pub use names::{OF_LISTINGS, camel_case, capitalised};
pub use set::{Definitions, LoadError};
pub use single::{DateProperty, Definition, JSON_SCHEMA, Owner};
pub use summaries::{Measure, StoredNumber, Summaries, SummaryValue};
pub use time_series::{Granularity, TimeSeries};
