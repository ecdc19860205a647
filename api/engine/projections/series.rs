//! Native time series: a projection of the items of all owners of a history, for questions across owners.
//!
//! A history whose definition has `timeSeries` has a native time-series collection beside it. Its documents,
//! *measurements*, are the items: the date is the timeField, the metaField has the owner and the properties
//! that the definition names, and the others stand beside `seq`. The history stays the truth: nothing here is
//! read for pages, and a projection can be made again from them ([`build`](mod@build)).
//!
//! # Each item once
//!
//! A time-series collection has no unique index, no validator, no transactions and, in mongod 6.0, no single
//! updates. An insert whose answer was lost may still arrive at any time, and a retried one may be stored
//! twice (SERVER-99329). So no insert is repeated. Each measurement belongs to a *generation* of its owner,
//! which stands in the metaField (0 is left out), and only the current generation of an owner counts
//! ([`generations`](mod@generations)). Two rules make each item count once:
//!
//! 1. **One feeder announces before it inserts** ([`feeder`](mod@feeder)). A lease in the document of the
//!    build admits one instance. Its *term* grows with each holder; time decides only which instance feeds,
//!    safety comes from the term. The feeder writes the batch into the document: owners, generations and
//!    sequence numbers. This announcement compares the term, and a majority has it before the insert is sent,
//!    once. The next announcement confirms this batch; it is written only when the outcome of this one is
//!    known.
//! 2. **A batch of unknown outcome is settled first** ([`settle`](mod@settle)), by its feeder or the next
//!    one, under a higher term: from then on nothing is announced under the old term. Measurements that a
//!    majority shows are there once, for good. If some are missing, they may still arrive. Then the owner
//!    gets another generation: a number that was never used, a copy of the confirmed measurements under it,
//!    made by one attempt, and a compare-and-set that lets it count. The announced items are fed again under
//!    it. Measurements that arrive late have a generation that does not count.
//!
//! Before it looks, a settler raises the term in the documents of these owners. Giving out a number and
//! letting it count both compare it, so an earlier settler stops. Another copy, with a greater number,
//! replaces one that the earlier settler began.
//!
//! The measurements of a generation are a beginning of what the owner has to feed. So the greatest `seq`
//! there is the position of the owner, no position is written, and lost places and restarts double nothing.
//! `$group` by the whole metaField reads it from the bounds of native buckets.
//!
//! # Erasure, readers, rebuilds
//!
//! - **An erasure** raises the generation after the pages are deleted, once for each date of the tombstone
//!   ([`forget`](mod@forget)), and deletes by the metaField. The feeder asks for generations *before* it
//!   reads pages, so what it read of erased pages has an earlier generation. A raise also has the owner fed
//!   again from its pages, so a late erasure harms no owner that was reopened.
//! - **Readers** take the number of raises and the generations first, then the measurements, then the number
//!   again: it grows before measurements are deleted because of a raise. If it has grown, they read again. So
//!   each item is counted once at every moment, also while doubles are there ([`query`](mod@query)).
//! - **Other programs** read a view ([`view`](mod@view)), which is changed when a generation changes,
//!   before measurements are deleted because of that. An instance changes the view until it shows what the
//!   instance has read before, so a late change is mended at once, or by the next sweep.
//! - **Measurements that do not count** are deleted when the generation changes, again a minute later, and
//!   each hour.
//! - **`upTo`** is a lower bound: the time of the last change that is fed. Where the change stream answered
//!   with nothing new, it is the time of the question or that of the stream's place, whichever is earlier.
//! - **A rebuild** is another build, registered before any page is read, so that erasures delete from both.
//!   `current` in `series` is the swap. A build says itself what its metaField has, so instances of different
//!   definitions feed it alike.
//! - **Numbers of builds** are seconds of the database's clock, and greater than each number that it
//!   remembers. So no existing collection is adopted, also if a restored backup remembers less than there
//!   was. A drop leaves the greatest number, so neither terms nor generations of a dropped build mean
//!   anything in a later one ([`control`](mod@control)).
//!
//! # Refused
//!
//! - A session that the lease owns, whose `txnNumber` is the term. It would fence late inserts in the
//!   database itself, but the driver gives each command a session of its own, and none can be named.
//! - Readers that drop doubles by `seq`. Programs that read the collection themselves would see the doubles
//!   for good.

pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod control;
mod database_sums;
pub(crate) mod feeder;
mod feeder_stream;
pub(crate) mod forget;
mod generations;
mod measurement;
pub(crate) mod query;
mod round;
mod settle;
mod snapshot;
mod unused_builds;
mod view;
