//! Adoption: the documents of another collection become items of a history, each once.
//!
//! Two shapes are read: one document an item, and the buckets of the MongoDB manual, whose arrays have many
//! ([`Shape`]).
//!
//! - **Identity.** An item is stored with a hash of its owner, the source's name, the `_id` of its document
//!   and, in a bucket, its place in the array. What is stored says what was adopted: an adoption may be
//!   killed at any time and started again, days later or twice at once, and stores each item once
//!   ([`pagebucket_engine`]). Where the server does not see to it that `_id`s are unique, all of the source
//!   is read before anything is stored ([`identities`]).
//! - **Order.** The source is read sorted by owner, by its server, which sorts on disk where it must. What
//!   one owner has is sorted by date here while that is little ([`sort`]), and by the server otherwise. So
//!   the memory of a copy is bounded, however long a history is.
//! - **Conversion** is that of [`crate::import`]: the schema of the definition checks every item. What would
//!   lose anything is refused, with its `_id` and the reason ([`rejects`]).
//! - **Following.** A change stream is opened before the copy begins. After the copy it gives what was
//!   inserted meanwhile. Its resume token is stored after the items before it.
//!
//! Nothing here writes to a terminal: an [`AdoptionWatch`] hears what happens.

mod adoption;
mod check;
mod dry_run;
mod events;
mod follow;
mod identify;
mod identities;
mod item;
pub mod rejects;
mod rows;
mod shape;
mod sort;
mod source;
mod source_item;
mod store_rows;
mod watch;

pub use adoption::{Adopting, Ended, Stop, adopt, adopt_rejects};
pub use check::{Checked, Comparison, check};
pub use dry_run::{Plan, plan};
pub use item::{DocumentReader, MapError, ReadingRules};
pub use shape::Shape;
pub use source::{Source, SourceError};
pub use watch::{AdoptionCounts, AdoptionWatch, Lag, NotStored, RefusedItem};
