//! Native time series: a projection of the items of all owners of a history, for questions across owners.
//!
//! A history whose definition has `timeSeries` has a native time-series collection beside it. Its documents, *measurements*, are the items:
//! the date is the timeField, the metaField has the owner and the properties that the definition names, and the others stand beside `seq`.
//! The history stays the truth: nothing here is read for pages, and a projection can be made again from them ([`build`]).
//!
//! # Each item once
//!
//! A time-series collection has no unique index, no validator, no transactions, and no single updates; an insert whose answer was lost
//! may still arrive at any time. So no insert is repeated. Each measurement belongs to a *generation* of its owner, which stands in the
//! metaField (0 is left out), and only the current generation of an owner counts ([`generations`]). Two rules make each item count once:
//!
//! 1. **One feeder announces before it inserts** ([`feeder`]). The document of the build has the batch: owners, generations and sequence
//!    numbers. Announcing compares the *term* of the lease, and a majority has the announcement before the insert is sent, once. The next batch is
//!    announced only when the outcome of this one is known.
//! 2. **A batch of unknown outcome is settled first** ([`settle`]), by its feeder or the next one, whose term is higher: from then on
//!    nothing is announced under the old term. What is there is there for good, because it was sent once. If something is missing, it
//!    may still come: then the owner gets another generation, one that was never used, with a copy of what was confirmed. Whatever comes late has an old
//!    generation.
//!
//! What an owner's generation has is a beginning of what is to be fed: so the greatest `seq` there says where to go on, and there is no
//! other position of an owner.
//!
//! An erasure raises the generation, too ([`forget`](mod@forget)): what a feeder has read before is void, whenever it comes. Measurements of generations that
//! do not count are deleted when the generation changes, and again later, because some may come late.

pub(super) mod build;
pub(super) mod check;
pub(super) mod control;
mod feed_stream;
pub(super) mod feeder;
pub(super) mod forget;
mod former;
mod generations;
mod measurement;
mod public;
mod round;
pub(super) mod scan;
mod settle;
