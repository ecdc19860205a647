//! Compares a source with the histories that were adopted from it, item by item.
//!
//! Both are read in their order, owner by owner. An item of one side waits in memory until the other side
//! gives the item with the same identity: what is in memory is what is out of order or missing, and not the
//! history.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::RawDocumentBuf;
use mongodb::bson::raw::RawDocument;
use pagebucket_engine::internal::{COMMAND, ItemKey};
use pagebucket_engine::reads::ExportBatch;
use pagebucket_engine::{Deadline, Engine, Error, Gone};
use pagebucket_model::domain::{OwnerId, Position, Seq};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::adoption::Stop;
use super::item::DocumentReader;
use super::rows;
use super::source::Source;
use super::source_item::SourceItem;
use super::watch::{AdoptionWatch, NotStored};
use crate::import::RowFaults;
use crate::ingest::{Bad, Report, StreamEvent};

/// Owners that are compared at once.
const OWNERS: usize = 8;

/// Items of an owner that are read ahead.
const AHEAD: usize = 1_000;

/// Differences of an owner that are told one by one.
const LINES: usize = 1_000;

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Checked {
    /// Items of the source that are stored as they are in the source.
    pub same: u64,
    /// Owners in the source.
    pub owners: u64,
    /// Items that are missing or differ, refused items that are not stored, and items that are out of order
    /// where none may be.
    pub differences: u64,
    /// Items that are stored after later ones: in the order of their arrival.
    pub late: u64,
    /// Refused items that were mended and are stored.
    pub mended: u64,
    /// Items of the same owners that are not of this source: others have appended them.
    pub others: u64,
    /// Whether all of it was compared.
    pub complete: bool,
}

/// An item that the source has.
#[derive(Debug)]
struct Expected {
    key: ItemKey,
    what: String,
    /// The item, or why it was refused.
    item: Result<RawDocumentBuf, RowFaults>,
}

/// What one owner's comparison found.
#[derive(Debug, Default)]
struct Compared {
    found: Checked,
    lines: Vec<String>,
}

/// What is compared, and how.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The collection.
    pub source: &'a Arc<Source>,
    /// How its documents become items.
    pub reader: &'a Arc<DocumentReader>,
    /// The histories that have them.
    pub engine: &'a Engine,
    /// Whether every item must be stored in the order of the source.
    pub strict: bool,
}

/// Compares all owners of the source. Differences are told as lines.
///
/// # Errors
/// One of the databases does not answer.
pub async fn check(
    comparison: Comparison<'_>,
    interrupts: &mut mpsc::Receiver<()>,
    watch: &mut impl AdoptionWatch,
) -> Result<Checked, Stop> {
    let Comparison { source, reader, engine, strict } = comparison;
    // Read again from an owner on, some items would be counted twice.
    let outage = Duration::ZERO;
    let mut parts = rows::read(Arc::clone(source), Arc::clone(reader), source.now().await?, outage);
    let (mut checked, mut running) = (Checked::default(), JoinSet::new());
    let permits = Arc::new(Semaphore::new(OWNERS));
    let mut present: Option<(OwnerId, mpsc::Sender<Expected>)> = None;
    let mut progress = Report::default();
    checked.complete = loop {
        let batch = tokio::select! {
            batch = parts.recv() => batch,
            Some(()) = interrupts.recv() => break false,
        };
        let Some(batch) = batch else { break true };
        for (found, size) in batch? {
            progress.bytes += size;
            let (owner, expected) = match found {
                SourceItem::Item(item) => {
                    let (what, item_of) = (item.what(), Ok(item.draft.document().to_owned()));
                    (item.owner, Expected { key: item.key, what, item: item_of })
                }
                SourceItem::Refused(refused) => match refused.known.clone() {
                    Some((owner, key)) => {
                        let what = refused.what();
                        (owner, Expected { key, what, item: Err(refused.reason) })
                    }
                    None => {
                        checked.differences += 1;
                        watch.line(format_args!("{refused}"));
                        continue;
                    }
                },
                SourceItem::Miscounted(line) => {
                    watch.hear(StreamEvent::Bad(Bad { line: 0, size: 0, why: NotStored::Miscounted(line) }));
                    continue;
                }
            };
            if present.as_ref().is_none_or(|(before, _)| *before != owner) {
                checked.owners += 1;
                let permit = Arc::clone(&permits).acquire_owned().await;
                let (send, receive) = mpsc::channel(AHEAD);
                let (engine, of) = (engine.clone(), owner.clone());
                running.spawn(async move {
                    let _permit = permit;
                    match compare(&engine, of.clone(), receive, strict).await {
                        Err(Error::Gone(gone)) => Ok(Compared::gone(&engine, &of, gone)),
                        compared => compared,
                    }
                });
                present = Some((owner, send));
            }
            if let Some((_, send)) = &present {
                // The comparison has ended early: why is told when it is joined.
                let _ = send.send(expected).await;
            }
            progress.stored += 1;
        }
        while let Some(compared) = running.try_join_next() {
            checked.add(compared, watch)?;
        }
        watch.hear(StreamEvent::Progress(&progress));
    };
    drop(present);
    while let Some(compared) = running.join_next().await {
        checked.add(compared, watch)?;
    }
    Ok(checked)
}

impl Compared {
    /// One difference: what is not there any more cannot be compared.
    fn gone(engine: &Engine, owner: &OwnerId, gone: Gone) -> Self {
        let line = format!("{} {owner}: {gone}", engine.definition().owner.noun());
        Self { found: Checked { differences: 1, ..Checked::default() }, lines: vec![line] }
    }
}

impl Checked {
    fn add(
        &mut self,
        compared: Result<Result<Compared, Error>, tokio::task::JoinError>,
        watch: &mut impl AdoptionWatch,
    ) -> Result<(), Stop> {
        let compared = compared.map_err(|error| Error::internal(error.to_string()))??;
        let Compared { found, lines } = compared;
        self.same += found.same;
        self.differences += found.differences;
        self.late += found.late;
        self.mended += found.mended;
        self.others += found.others;
        lines.iter().for_each(|line| watch.line(format_args!("{line}")));
        Ok(())
    }
}

async fn compare(
    engine: &Engine,
    owner: OwnerId,
    mut expected: mpsc::Receiver<Expected>,
    strict: bool,
) -> Result<Compared, Error> {
    let mut export =
        engine.reads().export(owner.clone(), Position::BEGINNING, None, Deadline::within(COMMAND)).await?;
    let noun = engine.definition().owner.noun();
    let mut sides = Sides {
        owner: format!("{noun} {owner}"),
        key_field: engine.definition().key_field().to_owned(),
        strict,
        ..Sides::default()
    };
    loop {
        let batch = export.next().await?;
        let mut read = 0;
        for item in batch.iter().flat_map(ExportBatch::items) {
            // Both sides advance together.
            read += 1;
            if let Some(expected) = expected.recv().await {
                sides.expect(expected);
            }
            sides.find(item.seq, item.document());
        }
        if batch.is_none() || read == 0 {
            break;
        }
    }
    while let Some(item) = expected.recv().await {
        sides.expect(item);
    }
    Ok(sides.end())
}

/// The items that wait for the other side, and what is found so far.
#[derive(Debug, Default)]
struct Sides {
    owner: String,
    key_field: String,
    strict: bool,
    expected: HashMap<ItemKey, (u64, Expected)>,
    found: HashMap<ItemKey, (Seq, RawDocumentBuf)>,
    /// Keys of the items that both sides have.
    matched: HashSet<ItemKey>,
    /// Number of items that the source has given.
    index: u64,
    /// The greatest index and the greatest `seq` of the items that both sides have.
    last: (u64, Option<Seq>),
    compared: Compared,
}

impl Sides {
    fn expect(&mut self, expected: Expected) {
        self.index += 1;
        match self.found.remove(&expected.key) {
            Some((seq, document)) => self.both(self.index, expected, seq, &document),
            None => {
                self.expected.insert(expected.key, (self.index, expected));
            }
        }
    }

    fn find(&mut self, seq: Seq, document: &RawDocument) {
        let key = document.get_binary(&*self.key_field).ok().and_then(|key| ItemKey::read(key.bytes));
        match key.map(|key| (key, self.expected.remove(&key))) {
            None => self.compared.found.others += 1,
            Some((_, Some((index, expected)))) => self.both(index, expected, seq, document),
            Some((key, None)) if self.matched.contains(&key) || self.found.contains_key(&key) => {
                self.differs(&format!("item {seq} is stored twice"));
            }
            Some((key, None)) => {
                self.found.insert(key, (seq, document.to_owned()));
            }
        }
    }

    /// Both sides have an item.
    fn both(&mut self, index: u64, Expected { key, what, item }: Expected, seq: Seq, stored: &RawDocument) {
        self.matched.insert(key);
        let Ok(item) = item else {
            // It was appended at the end, so it says nothing about the order.
            return self.compared.found.mended += 1;
        };
        let is_late = index < self.last.0 || self.last.1.is_some_and(|last| seq < last);
        self.last = (self.last.0.max(index), self.last.1.max(Some(seq)));
        if !is_same(&item, stored, &self.key_field) {
            return self.differs(&format!("{what}: differs from item {seq}"));
        }
        self.compared.found.same += 1;
        if is_late && self.strict {
            self.differs(&format!("{what}: is item {seq}, after later ones"));
        } else if is_late {
            self.compared.found.late += 1;
        }
    }

    fn differs(&mut self, what: &str) {
        self.compared.found.differences += 1;
        if self.compared.lines.len() < LINES {
            self.compared.lines.push(format!("{}: {what}", self.owner));
        }
    }

    fn end(mut self) -> Compared {
        let mut missing: Vec<_> = std::mem::take(&mut self.expected).into_values().collect();
        missing.sort_by_key(|(index, _)| *index);
        for (_, Expected { what, item, .. }) in missing {
            match item {
                Ok(_) => self.differs(&format!("{what}: is missing")),
                Err(reason) => self.differs(&format!("{what}: is not stored: {reason}")),
            }
        }
        self.compared.found.others += self.found.len() as u64;
        self.compared
    }
}

/// Whether the stored item is this one, its key aside.
fn is_same(item: &RawDocument, stored: &RawDocument, key_field: &str) -> bool {
    let stored = stored.iter().flatten().filter(|(name, _)| name.as_str() != key_field);
    item.iter().flatten().eq(stored)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{doc, spec::BinarySubtype};

    use super::*;

    fn key(byte: u8) -> ItemKey {
        ItemKey::read(&[byte; ItemKey::LEN]).unwrap()
    }

    fn stored(byte: u8) -> RawDocumentBuf {
        let key = mongodb::bson::Binary { subtype: BinarySubtype::Generic, bytes: vec![byte; ItemKey::LEN] };
        RawDocumentBuf::try_from(&doc! { "n": i32::from(byte), "key": key }).unwrap()
    }

    /// What is found of these items of the source, each accepted or not, and these stored items.
    fn compared(expected: &[(u8, bool)], found: &[u8]) -> Compared {
        let mut sides = Sides { key_field: "key".to_owned(), strict: true, ..Sides::default() };
        for (seq, byte) in found.iter().enumerate() {
            sides.find(Seq::new(seq as u64 + 1).unwrap(), &stored(*byte));
        }
        for (byte, accepted) in expected {
            let item = RawDocumentBuf::try_from(&doc! { "n": i32::from(*byte) }).unwrap();
            let item = if *accepted { Ok(item) } else { Err("is wrong".to_owned().into()) };
            sides.expect(Expected { key: key(*byte), what: byte.to_string(), item });
        }
        sides.end()
    }

    #[test]
    fn a_mended_item_has_no_place_in_the_order() {
        let compared = compared(&[(1, true), (2, false), (3, true)], &[1, 3, 2]);
        let Checked { same, mended, differences, .. } = compared.found;
        assert_eq!((same, mended, differences), (2, 1, 0), "{:?}", compared.lines);
    }

    #[test]
    fn an_item_that_is_stored_twice_is_a_difference() {
        let compared = compared(&[(1, true), (2, true)], &[1, 2, 1]);
        let Checked { same, differences, others, .. } = compared.found;
        assert_eq!((same, differences, others), (2, 1, 0), "{:?}", compared.lines);
        let mut sides = Sides { key_field: "key".to_owned(), ..Sides::default() };
        sides.expect(Expected { key: key(1), what: String::new(), item: Err(RowFaults::default()) });
        sides.find(Seq::new(1).unwrap(), &stored(1));
        sides.find(Seq::new(2).unwrap(), &stored(1));
        assert_eq!(sides.end().found.differences, 1);
    }
}
