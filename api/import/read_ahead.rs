//! Reading in a thread of its own, since files and pipes block.

use std::thread;

use tokio::sync::mpsc;

use super::error::BadRow;
use super::rows::Rows;
use crate::ingest::{BATCH, Chunk, Incoming};

/// Reads rows ahead, up to the first bad one where `strict`. A thread that still waits for a pipe when
/// nobody wants more ends with the process.
pub fn read_ahead(mut rows: Rows, strict: bool) -> Incoming<BadRow> {
    let (send, receive) = mpsc::channel(4);
    let read = move || {
        let mut chunk = Chunk::new();
        loop {
            // Rows that are here do not wait for rows that are not.
            let send_now = chunk.len() == BATCH || (!chunk.is_empty() && !rows.ready());
            if send_now && send.blocking_send(Ok(std::mem::take(&mut chunk))).is_err() {
                return;
            }
            match rows.read() {
                Ok(Some(row)) => {
                    let last = row.is_err() && strict;
                    chunk.push(row);
                    if last {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let _ = send.blocking_send(Ok(chunk));
                    let _ = send.blocking_send(Err(error));
                    return;
                }
            }
        }
        let _ = send.blocking_send(Ok(chunk));
    };
    thread::spawn(read);
    receive
}
