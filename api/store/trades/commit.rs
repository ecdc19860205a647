//! One commit: tails, plans, commands, verdicts.

use std::sync::Arc;

use futures_util::future::join_all;
use mongodb::Database;

use super::append::Request;
use super::batch::{Known, Settled, Share};
use super::catch_up::catch_up;
use super::keyed::{Goal, ServerTime, look_up};
use super::ledger::Histories;
use super::measure::COMMIT_TRADES;
use super::tail::Tail;
use super::{statement, tails};
use crate::domain::Clock;
use crate::store::group_commit::{Address, Answer, Outcome, Sessions, Verdict};
use crate::store::majority::MonotonicReads;
use crate::store::{Deadline, Error};

/// Statements in one command.
const MOST_STATEMENTS: usize = 1_000;

/// The longest command, in bytes. A server takes 48 MB (`maxMessageSizeBytes`).
const MOST_BYTES: usize = 12 * 1024 * 1024;

// A statement has some 300 bytes around its at most ten trades, and a trade at most 150.
const _: () = assert!(MOST_STATEMENTS * (300 + 10 * 150) < MOST_BYTES);

/// What committers share.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) database: Database,
    pub(super) reads: MonotonicReads,
    pub(super) sessions: Arc<Sessions>,
    pub(super) clock: Clock,
    /// For records of keys.
    pub(super) server_time: ServerTime,
}

/// Commits these customers' requests, at least one, and tells the committer of each customer as soon
/// as it is settled.
pub(super) async fn run(connection: &Arc<Connection>, shares: Vec<Share>, committer: &Address<Histories>) {
    let tell = |mut settled: Settled| {
        let done = std::mem::take(&mut settled.done);
        committer.settled(settled);
        done.into_iter().for_each(Request::succeed);
    };
    let planned = plan(connection, shares, committer, &tell).await;
    let (single, longer): (Vec<_>, Vec<_>) =
        planned.into_iter().partition(|share| share.statements.len() == 1);
    let mut commands = Vec::new();
    let mut single = single.into_iter().peekable();
    while single.peek().is_some() {
        commands.push(single.by_ref().take(MOST_STATEMENTS).collect());
    }
    commands.extend(longer.into_iter().map(|share| vec![share]));
    join_all(commands.into_iter().map(|shares| send(connection, shares, &tell))).await;
}

/// Finds the tails that are not in the catalog, all in one query, and plans.
async fn plan(
    connection: &Arc<Connection>,
    shares: Vec<Share>,
    committer: &Address<Histories>,
    tell: &impl Fn(Settled),
) -> Vec<Share> {
    let cold = shares.iter().filter_map(|share| match share.tail {
        Known::Nothing(after) => Some((share.customer, after)),
        Known::Tail(_) => None,
    });
    let (cold, after): (Vec<_>, Vec<_>) = cold.unzip();
    let found = match cold.is_empty() {
        true => Ok(Default::default()),
        false => {
            let after = after.into_iter().flatten().max();
            tails::find(&connection.reads, cold, after, deadline(&shares)).await
        }
    };
    let mut ready = Vec::with_capacity(shares.len());
    for share in shares {
        let tail = match (share.tail, &found) {
            (Known::Tail(tail), _) => tail,
            (Known::Nothing(_), Ok(found)) => match found.get(&share.customer).cloned().transpose() {
                Ok(tail) => tail,
                Err(corruption) => {
                    tell(share.fail(|| Error::from(corruption.clone()).into()));
                    continue;
                }
            },
            (Known::Nothing(_), Err(error)) => {
                tell(share.fail(|| error.clone().into()));
                continue;
            }
        };
        ready.push((share, tail));
    }
    let now = connection.clock.now();
    let mut planned = Vec::with_capacity(ready.len());
    for (share, tail) in search(connection, ready, committer).await {
        match share.plan(tail, now) {
            Ok(share) => planned.push(share),
            Err(settled) => tell(*settled),
        }
    }
    planned
}

/// Where trades were added since keyed requests looked for theirs, looks again. What is found is
/// placed; without an answer those requests fail, and no others. Where many trades were added the request
/// leaves the commit, and comes back when its search is up to date.
async fn search(
    connection: &Arc<Connection>,
    shares: Vec<(Share, Option<Tail>)>,
    committer: &Address<Histories>,
) -> Vec<(Share, Option<Tail>)> {
    let work = shares.into_iter().map(async |(mut share, tail)| {
        let last = Tail::totals(tail).trades();
        let far_behind = share.take_far_behind(last);
        if !far_behind.is_empty() {
            let (connection, committer) = (Arc::clone(connection), committer.clone());
            tokio::spawn(catch_up(connection, share.customer, far_behind, last, committer));
        }
        let searches = share.searches_behind(last);
        if !searches.is_empty() {
            let (goal, deadline) = (Goal::Through(last), deadline([&share]));
            let found = look_up(&connection.database, share.customer, searches, goal, deadline).await;
            share.found(last, found.map(|found| found.searches));
        }
        (share, tail)
    });
    join_all(work).await
}

/// Sends one command: of single statements, unordered, or of one customer, ordered.
async fn send(connection: &Connection, shares: Vec<Share>, tell: &impl Fn(Settled)) {
    let ordered = shares.len() == 1;
    let deadline = deadline(&shares);
    let command = statement::command(&shares, ordered, deadline);
    let trades: usize =
        shares.iter().flat_map(|share| &share.requests).map(|request| request.rest().len()).sum();
    metrics::histogram!(COMMIT_TRADES).record(trades as f64);
    match connection.sessions.commit(&connection.database, command, deadline).await {
        Outcome::Answered(Answer::Known { verdicts, at, .. }) => {
            connection.server_time.learn(at);
            // Where all were refused it is the time of whatever the server did last.
            if verdicts.contains(&Verdict::Stored) {
                connection.reads.learn(at);
            }
            let mut verdicts = &verdicts[..];
            for share in shares {
                let (own, others) = verdicts.split_at(share.statements.len());
                verdicts = others;
                tell(share.settle(own, at));
            }
        }
        Outcome::Answered(Answer::Unknown(_)) | Outcome::Unknown => {
            shares.into_iter().for_each(|share| tell(share.unknown()))
        }
        Outcome::NotSent(error) => {
            shares.into_iter().for_each(|share| tell(share.fail(|| error.clone().into())))
        }
    }
}

/// The latest of all requests ([`group_commit`](crate::store::group_commit), "Deadlines").
fn deadline<'a>(shares: impl IntoIterator<Item = &'a Share>) -> Deadline {
    let requests = shares.into_iter().flat_map(|share| &share.requests);
    Deadline::latest(requests.map(Request::deadline))
}
