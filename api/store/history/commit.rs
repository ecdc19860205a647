//! One commit: find the tails, plan the statements, send the commands, judge the answers.

use std::sync::Arc;

use futures_util::future::join_all;

use super::batch::{Batch, Known, MOST_OF_A_COMMAND, Settled};
use super::catch_up::catch_up;
use super::connection::Connection;
use super::dedup::{Goal, near, scan};
use super::messages::Appends;
use super::request::Request;
use super::statement::upsert;
use super::tail::Tail;
use super::tails;
use crate::definition::Definition;
use crate::metric::COMMIT_ITEMS;
use crate::store::group_commit::{Answer, Command, Handle, Unanswered, Verdict, durable};
use crate::store::{Deadline, Error};

/// The most statements in one command.
const MOST_STATEMENTS: usize = 1_000;

/// Commits at least one batch, and reports each to the committer as soon as it is settled.
pub(super) async fn run(connection: &Arc<Connection>, batches: Vec<Batch>, committer: &Handle<Appends>) {
    let report = |mut settled: Settled| {
        let done = std::mem::take(&mut settled.done);
        committer.settled(settled);
        done.into_iter().for_each(Request::succeed);
    };
    let planned = plan(connection, batches, committer, &report).await;
    let (single, longer): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|batch| batch.statements.len() == 1);
    let mut commands: Vec<Vec<Batch>> = Vec::new();
    let mut bytes = 0;
    for batch in single {
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
    commands.extend(longer.into_iter().map(|batch| vec![batch]));
    join_all(commands.into_iter().map(|batches| send(connection, batches, &report))).await;
}

/// Reads the tails that are not in the catalog, all in one query, then plans the statements of each batch.
async fn plan(
    connection: &Arc<Connection>,
    batches: Vec<Batch>,
    committer: &Handle<Appends>,
    report: &impl Fn(Settled),
) -> Vec<Batch> {
    let cold = batches.iter().filter_map(|batch| match batch.tail {
        Known::Nothing(after) => Some((batch.owner.clone(), after)),
        Known::Tail(_) => None,
    });
    let (cold, after): (Vec<_>, Vec<_>) = cold.unzip();
    let found = match cold.is_empty() {
        true => Ok(Default::default()),
        false => {
            let after = after.into_iter().flatten().max();
            tails::find(&connection.source, cold, after, deadline(&batches)).await
        }
    };
    let mut ready = Vec::with_capacity(batches.len());
    for batch in batches {
        let tail = match (batch.tail, &found) {
            (Known::Tail(tail), _) => tail,
            (Known::Nothing(_), Ok(found)) => match found.get(&batch.owner).cloned().transpose() {
                Ok(tail) => tail,
                Err(corruption) => {
                    report(batch.fail(|| Error::from(corruption.clone()).into()));
                    continue;
                }
            },
            (Known::Nothing(_), Err(error)) => {
                report(batch.fail(|| error.clone().into()));
                continue;
            }
        };
        ready.push((batch, tail));
    }
    let now = connection.clock.now();
    let mut planned = Vec::with_capacity(ready.len());
    for (batch, tail) in search(connection, ready, committer).await {
        match batch.plan(&connection.source.definition, tail, now) {
            Ok(batch) => planned.push(batch),
            Err(settled) => report(*settled),
        }
    }
    planned
}

/// Searches the items that were added since the keyed requests last searched. A request's items that are
/// found are placed. If a search fails, only its requests fail. If many items were added, a request leaves the
/// commit and returns when its search is up to date.
async fn search(
    connection: &Arc<Connection>,
    batches: Vec<(Batch, Option<Tail>)>,
    committer: &Handle<Appends>,
) -> Vec<(Batch, Option<Tail>)> {
    let work = batches.into_iter().map(async |(mut batch, tail)| {
        let last = Tail::items(tail);
        let far_behind = batch.take_far_behind(last, near(&connection.source));
        if !far_behind.is_empty() {
            let (connection, committer) = (Arc::clone(connection), committer.clone());
            tokio::spawn(catch_up(connection, batch.owner.clone(), far_behind, last, committer));
        }
        let searches = batch.searches_behind(last);
        if !searches.is_empty() {
            let (goal, deadline) = (Goal::Through(last), deadline([&batch]));
            let found = scan(&connection.source, &batch.owner, searches, goal, deadline).await;
            batch.found(last, found.map(|found| found.searches));
        }
        (batch, tail)
    });
    join_all(work).await
}

/// Sends one command: an unordered one for many owners with one statement each, or an ordered one for one
/// owner.
async fn send(connection: &Connection, batches: Vec<Batch>, report: &impl Fn(Settled)) {
    let ordered = batches.len() == 1;
    let deadline = deadline(&batches);
    let definition = &connection.source.definition;
    let command = command(definition, &batches, ordered, deadline);
    let items: usize =
        batches.iter().flat_map(|batch| &batch.requests).map(|request| request.rest().len()).sum();
    metrics::histogram!(COMMIT_ITEMS, "collection" => definition.name.clone()).record(items as f64);
    match connection.sessions.commit(&connection.database, command, deadline).await {
        Ok(Answer { verdicts, at, .. }) => {
            connection.server_time.learn(at);
            // If all statements were refused, `at` may be the time of a write that a majority does not have
            // yet.
            if verdicts.contains(&Verdict::Stored) {
                connection.source.reads.learn(at);
            }
            let mut verdicts = &verdicts[..];
            for batch in batches {
                let (own, others) = verdicts.split_at(batch.statements.len());
                verdicts = others;
                report(batch.settle(&definition.name, own, at));
            }
        }
        Err(Unanswered::Unknown) => batches.into_iter().for_each(|batch| report(batch.unknown())),
        Err(Unanswered::NotSent(error)) => {
            batches.into_iter().for_each(|batch| report(batch.fail(|| error.clone().into())))
        }
    }
}

/// The latest deadline of all requests ([`group_commit`](crate::store::group_commit), "Deadlines").
fn deadline<'a>(batches: impl IntoIterator<Item = &'a Batch>) -> Deadline {
    let requests = batches.into_iter().flat_map(|batch| &batch.requests);
    Deadline::latest(requests.map(Request::deadline))
}

/// The command that commits the statements of these batches. An `ordered` command stops at its first failure;
/// otherwise each statement runs independently of the others.
fn command(definition: &Definition, batches: &[Batch], ordered: bool, deadline: Deadline) -> Command {
    // Lazily, one after the other, because statements take much memory as documents.
    let updates = batches.iter().flat_map(|batch| {
        let items: Vec<_> = batch.marked().collect();
        let upsert = move |statement| upsert(definition, &batch.owner, statement, &items);
        batch.statements.iter().map(move |statement| Ok(upsert(statement).into()))
    });
    Command::update(&definition.name, updates, ordered, durable(deadline))
}
