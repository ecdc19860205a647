//! The order of one owner's items.
//!
//! A server needs three times as long to sort by three fields as by one (6.0.5, 200,000 documents in memory).
//! So it sorts by owner alone, and what one owner has is sorted here, as long as that is little.

use mongodb::bson::Bson;
use mongodb::bson::raw::{RawBinaryRef, RawBsonRef};
use mongodb::bson::spec::BinarySubtype;
use pagebucket_model::domain::OwnerId;

use super::item::DocumentReader;
use super::shape::{SourcePlace, whole};
use super::source_item::{SizedItem, SourceItem, read_place, size};

/// How many items of an owner are sorted here, and how many bytes.
const ITEMS: usize = 10_000;
const BYTES: usize = 8 * 1024 * 1024;

/// Where reading begins, and how.
#[derive(Debug)]
pub(crate) struct Start {
    /// What all owners before this one have was read.
    pub owner: Option<Bson>,
    /// Whether the server sorts what each owner has.
    pub by_server: bool,
}

/// Puts what each owner has into order.
#[derive(Debug)]
pub(crate) struct Sorter<'a> {
    reader: &'a DocumentReader,
    start: &'a mut Start,
    owner: Option<OwnerId>,
    /// What the owner has, as far as it is read.
    waiting: Vec<(SortKey, SizedItem)>,
    bytes: usize,
}

/// The items of an owner cannot be sorted here: there are too many, or they are ordered by values of other
/// types.
#[derive(Debug)]
pub(crate) struct Unsorted;

/// The value by which an item is ordered, the `_id` of its document, and its index in the array of a bucket.
type SortKey = (SortValue, SortValue, Option<u32>);

/// A value that compares as servers compare it: types in this order, and texts byte by byte. (MongoDB manual,
/// "Comparison/Sort Order"; the collation is `simple`.)
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue {
    /// Null, or a missing one.
    Nothing,
    Whole(i64),
    Text(Box<str>),
    /// Its length, its subtype and its bytes.
    Binary(usize, u8, Box<[u8]>),
    ObjectId([u8; 12]),
    Date(i64),
}

impl<'a> Sorter<'a> {
    pub(crate) fn new(reader: &'a DocumentReader, start: &'a mut Start) -> Self {
        Self { reader, start, owner: None, waiting: Vec::new(), bytes: 0 }
    }

    /// Reads a place. Adds to `parts` what is in order. After an error it has all that the owners before
    /// have.
    pub(crate) fn read(
        &mut self,
        place: &SourcePlace<'_>,
        parts: &mut Vec<SizedItem>,
    ) -> Result<(), Unsorted> {
        let owner = self.reader.owner_at(place);
        // A sort takes these for equal to an owner: they may come between its items.
        let is_between = matches!(place.owner, Some(RawBsonRef::Array(_) | RawBsonRef::Symbol(_)));
        if owner != self.owner && !is_between {
            self.end(parts);
            // Among values that name no owner, the server's order of sorting is another than that of its
            // comparison.
            if let Some(value) = place.owner.filter(|_| owner.is_some()) {
                self.start.owner = Bson::try_from(value).ok();
            }
            self.owner = owner;
        }
        let first = parts.len();
        read_place(self.reader, place, parts);
        if self.start.by_server || self.owner.is_none() {
            return Ok(());
        }
        self.bytes +=
            place.item.and_then(bson::RawBsonRef::as_document).map_or(0, |item| item.as_bytes().len());
        for part in parts.drain(first..) {
            self.bytes += size(&part);
            let key = match &part.0 {
                SourceItem::Item(_) => key(self.reader, place).ok_or(Unsorted)?,
                // What is not stored has no place among the items.
                _ => (SortValue::Nothing, SortValue::Nothing, None),
            };
            if self.waiting.len() >= ITEMS || self.bytes > BYTES {
                return Err(Unsorted);
            }
            self.waiting.push((key, part));
        }
        Ok(())
    }

    /// Adds to `parts` what the last owner has.
    pub(crate) fn end(&mut self, parts: &mut Vec<SizedItem>) {
        self.bytes = 0;
        // What was found at one place keeps its order.
        self.waiting.sort_by(|(one, _), (other, _)| one.cmp(other));
        parts.extend(self.waiting.drain(..).map(|(_, part)| part));
    }
}

fn key(reader: &DocumentReader, place: &SourcePlace<'_>) -> Option<SortKey> {
    let item = place.item.and_then(bson::RawBsonRef::as_document);
    let by = item.and_then(|item| item.get(&reader.order).ok().flatten());
    Some((value(by.unwrap_or(RawBsonRef::Null))?, value(place.id)?, place.index))
}

fn value(value: RawBsonRef<'_>) -> Option<SortValue> {
    Some(match value {
        RawBsonRef::Null => SortValue::Nothing,
        RawBsonRef::String(text) => SortValue::Text(text.into()),
        // The driver leaves out a length that servers compare.
        RawBsonRef::Binary(RawBinaryRef { subtype: BinarySubtype::BinaryOld, .. }) => return None,
        RawBsonRef::Binary(RawBinaryRef { subtype, bytes }) => {
            SortValue::Binary(bytes.len(), subtype.into(), bytes.into())
        }
        RawBsonRef::ObjectId(id) => SortValue::ObjectId(id.bytes()),
        RawBsonRef::DateTime(date) => SortValue::Date(date.timestamp_millis()),
        number => SortValue::Whole(whole(number)?),
    })
}
