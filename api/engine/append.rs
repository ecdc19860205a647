//! Appends: from a request in the queue to the statements of a commit, and back to the answer of each
//! request.
//!
//! # Compare and append
//!
//! The *tail* of an owner is the second, the page and the count of its last bucket. An append of n items to a
//! tail that has room for them is one conditional upsert ([`statement`](mod@statement)):
//!
//! ```text
//! update { q: {_id: "123_" + tail.second, customerId: 123, count: tail.count},   // compare
//!          u: {$push: {history: {$each: [...]}}, $inc: {count: n},               // and append
//!              $min: {first: ..}, $max: {last: ..}, $setOnInsert: {page: P}},
//!          upsert: true, hint: {_id: 1} }
//! ```
//!
//! A full tail is followed by a new bucket: with a later second, page `P + 1` and `count: 0`. The statement
//! that opens it also has a deadline, the [`fence`](mod@crate::store::collection::fence). Without the hint
//! mongod 6.0.5 chooses the index on owner and page, and examines every page of the owner. More than four new
//! buckets in a command are inserted, not upserted: an insert compares nothing, and needs nothing compared.
//!
//! Three guards inside the database decide every race. `serve` and `migrate` refuse a collection that lacks
//! one:
//!
//! - The clustered `_id`: a stale statement matches no bucket, tries to insert an `_id` that exists, and gets
//!   E11000.
//! - The unique index on owner and page: of two writers that open one page under different seconds, one gets
//!   E11000.
//! - The validator, `count == size(history)`: a stale statement that expects items in a bucket that does not
//!   exist would insert a wrong `count`, and gets error 121.
//!
//! # A tail must be known
//!
//! Opening page `P + 1` compares nothing about page P, so P must be known to be full for good. A tail is
//! known only from an append that was acknowledged at majority
//! ([`catalog`](mod@crate::store::buckets::catalog)), or from a read at majority
//! ([`tails`](mod@crate::store::buckets::tails)). A tail that is read at `local` can roll back and leave P
//! ragged (seen on mongod 6.0.5). A full page never changes, so induction over P gives invariants 1 to 3.
//! Within one process an owner has at most one commit under way; between processes the guards decide.
//!
//! Deleted pages are the exception: an instance that still knows page P as the full tail would open page
//! `P + 1` of nothing. So what is known of a tail has an age ([`deletion`](mod@crate::care::deletion)).
//!
//! # What a reply means
//!
//! - *Stored*: it is counted in the reply, without a `writeConcernError` ([`reply`](crate::mongo::reply)).
//! - *Refused*: E11000, or 121 whose `errInfo` names only the `$expr`. That is final, because a count never
//!   returns to an earlier value.
//! - *A bug of ours*: 121 that names `$jsonSchema`, or a document that is too large (10334, 17419). That
//!   request fails alone.
//! - *Unknown*: everything else.
//!
//! Items are placed again only after *refused*: after a short random pause, by a tail that is read at a time
//! after the refusing write. A command with an unknown outcome is replayed as identical bytes under the same
//! number ([`session`](crate::mongo::session)), which the server applies at most once, until it is answered
//! or its deadline passes. A command that was given up may still apply once, at the position that it names,
//! until another append takes that position: the answer `outcome-unknown` means this. Its session rests for a
//! minute; the next number of the session refuses the command. A standalone server has no numbers: there the
//! first lost answer is an unknown outcome.
//!
//! # Group commit
//!
//! Requests queue at one of the two or four *committers* of their history, by owner
//! ([`group_commit`], [`policy`](mod@policy)). A committer takes the requests
//! that queued during its last commit, merges them by owner ([`batch`](mod@batch)) and sends one unordered
//! command of many statements ([`commit`](mod@commit)), or two where many of them open pages. An owner that
//! needs more than one statement has an ordered command of its own, so no page is opened after a statement
//! that failed. On one connection 976 appends/s were measured one by one, and 6,000 to 7,500/s in commands of
//! 64 to 500.
//!
//! A request with a key that must first search a long history leaves its commit for that time
//! ([`keys`](mod@crate::append::keys)). Each commit judges a request that expects a total
//! ([`expectation`](mod@crate::append::expectation)).
//!
//! # Bounds are in bytes
//!
//! - The queue of all histories ([`queue`](mod@queue)): `--max-queue-mib`; a quarter for one owner, and for
//!   one client; half for uploads; an eighth for the uploads of one owner, and of one client.
//! - One owner in one commit ([`batch`](mod@batch)): 512 KiB of items, unless one request has more.
//! - An `update` command: 12 MB and 1,000 statements. The next commit places what does not fit.
//! - A command that reads buckets ([`collection`](mod@crate::store::collection)): 12 MB ÷ (`pageSize` ×
//!   `maxItemBytes`) buckets, at least one, by the `maxItemBytes` of the file or of the database, whichever
//!   is greater. The server ends a batch at 16 MB; the other buckets come in another command.
//!
//! A multi-document transaction for each commit was refused. It would save the search for keys, but an
//! instance that is killed between its two round trips leaves up to a thousand tails locked for 60 s, and no
//! client can end that without privileges on the cluster.
//!
//! A second commit of an owner before the first is acknowledged was refused, too. It gains little
//! (`docs/explanation/bench.md`), and takes rules of its own. It may not open a page. It may have no
//! keys: the count that it compares does not say whose items came before. Its refusal is not final,
//! because the count can still rise to the one that it expects: a late copy of the command could be
//! applied after its items were placed again.

pub(crate) mod appender;
pub(crate) mod batch;
pub(crate) mod commit;
pub(crate) mod expectation;
pub(crate) mod group_commit;
pub(crate) mod identified;
pub(crate) mod input;
pub(crate) mod keys;
pub(crate) mod lines;
pub(crate) mod placed;
pub(crate) mod policy;
pub(crate) mod queue;
pub(crate) mod request;
pub(crate) mod statement;
