//! All items of a source in their order, in bounded memory.

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{Timestamp, doc};
use tokio::sync::mpsc;
use tokio::task::JoinError;

use super::identities::Identities;
use super::item::DocumentReader;
use super::shape::{SourcePlace, sorted};
use super::sort::{Sorter, Start};
use super::source::{BATCH, Source, SourceError};
use super::source_item::SizedItem;
use crate::patience::{OUTAGE, Patience};

/// Parts in their order; an error is the last item.
pub(crate) type Parts = mpsc::Receiver<Result<Vec<SizedItem>, SourceError>>;

/// Reads the source as it is at `after` or later, sorted, in a task of its own. When the source fails for a
/// passing reason, for no longer than `outage`, it is read again from the last owner on: items may then come
/// twice.
pub(crate) fn read(
    source: Arc<Source>,
    reader: Arc<DocumentReader>,
    after: Option<Timestamp>,
    outage: Duration,
) -> Parts {
    let at = SourceAt { source, reader, after };
    task(async move |send| {
        // A path into a document is the server's to follow.
        let mut start = Start { owner: None, by_server: at.reader.order.contains('.') };
        let mut patience = Patience::of(outage);
        loop {
            match read_from(&at, &mut start, &mut patience, &send).await {
                Err(SourceError::Database(error)) => {
                    if let Err(error) = patience.after(error).await {
                        return drop(send.send(Err(error.into())).await);
                    }
                }
                Err(error) => return drop(send.send(Err(error)).await),
                Ok(ReadTo::End) => return,
                Ok(ReadTo::Unsorted) => start.by_server = true,
            }
        }
    })
}

/// Reads all of a source whose `_id`s may not be unique, before anything is stored: what is stored by an
/// `_id` that others have, too, is stored once more when it gets another.
///
/// # Errors
/// An `_id` does not identify an item, or the source does not answer.
pub(crate) async fn identify(source: &Arc<Source>, reader: &Arc<DocumentReader>) -> Result<(), SourceError> {
    let mut parts = read(Arc::clone(source), Arc::clone(reader), source.now().await?, OUTAGE);
    while let Some(batch) = parts.recv().await {
        batch?;
    }
    Ok(())
}

/// Does `work` in a task of its own. If it panics, the last item is an error: without one, all was sent.
pub(crate) fn task<T, E, F>(
    work: impl FnOnce(mpsc::Sender<Result<T, E>>) -> F,
) -> mpsc::Receiver<Result<T, E>>
where
    T: Send + 'static,
    E: From<JoinError> + Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (send, receive) = mpsc::channel(4);
    let work = tokio::spawn(work(send.clone()));
    tokio::spawn(async move {
        if let Err(error) = work.await {
            drop(send.send(Err(error.into())).await);
        }
    });
    receive
}

/// A source as it is at a time, or later.
struct SourceAt {
    source: Arc<Source>,
    reader: Arc<DocumentReader>,
    after: Option<Timestamp>,
}

/// How far a reading has come.
enum ReadTo {
    /// All is read, or nothing more is wanted.
    End,
    /// The server has to sort the items of the next owner.
    Unsorted,
}

/// Reads from an owner on. Notes how far it has come.
async fn read_from(
    SourceAt { source, reader, after }: &SourceAt,
    start: &mut Start,
    patience: &mut Patience,
    send: &mpsc::Sender<Result<Vec<SizedItem>, SourceError>>,
) -> Result<ReadTo, SourceError> {
    let order = start.by_server.then_some(&*reader.order);
    let pipeline = sorted(reader.shape, &reader.owner, order, start.owner.clone());
    let options = doc! { "allowDiskUse": true, "collation": { "locale": "simple" } };
    let mut batches = source.aggregate(pipeline, *after, options).await?;
    let mut sorter = Sorter::new(reader, start);
    let mut identities = (!source.has_unique_ids()).then(Identities::default);
    loop {
        let batch = batches.try_next().await?;
        let (mut parts, mut read) = (Vec::with_capacity(BATCH as usize), Ok(()));
        match &batch {
            Some(batch) => {
                for document in batch.doc_slices()? {
                    let document = document.map_err(mongodb::error::Error::from)?;
                    let Some(document) = document.as_document() else { continue };
                    let place = SourcePlace::of(reader.shape, &reader.owner, document);
                    read = sorter.read(&place, &mut parts);
                    if read.is_err() {
                        break;
                    }
                }
            }
            None => sorter.end(&mut parts),
        }
        if let Some(identities) = &mut identities {
            parts.iter().try_for_each(|(found, _)| identities.add(found, reader))?;
        }
        if send.send(Ok(parts)).await.is_err() || batch.is_none() {
            return Ok(ReadTo::End);
        }
        patience.renew();
        if read.is_err() {
            return Ok(ReadTo::Unsorted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_ends_with_an_error() {
        let mut parts = task::<u8, SourceError, _>(async |send| {
            send.send(Ok(1)).await.unwrap();
            panic!("as a bug would");
        });
        assert!(matches!(parts.recv().await, Some(Ok(1))));
        assert!(matches!(parts.recv().await, Some(Err(SourceError::Failed(_)))));
        assert!(parts.recv().await.is_none());
    }
}
