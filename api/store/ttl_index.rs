//! How long the documents of a collection are kept: a TTL index on a date removes them, or they are kept
//! without a limit.
//!
//! A migration does not set this, because the operator chooses the time and may change it. `collMod` turns an
//! index into a TTL index or changes its time. To stop expiry the index must be dropped and created again.

use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::error::code;
use super::{COMMAND, Deadline, Error, indexes};

/// IndexNotFound, IndexOptionsConflict: another instance that starts at the same time has just dropped the
/// index or created it with other options.
const OVERTAKEN: [i32; 2] = [27, 85];

/// How often to try while other instances change the index.
const ATTEMPTS: u32 = 6;

/// An ascending index on one date field, with its default name.
pub(super) struct TtlIndex {
    pub(super) collection: &'static str,
    pub(super) field: &'static str,
}

impl TtlIndex {
    /// Makes documents expire `seconds` after their date; `None` keeps them without a limit. Returns whether
    /// this changed the index.
    ///
    /// # Errors
    /// The database does not answer, or the user lacks the privilege.
    pub(super) async fn expire_after(
        &self,
        database: &Database,
        seconds: Option<i64>,
    ) -> Result<bool, Error> {
        let deadline = Deadline::within(COMMAND);
        for attempt in 0..ATTEMPTS {
            let commands = match indexes::named(database, self.collection, &self.name()).await? {
                Some(index) if index.seconds == seconds => return Ok(false),
                Some(_) if seconds.is_some() => vec![self.changed(seconds)],
                Some(_) => vec![self.dropped(), self.created(seconds)],
                None => vec![self.created(seconds)],
            };
            match run(database, commands).await {
                Ok(()) => return Ok(true),
                Err(error) if code(&error).is_some_and(|code| OVERTAKEN.contains(&code)) => {
                    deadline.back_off(attempt).await
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Internal(format!(
            "other instances keep changing the index {} of {}",
            self.name(),
            self.collection
        )))
    }

    fn name(&self) -> String {
        format!("{}_1", self.field)
    }

    fn created(&self, seconds: Option<i64>) -> Document {
        let mut index = doc! { "key": { self.field: 1 }, "name": self.name() };
        index.extend(seconds.map(|seconds| ("expireAfterSeconds".to_owned(), seconds.into())));
        doc! { "createIndexes": self.collection, "indexes": [index] }
    }

    fn changed(&self, seconds: Option<i64>) -> Document {
        doc! { "collMod": self.collection, "index": { "name": self.name(), "expireAfterSeconds": seconds } }
    }

    fn dropped(&self) -> Document {
        doc! { "dropIndexes": self.collection, "index": self.name() }
    }
}

async fn run(database: &Database, commands: Vec<Document>) -> Result<(), mongodb::error::Error> {
    for command in commands {
        database.run_command(command).await?;
    }
    Ok(())
}
