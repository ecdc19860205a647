//! Reads and checks buckets. Reading validates every field again and names the corrupt one: the guards stop
//! invalid writes, but not damage on disk.

use std::sync::Arc;

use mongodb::bson::RawDocumentBuf;
use mongodb::bson::raw::{CString, RawBsonRef, RawDocument};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId, PageNumber, PageSize, Seq, Totals};
use pagebucket_model::item::{self, Item};

use super::bucket_id::{BucketId, NO_ID, Tail};
use crate::mongo::Corruption;
use crate::store::buckets::identity::ItemKey;
use crate::store::collection::{NO_PAGE, owner_in, page_of};

impl Tail {
    /// Reads what a bucket with this `_id` is, without its items.
    pub(crate) fn read(
        id: &str,
        bucket: &RawDocument,
        owner: &OwnerId,
        page_size: PageSize,
    ) -> Result<Self, Corruption> {
        let corrupt = |field, detail| Corruption::new(id, field, detail);
        let count = bucket.get_i32("count").ok().and_then(|count| u16::try_from(count).ok());
        let count = count.filter(|&count| (1..=page_size.get()).contains(&count.into()));
        Ok(Self {
            second: BucketId::parse(id, owner).ok_or_else(|| corrupt("_id", NO_ID))?.second,
            page: page_of(bucket).ok_or_else(|| corrupt("page", NO_PAGE))?,
            count: count.ok_or_else(|| corrupt("count", "is not an int32 from 1 to the page size"))?,
            page_size,
        })
    }
}

/// An item to store, with its hash if the append has an idempotency key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedItem<'a> {
    pub(crate) item: &'a Item,
    pub(crate) key: Option<ItemKey>,
}

impl KeyedItem<'_> {
    /// The item as an element of `history`.
    pub(crate) fn document(&self, definition: &Definition) -> RawDocumentBuf {
        let mut document = self.item.document().to_owned();
        if let Some(key) = self.key {
            let name = CString::try_from(definition.key_field()).expect("a checked name has no NUL");
            document.append(name, key.to_bson());
        }
        document
    }
}

/// One page of a history: its items in order of arrival, at least one and at most as many as fit. Cheap to
/// clone.
#[derive(Clone, derive_more::Debug)]
#[debug("Bucket({}, {} items)", self.id(), self.count())]
pub struct Bucket(Arc<Inner>);

struct Inner {
    definition: Arc<Definition>,
    owner: OwnerId,
    tail: Tail,
    /// The array of items, as the database sent it.
    history: RawDocumentBuf,
}

/// A stored item.
#[derive(Clone, Copy)]
pub struct StoredItem<'a> {
    /// The item's address.
    pub seq: Seq,
    document: &'a RawDocument,
    definition: &'a Definition,
}

impl<'a> StoredItem<'a> {
    /// The item's date.
    pub fn date(&self) -> Instant {
        item::date(self.document, &self.definition.date.name)
            .expect("it was checked when its bucket was read")
    }

    /// The item as it is stored, with the engine's key if it has one.
    pub fn document(&self) -> &'a RawDocument {
        self.document
    }

    /// Appends the members of the item's JSON object to `json`, each after a comma.
    pub fn write_members(&self, json: &mut Vec<u8>) {
        let (key, date) = (self.definition.key_field(), &self.definition.date.name);
        item::write_members(self.document, key, date, json).expect("it was checked when its bucket was read");
    }
}

impl Bucket {
    /// Whether the bucket is full, so that it never changes.
    pub fn full(&self) -> bool {
        self.0.tail.free() == 0
    }

    /// The page's number.
    pub fn page(&self) -> PageNumber {
        self.0.tail.page
    }

    /// The number of items on the page.
    pub fn count(&self) -> usize {
        self.0.tail.count.into()
    }

    /// The address of the bucket's first item.
    pub fn first_seq(&self) -> Seq {
        self.0.tail.page_size.first_seq(self.page())
    }

    /// The items of the page, in order of arrival.
    pub fn items(&self) -> impl Iterator<Item = StoredItem<'_>> {
        let (definition, first) = (&*self.0.definition, self.first_seq());
        documents(&self.0.history).enumerate().map(move |(place, document)| StoredItem {
            seq: first.plus(place),
            document: document.expect("it was checked when its bucket was read"),
            definition,
        })
    }

    /// Bytes of the items in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.0.history.as_bytes().len()
    }

    /// The item at this address, if it is in this bucket.
    pub fn item(&self, seq: Seq) -> Option<StoredItem<'_>> {
        self.items().find(|item| item.seq == seq)
    }

    /// The totals of a history that ends with this bucket.
    pub fn totals(&self) -> Totals {
        Totals::ending_with(self.0.tail.page_size, Some(self.0.tail.last_seq()))
    }

    pub(crate) fn id(&self) -> BucketId {
        self.0.tail.id(&self.0.owner)
    }

    pub(crate) fn tail(&self) -> Tail {
        self.0.tail
    }

    /// This bucket after an append, by the fields that the append has set in it. `None` if it does not follow
    /// this state, or was no append.
    ///
    /// Changes name what `$push` has added by [its dotted
    /// path](https://www.mongodb.com/docs/manual/reference/change-events/update/). A bucket that is not
    /// replaced has each count once, so the append after this count is the next one.
    pub(crate) fn grown_by(&self, set: &RawDocument) -> Option<Self> {
        let Inner { definition, owner, tail: before, history } = &*self.0;
        let mut tail = *before;
        let mut grown = Vec::with_capacity(history.as_bytes().len() + set.as_bytes().len());
        grown.extend_from_slice(history.as_bytes());
        let mut grown = RawDocumentBuf::from_bytes(grown).ok()?;
        for field in set {
            let (name, value) = field.ok()?;
            let Some(place) = name.as_str().strip_prefix("history.") else { continue };
            if tail.free() == 0 || place != tail.count.to_string() {
                return None;
            }
            item::check_stored(value.as_document()?, definition.key_field(), &definition.date.name).ok()?;
            grown.append(CString::try_from(place).ok()?, value);
            tail.count += 1;
        }
        let grows = tail.count > before.count;
        let (definition, owner) = (Arc::clone(definition), owner.clone());
        (grows && set.get_i32("count").is_ok_and(|count| count == i32::from(tail.count)))
            .then(|| Self(Arc::new(Inner { definition, owner, tail, history: grown })))
    }

    pub(crate) fn read(
        document: &RawDocument,
        owner: &OwnerId,
        definition: &Arc<Definition>,
    ) -> Result<Self, Corruption> {
        let id = document.get_str("_id").unwrap_or("without a readable _id");
        let corrupt = |field: &str, detail: &str| Corruption::new(id, field, detail);
        let tail = Tail::read(id, document, owner, definition.page_size)?;
        if owner_in(document, &definition.owner).as_ref() != Some(owner) {
            return Err(corrupt(&definition.owner.field, "is not what _id begins with"));
        }
        let history = document.get("history").ok().flatten();
        let Some(RawBsonRef::Array(history)) = history else {
            return Err(corrupt("history", "is not an array"));
        };
        let history = RawDocumentBuf::from_bytes(history.as_bytes().to_vec());
        let history = history.map_err(|_| corrupt("history", "is not an array"))?;
        let (key, date) = (definition.key_field(), &definition.date.name);
        let mut items = 0;
        for document in documents(&history) {
            let corrupt_item = |field: &str, detail| corrupt(&format!("history.{items}{field}"), detail);
            let document = document.ok_or_else(|| corrupt_item("", "is not a document"))?;
            item::check_stored(document, key, date)
                .map_err(|corrupt| corrupt_item(&format!(".{}", corrupt.field), corrupt.detail))?;
            items += 1;
        }
        if usize::from(tail.count) != items {
            return Err(corrupt("count", "is not the number of items"));
        }
        let (definition, owner) = (Arc::clone(definition), owner.clone());
        Ok(Self(Arc::new(Inner { definition, owner, tail, history })))
    }
}

/// The elements of an array. `None` for one that is not a document.
fn documents(array: &RawDocument) -> impl Iterator<Item = Option<&RawDocument>> {
    array.iter().map(|element| element.ok().and_then(|(_, value)| value.as_document()))
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{DateTime, Document, doc};

    use super::*;

    fn item(qty: i32) -> Document {
        doc! { "type": "buy", "ticker": "MDB", "qty": qty, "date": DateTime::from_millis(0) }
    }

    fn raw(document: Document) -> RawDocumentBuf {
        RawDocumentBuf::try_from(&document).unwrap()
    }

    fn bucket(items: i32) -> Bucket {
        let history: Vec<_> = (0..items).map(item).collect();
        let bucket = doc! { "_id": "7_0000001000", "customerId": 7_i64, "page": 1_i64, "count": items, "history": history };
        Bucket::read(&raw(bucket), &OwnerId::Integer(7), &Arc::new(Definition::trades())).unwrap()
    }

    #[test]
    fn the_fields_that_an_append_has_set_lead_to_the_next_state() {
        for (items, more) in [(1, 1), (3, 2), (1, 9), (9, 1)] {
            let mut set = doc! { "count": items + more, "last": DateTime::from_millis(0) };
            set.extend((items..items + more).map(|place| (format!("history.{place}"), item(place).into())));
            let next = bucket(items).grown_by(&raw(set)).unwrap();
            let expected = bucket(items + more);
            assert_eq!(
                (next.tail(), next.0.history.as_bytes()),
                (expected.tail(), expected.0.history.as_bytes())
            );
        }
    }

    #[test]
    fn what_does_not_follow_leads_to_nothing() {
        let follows = doc! { "count": 4, "history.3": item(3) };
        assert!(bucket(3).grown_by(&raw(follows.clone())).is_some());
        for items in [2, 4, 10] {
            assert!(bucket(items).grown_by(&raw(follows.clone())).is_none(), "of another state: {items}");
        }
        for set in [
            doc! {},
            doc! { "count": 3 },
            doc! { "count": 4 },
            doc! { "history.3": item(3) },
            doc! { "count": 4_i64, "history.3": item(3) },
            doc! { "count": 5, "history.3": item(3) },
            doc! { "count": 5, "history.4": item(4), "history.3": item(3) },
            doc! { "count": 4, "history.3": "no item" },
            doc! { "count": 4, "history.3": { "qty": 1 } },
            doc! { "count": 4, "history.3.qty": 7 },
            doc! { "count": 4, "history.03": item(3) },
            doc! { "count": 4, "history": [item(0), item(1), item(2), item(3)] },
        ] {
            assert!(bucket(3).grown_by(&raw(set.clone())).is_none(), "{set}");
        }
        assert!(bucket(10).grown_by(&raw(doc! { "count": 11, "history.10": item(10) })).is_none());
    }
}
