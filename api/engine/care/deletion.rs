//! Deletion: of the oldest pages of a history ([`retire`](mod@retire)), and of everything that an owner has
//! ([`erase`](mod@erase)).
//!
//! What is left is a *marker*: a bucket without items in the same collection, so existing reads find it
//! ([`marker`](mod@crate::store::buckets::marker)). An append that meets a marker is refused by the
//! validator, as a stale append is, and is placed again.
//!
//! **Numbers go on.** A reopened owner continues after the numbers of the erased pages. So no address ever
//! means two things, tags and addresses that clients keep for a year stay true, and an owner needs no epoch.
//!
//! **Histories without markers pay nothing.** Each history has a number of markers, which every instance
//! reads every 2 s ([`marker_count`](mod@crate::store::collection::marker_count)).
//!
//! # The age of a tail
//!
//! To append to a page that is not full needs no age: the statement compares. A page is opened only if one of
//! these holds; otherwise the tail is read first:
//!
//! - the tail was *read* less than 60 s ago;
//! - it follows from such a tail by appends of this instance (an acknowledged append does not renew the age,
//!   because it shows nothing about a tombstone);
//! - the number of markers was 0 in the answer to a question that was asked less than 60 s ago.
//!
//! The age is the greater of two: by the monotonic clock, which stops while a machine sleeps, and by the wall
//! clock. It is checked when a commit is formed and just before it is sent. What is known of markers, and
//! cached pages, age by the same clocks. A process may stop after the check, so the database checks again:
//! the [`fence`](mod@crate::store::collection::fence).
//!
//! # When pages are deleted
//!
//! Pages are deleted when their numbers cannot be used any more:
//!
//! - *Retirement* writes the marker of the beginning first, and deletes the pages before F when the marker is
//!   aged. An instance that knew one of these pages as the tail knew it before page F was opened.
//! - *Erasure* writes the tombstones of all histories of the owner, and deletes at once, because every read
//!   of a tail meets the tombstone. An instance that read the tail before may open pages for as long as its
//!   age allows. So pages and keys are deleted again, the *sweep*, when the tombstone is aged. Before pages
//!   are deleted, the tombstone's `firstPage` is raised above them: such a page has used its number.
//!
//! A marker is *aged* 2 minutes after its time `since`, or later ([`Ages`](crate::capacity::Ages)). These are
//! 110 s and 10 s: the database has shown a time 110 s after `since`, and that was at least 10 s ago by the
//! monotonic clock of the instance that deletes. The 110 s are 60 s for the age of a tail, 10 s for the
//! command that wrote the marker, two because cluster times have whole seconds, and a margin. Commands that
//! had begun by then have ended. If the database's clock jumps ahead, the fence refuses earlier, and the
//! deletion still waits for the 10 s. The cluster time then stands still until the clocks of the members have
//! caught up with it: a marker that is written meanwhile ages after that.
//!
//! # Steps, damage and late pages
//!
//! Every step may be repeated, by any instance. Housekeeping finishes what another instance has begun; a lock
//! with a lease admits one instance at a time. An index over unswept tombstones finds unfinished erasures.
//!
//! | Subject | File |
//! |---|---|
//! | the steps of an erasure and of a retirement | `erase.rs`, `retire.rs` |
//! | pages and keys that arrive after the sweep, where the fence fails | `erased_late.rs` |
//! | damaged buckets, which do not keep an owner from being erased | `damaged.rs` |
//! | records of idempotency keys, which no index finds by owner | `erased_keys.rs` |
//! | the list of erasures (the audit log), and erasing again after it | `erasure_log.rs`, `replay.rs` |
//! | the time by which pages are retired, which may be in doubt | `retention_clock.rs` |
//! | histories that the database remembers and that have no definition here | `api/engine/undefined_histories.rs` |

pub(crate) mod damaged;
pub(crate) mod erase;
pub(crate) mod erased_keys;
pub(crate) mod erased_late;
pub(crate) mod erasure_log;
pub(crate) mod replay;
pub(crate) mod retention_clock;
pub(crate) mod retire;
