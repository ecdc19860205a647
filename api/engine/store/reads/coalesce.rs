//! Readers of one history share commands, as appends share commits.
//!
//! At most a few reads of a history are under way at once. Further reads wait until one of these ends; then
//! one command reads the pages of all that wait. There is no timer, no added latency with few readers, and
//! under load a fraction of the work. A command never answers a request that arrived after the command was
//! sent.

use std::collections::HashMap;
use std::sync::Arc;

use pagebucket_model::domain::{OwnerId, PageNumber};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::find::{self, find_page};
use crate::mongo::{Deadline, Error, Result};
use crate::store::buckets::document::Bucket;
use crate::store::buckets::marker;
use crate::store::collection::HistoryCollection;

/// The most reads of one history under way at once. It is just large enough to keep the server busy: each
/// further read waits and makes the next command larger.
const MOST_UNDER_WAY: usize = 4;

/// The most pages in one command.
const MOST_READ: usize = 64;

/// The reads under way and waiting, by history. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Coalescer(Arc<Mutex<HashMap<OwnerId, ReadQueue>>>);

/// The reads of one history.
#[derive(Debug, Default)]
struct ReadQueue {
    under_way: usize,
    waiting: Vec<WaitingRead>,
}

#[derive(Debug)]
struct WaitingRead {
    page: PageNumber,
    deadline: Deadline,
    answer: oneshot::Sender<Result<Option<Bucket>>>,
}

impl Coalescer {
    /// Reads a page by its number through the index, alone or in one command with other pages.
    ///
    /// # Errors
    /// The database does not answer in time, or the bucket is corrupt.
    pub(crate) async fn page(
        &self,
        source: &Arc<HistoryCollection>,
        owner: &OwnerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<Bucket>> {
        let (answer, answered) = oneshot::channel();
        let wanted = WaitingRead { page, deadline, answer };
        self.join(source, owner, wanted);
        let answered = deadline.wait_for(answered).await;
        answered.and_then(Result::ok).unwrap_or_else(|| Err(Error::no_answer()))
    }

    /// Reads pages, then the pages that wait meanwhile, until none wait.
    async fn read(self, source: Arc<HistoryCollection>, owner: OwnerId, mut wanted: Vec<WaitingRead>) {
        let mut turn = Turn { readers: &self, owner: &owner, ended: false };
        while !wanted.is_empty() {
            find(&source, &owner, wanted).await;
            wanted = turn.next(MOST_READ.min(source.most_buckets()));
        }
    }

    /// Reads the page now, or puts the request in the line.
    fn join(&self, source: &Arc<HistoryCollection>, owner: &OwnerId, wanted: WaitingRead) {
        let mut lines = self.0.lock();
        let line = lines.entry(owner.clone()).or_default();
        if line.under_way < MOST_UNDER_WAY {
            line.under_way += 1;
            tokio::spawn(self.clone().read(Arc::clone(source), owner.clone(), vec![wanted]));
        } else {
            line.waiting.push(wanted);
        }
    }
}

/// One of the [`MOST_UNDER_WAY`] reads.
struct Turn<'a> {
    readers: &'a Coalescer,
    owner: &'a OwnerId,
    ended: bool,
}

impl Turn<'_> {
    /// The requests to read next, at most `most`. If there are none, the turn has ended.
    fn next(&mut self, most: usize) -> Vec<WaitingRead> {
        let mut lines = self.readers.0.lock();
        let Some(line) = lines.get_mut(self.owner) else { return Vec::new() };
        line.waiting.retain(|wanted| !wanted.answer.is_closed());
        let count = line.waiting.len().min(most);
        let next: Vec<_> = line.waiting.drain(..count).collect();
        if next.is_empty() {
            self.ended = true;
            end(&mut lines, self.owner);
        }
        next
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            end(&mut self.readers.0.lock(), self.owner);
        }
    }
}

/// Ends a turn, and removes the line after its last turn. No request waits then, except after a panic: the
/// waiting requests are then answered that there is no answer.
fn end(lines: &mut HashMap<OwnerId, ReadQueue>, owner: &OwnerId) {
    if let Some(line) = lines.get_mut(owner) {
        line.under_way -= 1;
        if line.under_way == 0 {
            lines.remove(owner);
        }
    }
}

async fn find(source: &HistoryCollection, owner: &OwnerId, wanted: Vec<WaitingRead>) {
    let mut pages: Vec<_> = wanted.iter().map(|wanted| wanted.page).collect();
    pages.sort_unstable();
    pages.dedup();
    let Some(deadline) = wanted.iter().map(|wanted| wanted.deadline).max() else { return };
    if let [page] = pages[..] {
        let found = find_page(source.of(owner, deadline), page, None).await;
        return wanted.into_iter().for_each(|wanted| drop(wanted.answer.send(found.clone())));
    }
    let of = source.of(owner, deadline);
    match find::find(of, find::pages(of, &pages), None).await {
        Ok(found) => {
            for wanted in wanted {
                let at = found.binary_search_by_key(&wanted.page, Bucket::page);
                let bucket = match at {
                    Ok(at) => Ok(Some(found[at].clone())),
                    Err(_) => {
                        let of = source.of(owner, wanted.deadline);
                        marker::check_if_any(of, wanted.page).await.map(|()| None)
                    }
                };
                // Fails if the reader is gone.
                let _ = wanted.answer.send(bucket);
            }
        }
        // A corrupt bucket, or a marker, must only fail the requests for it.
        Err(Error::Corrupt(_) | Error::Gone(_)) => one_by_one(source, owner, wanted).await,
        Err(error) => wanted.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(error.clone())))),
    }
}

async fn one_by_one(source: &HistoryCollection, owner: &OwnerId, wanted: Vec<WaitingRead>) {
    for WaitingRead { page, deadline, answer } in wanted {
        let _ = answer.send(find_page(source.of(owner, deadline), page, None).await);
    }
}
