//! The whole source, as rows.

use super::found::size;
use super::mark::Marker;
use super::rows::{Parts, task};
use super::told::NotStored;
use crate::ingest::{BATCH, Incoming, Unreadable};

/// Items of a group, and their bytes: each owner's stored items are searched once for all that it has in a group.
const GROUP: usize = 20_000;
const GROUP_BYTES: usize = 16 * 1024 * 1024;

/// Makes rows of all parts, in a task of its own.
pub(super) fn rows(mut parts: Parts, mut marker: Marker) -> Incoming<NotStored> {
    task(async move |send| {
        loop {
            let (mut group, mut bytes, mut ended) = (Vec::with_capacity(GROUP), 0, None);
            while group.len() < GROUP && bytes < GROUP_BYTES {
                match parts.recv().await {
                    Some(Ok(batch)) => {
                        bytes += batch.iter().map(size).sum::<usize>();
                        group.extend(batch);
                    }
                    Some(Err(error)) => {
                        ended = Some(Some(Unreadable::failed(error)));
                        break;
                    }
                    None => {
                        ended = Some(None);
                        break;
                    }
                }
            }
            let mut rows = match marker.rows(group).await {
                Ok(rows) => rows,
                Err(error) => return drop(send.send(Err(Unreadable::failed(error))).await),
            };
            while !rows.is_empty() {
                let rest = rows.split_off(rows.len().min(BATCH));
                if send.send(Ok(rows)).await.is_err() {
                    return;
                }
                rows = rest;
            }
            match ended {
                None => {}
                Some(None) => return,
                Some(Some(error)) => return drop(send.send(Err(error)).await),
            }
        }
    })
}
