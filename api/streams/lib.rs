//! Items by the stream: rows in, an outcome for each out. Never names axum, utoipa or clap.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`adopt`] | other collections of MongoDB, item by item |
//! | [`import`] | files of items, row by row |
//! | [`export`](mod@export) | items as rows of a file |
//! | [`ingest`] | items by the stream: rows in, an outcome for each out |
//! | [`format`](mod@format) | CSV or NDJSON |
//! | [`lines`] | lines of a file, none of which fills the memory |
//! | [`patience`] | how long a database may fail meanwhile |

pub mod adopt;
pub mod export;
pub mod format;
pub mod import;
pub mod ingest;
pub mod lines;
pub mod patience;
