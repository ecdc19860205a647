//! What pagebucket keeps, and nothing about where: no database, no HTTP, no runtime.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`definition`] | what a history is: its owners, its pages, its items |
//! | [`item`] | items: JSON to BSON by a schema, and back by the stored types |
//! | [`summary`] | what items add up to, by spans of time and groups |
//! | [`metric`] | what is measured: names, kinds, meanings |
//! | [`trace`] | what a traced request waits for |
//! | [`domain`] | what an owner, a page, a sequence number and an instant are |

pub mod definition;
pub mod domain;
pub mod item;
pub mod metric;
pub mod summary;
pub mod trace;
