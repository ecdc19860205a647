//! Histories that the database remembers and that have no definition here. They are neither read nor appended to, but owners
//! are erased from them too, and housekeeping finishes what was begun in them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use mongodb::Database;
use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use parking_lot::Mutex;

use super::group_commit::COMMITTERS;
use super::history::{AppendQueue, Engine, ScanTurn};
use super::migrations::histories::{self, KnownHistory};
use crate::capacity::Capacity;
use crate::mongo::majority::{MonotonicReads, Query};
use crate::mongo::session::Sessions;
use crate::mongo::{Deadline, Error, Result};

/// What the engines of such histories are made from.
#[derive(Clone, Debug)]
pub(super) struct UndefinedHistories {
    reads: MonotonicReads,
    sessions: Arc<Sessions>,
    clock: Clock,
    appends: AppendQueue,
    scan_turn: ScanTurn,
    capacity: Capacity,
    /// By name. They are kept because an erasure goes on where its engine was.
    engines: Arc<Mutex<BTreeMap<String, Engine>>>,
}

impl UndefinedHistories {
    pub(super) fn new(
        database: Database,
        sessions: &Arc<Sessions>,
        clock: &Clock,
        appends: &AppendQueue,
        scan_turn: &ScanTurn,
        capacity: Capacity,
    ) -> Self {
        Self {
            reads: MonotonicReads::of(database),
            sessions: Arc::clone(sessions),
            clock: clock.clone(),
            appends: appends.clone(),
            scan_turn: scan_turn.clone(),
            // Nothing is appended.
            capacity: Capacity { catalog_owners: COMMITTERS, ..capacity },
            engines: Arc::default(),
        }
    }

    /// The engines of the histories that are not `defined`: of all of them, or of those of a collection of owners.
    ///
    /// # Errors
    /// The database does not answer in time. The creation of one of these histories is not complete, or what the database
    /// remembers of a history is damaged.
    pub(super) async fn engines(
        &self,
        defined: &Definitions,
        owners: Option<&str>,
        deadline: Deadline,
    ) -> Result<Vec<Engine>> {
        let names: Vec<_> = defined.iter().map(|definition| &*definition.name).collect();
        let command = doc! {
            "find": histories::COLLECTION, "filter": { "_id": { "$nin": names } }, "projection": { "item": 0 },
        };
        let history = |history: &RawDocument| Document::try_from(history).map_err(Error::internal);
        let remembered = self.reads.find(Query::new(command, deadline), history).await?;
        if remembered.is_empty() {
            return Ok(Vec::new());
        }
        let database = self.reads.database.clone();
        let collections = deadline.read(async move { Ok(database.list_collection_names().await?) }).await?;
        let collections: HashSet<_> = collections.into_iter().collect();
        let mut engines = Vec::new();
        for document in &remembered {
            let name = document.get_str("_id").unwrap_or_default();
            let known = KnownHistory::read(name.to_owned(), document)?;
            // If the collection was dropped, nothing is left.
            if owners.is_some_and(|owners| known.owners != owners) || !collections.contains(name) {
                continue;
            }
            if !histories::is_complete(document) {
                let sentence = format!("the creation of {name} is not complete: migrate the database");
                return Err(Error::unavailable(sentence));
            }
            let engine = self.engine(&known)?;
            engine.learn_markers(
                histories::markers(document),
                engine.read_time_if_known(),
                self.reads.time.newest(),
            );
            engines.push(engine);
        }
        Ok(engines)
    }

    fn engine(&self, known: &KnownHistory) -> Result<Engine> {
        if let Some(engine) = self.engines.lock().get(&known.name) {
            return Ok(engine.clone());
        }
        let (definition, database) = (Arc::new(known.definition()?), self.reads.database.clone());
        let (sessions, clock, appends) = (&self.sessions, &self.clock, &self.appends);
        let engine =
            Engine::new(definition, database, sessions, clock, appends, self.capacity, &self.scan_turn);
        Ok(self.engines.lock().entry(known.name.clone()).or_insert(engine).clone())
    }
}
