//! Erasing once more what was erased after the backup from which the database was restored.
//!
//! Page numbers are a clock. Every page that was opened before an erasure has a number below the erasure's
//! `first_page`, every page after a reopening has a later one, and the marker of the beginning then begins
//! there. So the history itself shows whether it is older than the erasure. A tombstone shows it by its time.

use std::cmp::Ordering;

use pagebucket_model::domain::{OwnerId, PageNumber};

use super::erase::{Erasures, bury, last_opened};
use super::erasure_log::{self, LoggedErasure};
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::buckets::marker;

/// What a replayed erasure finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// The history is from after the erasure, or its owner is erased: nothing is changed.
    Known,
    /// The owner has the tombstone of this erasure. Its pages are to be deleted, and then it may be reopened.
    Erasing,
    /// The history has pages from after the erasure, though the owner was not reopened: a server has written
    /// to the restored database. Nothing is changed.
    WrittenSince,
}

impl Erasures {
    /// Writes the tombstone of an erasure, if the history is from before it. The tombstone gets the time of
    /// the erasure, and its numbers are at least those of the erasure: what was opened after the backup has
    /// used its numbers. `reopened` says that the erasure was ended later. May be repeated.
    pub async fn replay(
        &self,
        owner: &OwnerId,
        erasure: &LoggedErasure,
        reopened: bool,
        deadline: Deadline,
    ) -> Result<Replay> {
        let of = self.source.of(owner, deadline.or_within(COMMAND));
        let read = of.source.read_time(of.deadline).await?;
        let marker = marker::find(of).await?;
        if let Some(tombstone) = marker.filter(|marker| marker.erased) {
            let there = LoggedErasure::of(tombstone);
            let LoggedErasure { erased, first_page, second } = *erasure;
            if there.erased < erased || there.first_page < first_page || there.second < second {
                bury(of, read, (erasure.first_page, erasure.second), Some(erasure.erased)).await?;
                erasure_log::log(of).await?;
            }
            let is_over = there.erased > erased || (tombstone.swept && !reopened);
            return Ok(if is_over { Replay::Known } else { Replay::Erasing });
        }
        let begins = marker.map_or(PageNumber::FIRST, |marker| marker.first_page);
        let next = last_opened(of).await?.map_or(PageNumber::FIRST, |(next, _)| next);
        match begins.cmp(&erasure.first_page) {
            // It begins with a reopening after this erasure, or after a later one.
            Ordering::Greater => return Ok(Replay::Known),
            Ordering::Equal if reopened || next > begins => return Ok(Replay::Known),
            Ordering::Less if next > erasure.first_page => return Ok(Replay::WrittenSince),
            _ => {}
        }
        bury(of, read, (erasure.first_page, erasure.second), Some(erasure.erased)).await?;
        erasure_log::log(of).await?;
        Ok(Replay::Erasing)
    }
}
