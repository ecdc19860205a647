//! Histories that the database remembers and that have no definition here. They are neither read nor appended
//! to, but owners are erased from them too, and housekeeping finishes what was begun in them.
//!
//! What the database remembers of a history defines its buckets, and an erasure needs no more. Instances that
//! serve the history learn of its markers by the same number. A history whose creation is not complete, or
//! whose document is damaged, refuses the erasure before anything is done.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};
use pagebucket_model::definition::Definitions;
use parking_lot::Mutex;

use crate::engine::{Engine, StoreContext};
use crate::mongo::{Deadline, Error, Result};
use crate::store::histories::{self, KnownHistory};

/// What the engines of such histories are made from.
#[derive(Clone, Debug)]
pub(crate) struct UndefinedHistories {
    context: StoreContext,
    /// By name. They are kept because an erasure goes on where its engine was.
    engines: Arc<Mutex<BTreeMap<String, Engine>>>,
}

impl UndefinedHistories {
    pub(crate) fn new(mut context: StoreContext) -> Self {
        // Nothing is appended.
        context.catalog_owners = 1;
        Self { context, engines: Arc::default() }
    }

    /// The engines of the histories that are not `defined`: of all of them, or of those of a collection of
    /// owners.
    ///
    /// # Errors
    /// The database does not answer in time. The creation of one of these histories is not complete, or what
    /// the database remembers of a history is damaged.
    pub(crate) async fn engines(
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
        let remembered = self.context.access.reads.find(command, deadline, history).await?;
        if remembered.is_empty() {
            return Ok(Vec::new());
        }
        let database = self.context.access.reads.database.clone();
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
                engine.reads().source.read_time_if_known(),
                self.context.access.reads.time.newest(),
            );
            engines.push(engine);
        }
        Ok(engines)
    }

    fn engine(&self, known: &KnownHistory) -> Result<Engine> {
        if let Some(engine) = self.engines.lock().get(&known.name) {
            return Ok(engine.clone());
        }
        let engine = Engine::new(Arc::new(known.definition()?), &self.context);
        Ok(self.engines.lock().entry(known.name.clone()).or_insert(engine).clone())
    }
}
