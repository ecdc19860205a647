//! Readers of one history share commands, as appends share commits.
//!
//! A few reads of a history are under way at once. Who comes meanwhile waits for one of these to end,
//! and is then read with all others that wait, by one command: no timer, no added latency while few ask,
//! and under load a fraction of the work. Nobody is answered by a command sent before they asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::document::Bucket;
use super::find::{Find, numbered};
use crate::domain::{CustomerId, PageNumber};
use crate::store::majority::MonotonicReads;
use crate::store::{Deadline, Error};

/// Reads of one history under way at once: as few as keep the server busy, since each that waits makes
/// the next one larger.
const AT_ONCE: usize = 4;

/// Most pages in one command.
const MOST_READ: usize = 64;

/// Who is reading what. Its clones are one.
#[derive(Debug, Clone, Default)]
pub(super) struct Coalescer(Arc<Mutex<HashMap<CustomerId, Line>>>);

/// The readers of one history.
#[derive(Debug, Default)]
struct Line {
    under_way: usize,
    waiting: Vec<Wanted>,
}

#[derive(Debug)]
struct Wanted {
    page: PageNumber,
    deadline: Deadline,
    answer: oneshot::Sender<Result<Option<Bucket>, Error>>,
}

impl Coalescer {
    /// A page by its number in the index, by a command of its own or one with others.
    ///
    /// # Errors
    /// No database in time, or a corrupt bucket.
    pub(super) async fn page(
        &self,
        reads: &MonotonicReads,
        customer: CustomerId,
        page: PageNumber,
        deadline: Deadline,
    ) -> Result<Option<Bucket>, Error> {
        let (answer, answered) = oneshot::channel();
        let wanted = Wanted { page, deadline, answer };
        if let Some(now) = self.join(customer, wanted) {
            tokio::spawn(self.clone().read(reads.clone(), customer, now));
        }
        let answered = deadline.wait_for(answered).await;
        let no_answer = || Err(Error::Unavailable("no answer within the deadline".to_owned()));
        answered.and_then(Result::ok).unwrap_or_else(no_answer)
    }

    /// Reads pages, and those that are waiting then, until none are.
    async fn read(self, reads: MonotonicReads, customer: CustomerId, mut wanted: Vec<Wanted>) {
        let mut turn = Turn { readers: &self, customer, ended: false };
        while !wanted.is_empty() {
            find(&reads, customer, wanted).await;
            wanted = turn.next();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CustomerId, Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be read at once, by whoever is given it; `None` when it waits.
    fn join(&self, customer: CustomerId, wanted: Wanted) -> Option<Vec<Wanted>> {
        let mut lines = self.lock();
        let line = lines.entry(customer).or_default();
        if line.under_way < AT_ONCE {
            line.under_way += 1;
            return Some(vec![wanted]);
        }
        line.waiting.push(wanted);
        None
    }
}

/// One of the reads that may be under way.
struct Turn<'a> {
    readers: &'a Coalescer,
    customer: CustomerId,
    ended: bool,
}

impl Turn<'_> {
    /// What is to be read next. The turn has ended when there is nothing.
    fn next(&mut self) -> Vec<Wanted> {
        let mut lines = self.readers.lock();
        let Some(line) = lines.get_mut(&self.customer) else { return Vec::new() };
        line.waiting.retain(|wanted| !wanted.answer.is_closed());
        let count = line.waiting.len().min(MOST_READ);
        let next: Vec<_> = line.waiting.drain(..count).collect();
        if next.is_empty() {
            self.ended = true;
            end(&mut lines, self.customer);
        }
        next
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.ended {
            end(&mut self.readers.lock(), self.customer);
        }
    }
}

/// The last one out leaves nothing behind. Nobody waits then, unless it was by a panic: they are told that
/// there is no answer.
fn end(lines: &mut HashMap<CustomerId, Line>, customer: CustomerId) {
    if let Some(line) = lines.get_mut(&customer) {
        line.under_way -= 1;
        if line.under_way == 0 {
            lines.remove(&customer);
        }
    }
}

async fn find(reads: &MonotonicReads, customer: CustomerId, wanted: Vec<Wanted>) {
    let mut pages: Vec<_> = wanted.iter().map(|wanted| wanted.page).collect();
    pages.sort_unstable();
    pages.dedup();
    let Some(deadline) = wanted.iter().map(|wanted| wanted.deadline).max() else { return };
    if pages.len() == 1 {
        return one_by_one(reads, customer, wanted).await;
    }
    match Find::pages(customer, &pages).find_all(reads, deadline).await {
        Ok(found) => {
            for wanted in wanted {
                let at = found.binary_search_by_key(&wanted.page, |bucket| bucket.page);
                let bucket = at.ok().map(|at| found[at].clone());
                // Who has hung up needs no answer.
                let _ = wanted.answer.send(Ok(bucket));
            }
        }
        // It concerns those alone who asked for it.
        Err(Error::Corrupt(_)) => one_by_one(reads, customer, wanted).await,
        Err(error) => wanted.into_iter().for_each(|wanted| drop(wanted.answer.send(Err(error.clone())))),
    }
}

async fn one_by_one(reads: &MonotonicReads, customer: CustomerId, wanted: Vec<Wanted>) {
    for Wanted { page, deadline, answer } in wanted {
        let found = Find::page(customer, page, None).find(reads, deadline).await;
        let found = found.and_then(|found| found.map(|bucket| numbered(bucket, page)).transpose());
        let _ = answer.send(found);
    }
}
