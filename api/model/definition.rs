//! The definition of a history: whose items it has, how many are on a page, what an item is.
//!
//! | File | What it knows |
//! |---|---|
//! | `one.rs` | one definition, read from JSON |
//! | `definition.schema.json` | the JSON Schema of definitions, which is published |
//! | `all.rs` | all definitions of a server, which must agree |
//! | `names.rs` | which names a definition may use |
//! | `openapi.rs` | the schemas and examples of its items for the OpenAPI document |

mod all;
#[cfg(test)]
mod items_tests;
#[cfg(test)]
mod mistakes_tests;
mod names;
mod one;
pub mod openapi;
#[cfg(test)]
mod oracle_tests;

pub use all::{Definitions, LoadError};
pub use names::{OF_LISTINGS, camel_case, capitalised};
pub use one::{DateProperty, Definition, JSON_SCHEMA, Owner};
