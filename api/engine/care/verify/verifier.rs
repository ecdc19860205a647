//! What verifies the histories of one definition, and how it reads them.

use std::sync::Arc;

use mongodb::bson::raw::RawDocument;
use mongodb::bson::{Document, doc};

use super::bucket_check::Seen;
use crate::mongo::majority::at_most;
use crate::mongo::{COMMAND, Deadline, Result};
use crate::store::reads::reader::HistoryReader;

/// Compares the histories of one definition with the invariants.
#[derive(Debug)]
pub struct Verifier {
    pub(crate) reader: HistoryReader,
}

impl Verifier {
    /// Buckets in the order of `_id`, ascending (1) or descending (-1).
    pub(crate) async fn buckets(
        &self,
        filter: Document,
        order: i32,
        limit: usize,
        deadline: Deadline,
    ) -> Result<Vec<Seen>> {
        let source = &self.reader.source;
        let definition = Arc::clone(&source.definition);
        let read = move |document: &RawDocument| Ok(Seen::read(document, &definition));
        let mut command = at_most(source.collection(), filter, limit, doc! { "_id": 1 });
        command.insert("sort", doc! { "_id": order });
        source.reads.find(command, deadline.or_within(COMMAND), read).await
    }
}
