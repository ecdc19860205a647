//! Live readers: each gets what is appended to a history, in order, without a gap, from the position that it
//! names.
//!
//! # What wakes a reader
//!
//! - A commit of this process *wakes* the readers of its owner after the majority has it
//!   ([`watched`](mod@crate::live::watched)). Without readers this costs one relaxed load of a
//!   counter.
//! - The appends of other processes wake by the *feed* ([`feed`](mod@feed)): one change stream for each
//!   database and instance, which is open while there are readers. It is limited to the collections of the
//!   histories, and projected to the collection, `_id`, the bucket's count, so that a known change wakes no
//!   reader, and to what was written if that has at most 4 KiB.
//!
//! # What is delivered
//!
//! Items are delivered by `seq`, when a majority has them. The readers of one owner share a *room*
//! ([`room`](mod@room)), which has a position, and the last page if that is small.
//!
//! - A change that opens the page after the position shows that page. A change that has set `history.N` and
//!   the new count of the last page, where N is the count that the room knows, shows the next state of that
//!   page ([`Bucket::grown_by`](crate::store::buckets::document::Bucket::grown_by)). Within an epoch no
//!   second of an owner and no count of a bucket is used again, so no other append can say the same. The room
//!   checks such changes as a read checks buckets.
//! - Any other reason makes the room read the buckets after its position, at majority and from the primary,
//!   with one command: a commit of this process whose change has not arrived, a change that is too large,
//!   several changes together, or a change of a page that the room does not have. So reads do not grow with
//!   readers.
//! - A change that is no append, a deletion and a gap in the stream make the room forget its pages. Fewer
//!   items than it knew, or another epoch, end it.
//!
//! A [`LiveReader`] has a position and no queue. If its position is not in the pages that the room has
//! learned last, it reads the history as an export does, at most 128 KiB of pages at a time.
//!
//! # Why nothing is missed
//!
//! The order is: a time that a majority has is read; the stream begins at that time; the reads of all
//! histories are not older than it (`afterClusterTime`); a reader registers its owner, waits for the stream,
//! and reads the tail. An item that is appended after that read is in the stream, or in a commit of this
//! process.
//!
//! - A stream that breaks is resumed after its last place ([`change_log`](crate::mongo::change_log)). If the
//!   place is lost, another stream begins at another time, pages are forgotten, and the tails of all watched
//!   owners are read once, a thousand in one command. There is no other state, so losing the place loses
//!   nothing.
//! - While the stream has not answered for 1.5 s, the tails of watched owners, and the epoch, are read every
//!   second. The same holds without change streams: on a standalone server, or for a user without the
//!   privilege. Readers of all owners wait meanwhile, because no index has the newest owners.
//! - The epoch is read when a stream opens without a token, and when its document changes. If it is another
//!   one, every live stream ends, and every room. A stream that begins meanwhile ends, too: it takes the
//!   number of changed epochs before it reads its history. Instances that run keep the epoch that they have
//!   read for tags.
//! - When the number of markers grows, the feed reads tails: a tombstone ends a room, and its readers get
//!   410.
//!
//! # All owners
//!
//! A reader of all owners ([`owners_reader`](mod@owners_reader)) learns which owners have something new, and
//! how much. Such readers share the latest totals of each changed owner
//! ([`latest_totals`](mod@latest_totals)). Their place is one in the database's log, a resume token, because
//! no history has an order of all owners, and because only a token goes on in a quiet log. A change stream of
//! the reader's own reads what is before the place of these totals.
//!
//! # Refused
//!
//! - Delivering the items of this process's own commits from memory. It needs a second path that orders them
//!   with those of others, and the change of a commit mostly arrives before its acknowledgement.
//! - Queueing changes for a room that is busy. One read finds all of them.

mod changed_owners;
pub(crate) mod changes;
pub(crate) mod feed;
mod latest_totals;
mod owners_reader;
mod reader;
mod room;
pub(crate) mod watched;

pub use crate::mongo::log_place::LogPlace;
pub use owners_reader::{FollowError, Live, OwnersNews, OwnersReader};
pub use reader::{LivePage, LiveReader, LiveStart};
pub(crate) use watched::LiveHistory;
