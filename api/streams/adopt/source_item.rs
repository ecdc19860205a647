//! What a source has at one place: an item, a refused one, or a bucket with a wrong `count`.

use mongodb::bson::Bson;

use super::item::{Adopted, DocumentReader};
use super::shape::SourcePlace;
use super::watch::{RefusedItem, shown};

/// What a source holds at one place.
#[derive(Debug)]
pub(crate) enum SourceItem {
    Item(Adopted),
    Refused(Box<RefusedItem>),
    /// A bucket whose `count` is not the length of its array.
    Miscounted(String),
}

/// A place of the source, and how much of its document it is.
pub(crate) type SizedItem = (SourceItem, u64);

/// Adds what is found at a place.
pub(crate) fn read_place(reader: &DocumentReader, place: &SourcePlace<'_>, parts: &mut Vec<SizedItem>) {
    let first = place.index.is_none_or(|index| index == 0);
    if let (true, Some(items), Some(count)) = (first, place.items, place.count)
        && i64::from(items) != count
    {
        let id = shown(&Bson::try_from(place.id).unwrap_or(Bson::Null));
        let line = format!("{id}: `count` is {count}, and the array has {items}, which counts");
        parts.push((SourceItem::Miscounted(line), 0));
    }
    match reader.read(place) {
        Some(Ok(item)) => parts.push((SourceItem::Item(item), place.parts())),
        Some(Err(refused)) => parts.push((SourceItem::Refused(refused), place.parts())),
        None => {}
    }
}

/// Roughly the memory of a part, in bytes.
pub(crate) fn size((found, _): &SizedItem) -> usize {
    match found {
        SourceItem::Item(item) => item.size(),
        SourceItem::Refused(refused) => refused.reason.size() + 256,
        SourceItem::Miscounted(line) => line.len(),
    }
}
