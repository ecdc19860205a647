//! One commit: find the tails, plan the statements, send the commands, judge the answers.
//!
//! Keyed requests whose searches are far behind a tail leave the commit and catch up beside it. A search is
//! far behind if the catalog knew an old tail and another instance has written many items since. Usually no
//! other attempt has found the record of such a request: then `from` of the record is raised to the tail, and
//! nothing has to be read. Otherwise the whole history after `from` is searched.

use std::sync::Arc;

use futures_util::future::join_all;
use pagebucket_model::domain::OwnerId;
use pagebucket_model::metric::COMMIT_ITEMS;

use super::batch::{Appends, Batch, MOST_OF_A_COMMAND, MOST_UPSERTED, Settled};
use super::request::{AppendCause, Request};
use super::statement::{insert, update};
use crate::append::group_commit::Handle;
use crate::append::keys::{Goal, confirm, keep_looked, near, scan};
use crate::mongo::reply::{Answer, Verdict};
use crate::mongo::session::{Unanswered, WriteCommand};
use crate::mongo::{Deadline, Error, durable};
use crate::store::buckets::bucket_id::Tail;
use crate::store::buckets::tails::Tails;
use crate::store::collection::HistoryCollection;
use crate::store::collection::fence::Fence;
use crate::tasks;

const MOST_STATEMENTS: usize = 1_000;

/// Commits at least one batch, and reports each to the committer as soon as it is settled.
pub(crate) async fn run(source: Arc<HistoryCollection>, batches: Vec<Batch>, committer: Handle<Appends>) {
    let report = |mut settled: Settled| {
        let done = std::mem::take(&mut settled.done);
        committer.settled(settled);
        done.into_iter().for_each(Request::succeed);
    };
    let planned = plan(&source, batches, &committer, &report).await;
    let planned = planned.into_iter().filter_map(|batch| fenced(&source, batch, &report));
    let (single, longer): (Vec<_>, Vec<_>) = planned.partition(|batch| batch.statements.len() == 1);
    let (mut inserted, mut upserted): (Vec<_>, Vec<_>) =
        single.into_iter().partition(|batch| batch.insertable_until().is_some());
    if inserted.len() <= MOST_UPSERTED {
        upserted.append(&mut inserted);
    }
    let mut commands = gather(upserted);
    commands.append(&mut gather(inserted));
    commands.extend(longer.into_iter().map(|batch| vec![batch]));
    join_all(commands.into_iter().map(|batches| send(&source, batches, &report))).await;
}

/// Batches of one statement each, as many in a command as it may have.
fn gather(batches: Vec<Batch>) -> Vec<Vec<Batch>> {
    let mut commands: Vec<Vec<Batch>> = Vec::new();
    let mut bytes = 0;
    for batch in batches {
        let size = batch.size();
        match commands.last_mut() {
            Some(command) if command.len() < MOST_STATEMENTS && bytes + size <= MOST_OF_A_COMMAND => {
                bytes += size;
                command.push(batch);
            }
            _ => {
                bytes = size;
                commands.push(vec![batch]);
            }
        }
    }
    commands
}

/// The batch with its fence. If what was known is too old by now, it is placed again, and its tail is read.
fn fenced(source: &HistoryCollection, mut batch: Batch, report: &impl Fn(Settled)) -> Option<Batch> {
    if batch.opens() {
        let Some(until) = batch.read.and_then(|read| source.markers.open_until(read, &source.clock)) else {
            report(batch.again());
            return None;
        };
        batch.fence = Fence::until(source.sessions.topology(), until);
    }
    Some(batch)
}

/// Reads the tails that are not in the catalog, all in one query, then plans the statements of each batch.
async fn plan(
    source: &Arc<HistoryCollection>,
    batches: Vec<Batch>,
    committer: &Handle<Appends>,
    report: &impl Fn(Settled),
) -> Vec<Batch> {
    let cold = || batches.iter().filter(|batch| batch.read.is_none());
    let owners = cold().map(|batch| &batch.owner);
    // A tail that refused a request is seen from that time on.
    let refused_at = cold().flat_map(|batch| &batch.requests).filter_map(|request| request.refused_at).max();
    let (read, found) = match cold().next() {
        None => (None, None),
        Some(_) => match source.read_time(deadline(&batches)).await {
            Ok(read) => (Some(read), Some(Tails::read(source, owners, refused_at, deadline(&batches)).await)),
            Err(error) => (None, Some(Tails::failed(error))),
        },
    };
    let mut ready = Vec::with_capacity(batches.len());
    for mut batch in batches {
        if let Some(found) = found.as_ref().filter(|_| batch.read.is_none()) {
            match found.of(&batch.owner) {
                Ok(tail) => (batch.tail, batch.read, batch.is_read) = (tail, read, true),
                Err(error) => {
                    report(batch.fail(|| error.clone().into()));
                    continue;
                }
            }
        }
        ready.push(batch);
    }
    let ready = confirm_tails(source, ready).await;
    let now = source.clock.now();
    let mut planned = Vec::with_capacity(ready.len());
    for mut batch in search(source, ready, committer).await {
        // They wait for the end of this commit, because a key has at most one.
        batch.judge().into_iter().rev().for_each(|request| committer.put_back(request));
        match batch.plan(&source.definition, now) {
            Ok(batch) => planned.push(batch),
            Err(settled) => report(*settled),
        }
    }
    planned
}

/// Reads once more the tails of those batches of which a request expects a greater total than was read. Its
/// client may have seen what a new primary does not know yet that a majority has. If that fails, only the
/// requests that expect more fail.
async fn confirm_tails(source: &HistoryCollection, mut batches: Vec<Batch>) -> Vec<Batch> {
    let doubted = |batch: &Batch| batch.is_read && batch.expects_more();
    if !batches.iter().any(doubted) {
        return batches;
    }
    let owners = batches.iter().filter(|batch| doubted(batch)).map(|batch| &batch.owner);
    let found = Tails::read_latest(source, owners, deadline(&batches)).await;
    for batch in batches.iter_mut().filter(|batch| doubted(batch)) {
        match found.of(&batch.owner) {
            Ok(tail) => batch.tail = tail,
            Err(error) => {
                let total = Tail::items(batch.tail);
                let expects_more =
                    |request: &Request| request.expected().is_some_and(|expected| expected > total);
                batch.fail_if(expects_more, || error.clone().into());
            }
        }
    }
    batches
}

/// Searches the items that were added since the requests whose items are stored once last searched. A
/// request's items that are found are placed. If a search fails, only its requests fail. If many items were
/// added, a request leaves the commit and returns when its search is up to date.
async fn search(
    source: &Arc<HistoryCollection>,
    batches: Vec<Batch>,
    committer: &Handle<Appends>,
) -> Vec<Batch> {
    if batches.iter().flat_map(|batch| &batch.requests).all(|request| request.search.is_of_nothing()) {
        return batches;
    }
    let work = batches.into_iter().map(async |mut batch| {
        let last = Tail::items(batch.tail);
        let far_behind = batch.take_far_behind(last, near(source));
        if !far_behind.is_empty() {
            let (source, committer) = (Arc::clone(source), committer.clone());
            tasks::start("committer", catch_up(source, batch.owner.clone(), far_behind, last, committer));
        }
        let (owner, deadline) = (batch.owner.clone(), deadline([&batch]));
        let mut searches = batch.searches_behind(last);
        if !searches.is_empty()
            && let Err(error) = scan(source.of(&owner, deadline), &mut searches, Goal::Through(last)).await
        {
            batch.fail_if(|request| request.is_behind(last), || error.clone().into());
        }
        // Another attempt has stored some of its items with source keys: the caller looks which.
        batch.fail_if(|request| !request.search.found.is_empty(), || AppendCause::Contended);
        batch
    });
    join_all(work).await
}

/// Advances the searches of these requests of one owner to `last`, the total of a known tail. Then puts the
/// requests back at the front of the queue, in their order. Other requests are committed meanwhile.
async fn catch_up(
    source: Arc<HistoryCollection>,
    owner: OwnerId,
    mut requests: Vec<Request>,
    last: u64,
    committer: Handle<Appends>,
) {
    let mut unseen: Vec<_> =
        requests.iter_mut().filter_map(|request| Some((request.unseen_record()?, request))).collect();
    if let Some(deadline) = unseen.iter().map(|(_, request)| request.ticket.deadline()).max() {
        let records = unseen.iter().map(|(record, _)| *record);
        if confirm(source.of(&owner, deadline), records, last).await {
            unseen.iter_mut().for_each(|(_, request)| request.search.known_through(last));
        }
    }
    while requests.iter().any(|request| request.is_behind(last)) {
        for request in requests.extract_if(.., |request| request.ticket.deadline().passed()) {
            request.fail(0, Error::unavailable("the search did not end in time").into());
        }
        let Some(deadline) = requests.iter().map(|request| request.ticket.deadline()).max() else { return };
        let of = source.of(&owner, deadline);
        let mut searches: Vec<_> = requests.iter_mut().map(|request| &mut request.search).collect();
        if let Err(error) = scan(of, &mut searches, Goal::Through(last)).await {
            return requests.into_iter().for_each(|request| request.fail(0, error.clone().into()));
        }
        // So that a repeat goes on from there.
        let looked =
            requests.iter().filter_map(|request| Some((request.keyed.as_ref()?.id, &request.search)));
        keep_looked(of, looked).await;
    }
    requests.into_iter().rev().for_each(|request| committer.put_back(request));
}

/// Sends one command: an unordered one for many owners with one statement each, or an ordered one for one
/// owner, which stops at its first failure.
async fn send(source: &HistoryCollection, batches: Vec<Batch>, report: &impl Fn(Settled)) {
    let ordered = batches.len() == 1;
    let deadline = deadline(&batches);
    let definition = &source.definition;
    let count: usize = batches.iter().map(|batch| batch.statements.len()).sum();
    let is_insert = count > MOST_UPSERTED && batches.iter().all(|batch| batch.insertable_until().is_some());
    // Lazily, one after the other, because statements take much memory as documents.
    let statements = batches.iter().flat_map(|batch| {
        let items: Vec<_> = batch.keyed_items().collect();
        let until = batch.insertable_until().filter(|_| is_insert);
        batch.statements.iter().map(move |statement| {
            let statement = match until {
                Some(until) => insert(definition, &batch.owner, statement, &items, until),
                None => update(definition, &batch.owner, statement, &items, batch.fence),
            };
            Ok(statement.into())
        })
    });
    let write = if is_insert { WriteCommand::insert } else { WriteCommand::update };
    let mut command = write(&definition.name, statements, ordered, durable(deadline));
    if batches.iter().any(Batch::opens) {
        command = command.running_at_most(deadline.or_within(source.markers.ages.command).remaining());
    }
    let items: usize =
        batches.iter().flat_map(|batch| &batch.requests).map(|request| request.rest().len()).sum();
    metrics::histogram!(COMMIT_ITEMS, "collection" => definition.name.clone()).record(items as f64);
    match source.sessions.commit(&source.reads, command, deadline).await {
        Ok(Answer { verdicts, at, .. }) => {
            let mut verdicts = &verdicts[..];
            for batch in batches {
                let (own, others) = verdicts.split_at(batch.statements.len());
                verdicts = others;
                if batch.opens() && own.contains(&Verdict::Refused) {
                    source.server_clock.doubt();
                }
                report(batch.settle(&definition.name, own, at));
            }
        }
        Err(Unanswered::Unknown) => batches.into_iter().for_each(|batch| report(batch.unknown())),
        Err(Unanswered::NotSent(error)) => {
            batches.into_iter().for_each(|batch| report(batch.fail(|| error.clone().into())));
        }
    }
}

/// The latest deadline of all requests ([`group_commit`](crate::append::group_commit), "Deadlines").
fn deadline<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Deadline {
    let requests = batches.into_iter().flat_map(|batch| &batch.requests);
    Deadline::latest(requests.map(|request| request.ticket.deadline()))
}
