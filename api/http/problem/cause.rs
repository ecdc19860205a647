//! What the log gets of a problem: its cause, which the client must not see.

use std::sync::Arc;

use pagebucket_engine::Error;
use pagebucket_engine::appends::AppendCause;
use pagebucket_model::domain::OwnerId;
use pagebucket_page_views::CountCause;
use pagebucket_streams::ingest::End;

/// Why a request failed, for the log.
#[derive(Debug)]
pub enum LoggedCause {
    /// The database failed, or what was asked for is deleted.
    Database(Error),
    /// An append was not stored completely.
    Append {
        /// The name of its history.
        history: Arc<str>,
        /// Its owner.
        owner: OwnerId,
        /// How many items it has.
        items: usize,
        /// How many of them are stored.
        stored: usize,
        /// How many of the next may be stored.
        unknown: usize,
        /// Why.
        cause: AppendCause,
    },
    /// Not all page views of a request were counted.
    Count {
        /// How many views it has.
        views: u64,
        /// How many of them are counted.
        counted: u64,
        /// How many others may be counted.
        unknown: u64,
        /// Why.
        cause: CountCause,
    },
    /// A preallocation failed, or its outcome is unknown.
    Preallocation(CountCause),
    /// An upload ended early.
    Upload {
        /// Its owner, unless it is to many.
        owner: Option<OwnerId>,
        /// How many items are stored.
        stored: u64,
        /// How many lines were refused.
        refused: u64,
        /// How many items may be stored.
        unknown: u64,
        /// Why.
        end: End,
    },
}

impl LoggedCause {
    /// Writes it to the log.
    pub fn log(&self) {
        match self {
            Self::Database(error) => log_error(error),
            Self::Append { history, owner, items, stored, unknown, cause } => {
                tracing::warn!(%history, %owner, items, stored, unknown, %cause, "an append was not stored completely");
                log_append_cause(cause);
            }
            Self::Count { views, counted, unknown, cause } => {
                tracing::warn!(views, counted, unknown, %cause, "not all page views were counted");
                log_count_cause(cause);
            }
            Self::Preallocation(cause) => {
                tracing::warn!(%cause, "a preallocation failed, or its outcome is unknown");
                log_count_cause(cause);
            }
            Self::Upload { owner, stored, refused, unknown, end } => {
                let owner = owner.as_ref().map(OwnerId::to_string);
                tracing::warn!(owner, stored, refused, unknown, ?end, "an upload ended early");
                if let End::Database(cause) = end {
                    log_append_cause(cause);
                }
            }
        }
    }
}

/// The details of a cause that its name does not have.
fn log_append_cause(cause: &AppendCause) {
    if let AppendCause::Database(error) = cause {
        log_error(error);
    }
}

fn log_count_cause(cause: &CountCause) {
    if let CountCause::Database(error) = cause {
        log_error(error);
    }
}

fn log_error(error: &Error) {
    match error {
        Error::Unavailable(why) => tracing::warn!(why = why.to_string(), "the database is unavailable"),
        Error::Overtaken(_) => tracing::info!("{error}"),
        Error::DiskFull => tracing::error!("{error}"),
        Error::Corrupt(corruption) => {
            tracing::error!(id = corruption.id, field = corruption.field, "{}", corruption.detail);
        }
        Error::OtherEpoch => tracing::info!("{error}"),
        Error::Gone(gone) => tracing::debug!(%gone, "deleted pages were asked for"),
        Error::Internal(why) => tracing::error!(why = why.to_string(), "internal error"),
    }
}
