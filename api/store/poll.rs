//! Asks at intervals how many markers each history has ([`history`](super::history), "Deleted pages").

use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::history::Engine;
use super::majority::MonotonicReads;
use super::migrations::histories;
use super::values::whole_number;
use super::{Ages, Deadline, Error, NO_PRIMARY};

/// Asks once, and then again and again, in a task that ends with its handle.
pub(super) async fn start(database: Database, engines: Vec<Engine>, ages: Ages) -> AbortOnDropHandle<()> {
    let reads = MonotonicReads::of(database);
    ask(&reads, &engines).await;
    AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            sleep(ages.poll).await;
            ask(&reads, &engines).await;
        }
    }))
}

async fn ask(reads: &MonotonicReads, engines: &[Engine]) {
    let names: Vec<_> = engines.iter().map(|engine| &*engine.definition().name).collect();
    let command = doc! {
        "find": histories::COLLECTION,
        "filter": { "_id": { "$in": names } },
        "projection": { "markers": 1 },
    };
    let asked: Vec<_> = engines.iter().map(Engine::now).collect();
    let number = |history: &RawDocument| {
        let history = Document::try_from(history).map_err(|error| Error::Internal(error.to_string()))?;
        let name = history.get_str("_id").unwrap_or_default().to_owned();
        Ok((name, history.get("markers").and_then(whole_number).unwrap_or(0)))
    };
    match reads.find(None, command, None, Deadline::within(NO_PRIMARY), number).await {
        Ok(found) => {
            for (engine, asked) in engines.iter().zip(asked) {
                let known = found.iter().find(|(name, _)| **name == *engine.definition().name);
                engine.learn_markers(known.map_or(0, |(_, number)| *number), asked, reads.newest());
            }
        }
        // What is known stays, and its age says how far it may be relied on.
        Err(error) => tracing::debug!(%error, "it is not known whether histories have new markers"),
    }
}
