//! How long views are kept: the server removes buckets by a TTL index on their minute, or keeps them for ever.
//!
//! Not in a migration, because it is the operator's to choose, and may change. The index is there in any case.
//! A server makes it expire, later or earlier, by `collMod`; to let it expire no more, it has to be made anew.

use std::time::Duration;

use mongodb::Database;
use mongodb::bson::{Document, doc};

use super::COLLECTION;
use crate::store::error::code;
use crate::store::{COMMAND, Deadline, Error, indexes};

const NAME: &str = "timestamp_1";

/// Answers to an instance that another one, which starts at the same time, has been quicker than: the index is
/// gone meanwhile, or there with other options. IndexNotFound, IndexOptionsConflict.
const OVERTAKEN: [i32; 2] = [27, 85];

/// Attempts, where others are quicker.
const ATTEMPTS: u32 = 6;

/// Lets buckets expire so long after their minute, or never.
///
/// # Errors
/// No database, or the user may not.
pub(in crate::store) async fn keep_for(
    database: &Database,
    retention: Option<Duration>,
) -> Result<(), Error> {
    let seconds = retention.map(|retention| retention.as_secs() as i64);
    let deadline = Deadline::within(COMMAND);
    for attempt in 0..ATTEMPTS {
        let commands = match indexes::named(database, COLLECTION, NAME).await? {
            Some(index) if index.seconds == seconds => return Ok(()),
            Some(_) if seconds.is_some() => vec![changed(seconds)],
            Some(_) => vec![doc! { "dropIndexes": COLLECTION, "index": NAME }, made(seconds)],
            None => vec![made(seconds)],
        };
        match run(database, commands).await {
            Ok(()) => {
                match seconds {
                    Some(seconds) => {
                        tracing::info!(seconds, "page views are forgotten so long after their minute")
                    }
                    None => tracing::info!("page views are kept for ever"),
                }
                return Ok(());
            }
            Err(error) if code(&error).is_some_and(|code| OVERTAKEN.contains(&code)) => {
                deadline.back_off(attempt).await
            }
            Err(error) => return Err(Error::of(&error)),
        }
    }
    Err(Error::Internal("others keep changing the retention of page views".to_owned()))
}

async fn run(database: &Database, commands: Vec<Document>) -> Result<(), mongodb::error::Error> {
    for command in commands {
        database.run_command(command).await?;
    }
    Ok(())
}

fn made(seconds: Option<i64>) -> Document {
    let mut index = doc! { "key": { "timestamp": 1 }, "name": NAME };
    index.extend(seconds.map(|seconds| ("expireAfterSeconds".to_owned(), seconds.into())));
    doc! { "createIndexes": COLLECTION, "indexes": [index] }
}

fn changed(seconds: Option<i64>) -> Document {
    doc! { "collMod": COLLECTION, "index": { "name": NAME, "expireAfterSeconds": seconds } }
}
