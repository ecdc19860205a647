//! Asks at intervals how many markers each history has (`store/collection/marker_count.rs`), and how many
//! bytes an item may take.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::capacity::Ages;
use crate::engine::Engine;
use crate::mongo::majority::MonotonicReads;
use crate::mongo::values::whole_number;
use crate::mongo::{Deadline, Error, NO_PRIMARY};
use crate::store::histories;
use crate::tasks::KeptTasks;

/// Asks once, and then again and again, in a task that ends with its handle.
pub(crate) async fn start(
    tasks: &KeptTasks,
    reads: MonotonicReads,
    engines: Vec<Engine>,
    ages: Ages,
) -> AbortOnDropHandle<()> {
    // The first answer tells the database's time, the second what held after it.
    for _ in 0..2 {
        ask(&reads, &engines).await;
    }
    let engines = Arc::new(engines);
    tasks.keep("marker-poll", move || {
        let (reads, engines) = (reads.clone(), Arc::clone(&engines));
        async move {
            loop {
                sleep(ages.poll).await;
                ask(&reads, &engines).await;
            }
        }
    })
}

async fn ask(reads: &MonotonicReads, engines: &[Engine]) {
    let deadline = Deadline::within(NO_PRIMARY);
    let names: Vec<_> = engines.iter().map(|engine| &*engine.definition().name).collect();
    let command = doc! {
        "find": histories::COLLECTION,
        "filter": { "_id": { "$in": names } },
        "projection": { "markers": 1, "maxItemBytes": 1 },
    };
    let asked: Vec<_> = engines.iter().map(|engine| engine.reads().source.read_time_if_known()).collect();
    let number = |history: &RawDocument| {
        let history = Document::try_from(history).map_err(Error::internal)?;
        let name = history.get_str("_id").unwrap_or_default().to_owned();
        let bytes = history.get("maxItemBytes").and_then(whole_number).unwrap_or(0);
        Ok((name, histories::markers(&history), bytes))
    };
    match reads.find(command, deadline, number).await {
        Ok(found) => {
            // A standalone server tells no time in its answers, and some sets do not at their beginning.
            if reads.time.newest().is_none()
                && let Some(engine) = engines.first()
                && let Err(error) = engine.reads().source.look_at_clock(deadline).await
            {
                tracing::debug!(%error, "the database's time is not known");
            }
            for (engine, asked) in engines.iter().zip(asked) {
                let known = found.iter().find(|(name, ..)| **name == *engine.definition().name);
                let (markers, bytes) = known.map_or((Some(0), 0), |(_, markers, bytes)| (*markers, *bytes));
                engine.learn_markers(markers, asked, reads.time.newest());
                engine.learn_item_bytes(bytes);
            }
        }
        // What is known stays, and its age says how far it may be relied on.
        Err(error) => tracing::debug!(%error, "could not read marker counts"),
    }
}
