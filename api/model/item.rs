//! Items of histories: JSON to BSON, by the schema of a definition, and back, by the stored types alone.
//!
//! | File | What it does |
//! |---|---|
//! | `schema.rs` | parses items of clients by a compiled schema |
//! | `schema/node.rs` | the compiled schema |
//! | `schema/source.rs` | reads the JSON of a definition |
//! | `schema/mistake.rs`, `schema/hints.rs` | the mistakes of a definition, and what was meant |
//! | `schema/compile.rs` | a schema's JSON becomes nodes; each mistake is one sentence |
//! | `schema/rules.rs` | keywords of scalars: types, lengths, patterns, formats, numbers |
//! | `schema/given.rs` | the values of a schema: `enum`, `const`, defaults, examples |
//! | `schema/check.rs` | checks a value and writes its BSON, in one go |
//! | `draft.rs` | an accepted item, with or without its date |
//! | `members.rs` | a stored item becomes JSON |
//! | `lossless.rs` | whether a stored value is all of the value that it was made from |
//! | `canonical.rs` | one spelling for equal JSON values |
//! | `decimal.rs`, `number.rs`, `format.rs`, `pattern.rs` | the values themselves |
//!
//! Writing and reading do not use each other: what is stored can be read under every later schema.

mod canonical;
mod decimal;
mod draft;
mod format;
mod limits;
mod lossless;
mod members;
mod noun;
mod number;
mod pattern;
mod schema;
mod value_path;

pub use canonical::canonical;
pub use decimal::{Decimal, is_a_double, plain as decimal_text, plain_number, whole_number};
pub use draft::{Draft, Item};
pub use lossless::is_lossless;
pub use members::{Corrupt, check_stored, date, write_cell, write_members, write_name, write_value};
pub use noun::Noun;
pub use number::shortest_double;
pub use pattern::list;
pub use schema::{
    ColumnKind, Frame, ItemProperty, Members, Mistake, Mistakes, SIDES, Schema, Side, SourceValue,
    ValueKinds, did_you_mean, unknown_member,
};
