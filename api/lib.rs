//! Append-only histories in MongoDB, in buckets, served as pages: a page is a bucket.
//!
//! The map of the crate, outermost first:
//!
//! | Module | What it knows |
//! |---|---|
//! | [`cli`] | the commands of the binary, their flags and exit statuses |
//! | [`server`] | one running service: bind, serve, drain |
//! | [`telemetry`] | the log |
//! | [`config`] | the typed settings of a server; their doc comments are `--help` |
//! | [`http`] | routes, extractors, problems, links, OpenAPI; never the mongodb crate |
//! | [`auth`] | who a client is: tokens of an issuer, and keys; never axum |
//! | [`client`] | the HTTP client, for other servers |
//! | [`adopt`] | other collections of MongoDB, item by item |
//! | [`import`] | files of items, row by row |
//! | [`export`](mod@export) | items as rows of a file |
//! | [`ingest`] | items by the stream: rows in, an outcome for each out |
//! | [`format`](mod@format) | CSV or NDJSON |
//! | [`embedded`] | the private mongod of a machine that has no other |
//! | [`store`] | MongoDB: documents, statements, appends, reads, migrations; never axum or utoipa |
//! | [`definition`] | what a history is: its owners, its pages, its items |
//! | [`item`] | items: JSON to BSON by a schema, and back by the stored types |
//! | [`metric`] | what is measured: names, kinds, meanings |
//! | [`domain`] | what an owner, a page, a sequence number and an instant are; no HTTP, no MongoDB |
//!
//! Each knows only modules below it; a test reads the sources and holds this.

pub mod adopt;
pub mod auth;
pub mod cli;
pub mod client;
pub mod config;
pub mod definition;
pub mod domain;
pub mod embedded;
pub mod export;
pub mod format;
pub mod http;
pub mod import;
pub mod ingest;
pub mod item;
pub mod metric;
pub mod server;
pub mod store;
pub mod telemetry;
