//! What a change of the source means.

use mongodb::bson::raw::{RawBsonRef, RawDocument, cstr};
use mongodb::bson::{Bson, RawBson, RawDocumentBuf, Timestamp};

use super::item::DocumentReader;
use super::shape::{ITEMS, Shape, SourcePlace, whole};
use super::source_item::{SizedItem, read_place};
use super::watch::shown;

/// What a change asks for.
#[derive(Debug)]
pub(crate) enum Change {
    /// These items are new.
    Items(Vec<SizedItem>),
    /// The document with this `_id` may have items that are not stored.
    Grown(Bson),
    /// Nothing, because what is stored never changes. The text says what has changed.
    Changed(String),
    /// Nothing comes after it.
    Invalidated,
}

/// When it happened.
pub(crate) fn time(event: &RawDocument) -> Option<Timestamp> {
    event.get_timestamp("clusterTime").ok()
}

/// Reads an event of a change stream. A `$push` to a bucket, as the manual's writers append, makes it grow.
/// Any other update may be of a document that is not stored yet, because the copy was to read it later or it
/// was refused: so it grows, too, besides being a change.
pub(crate) fn changes(reader: &DocumentReader, event: &RawDocument) -> Vec<Change> {
    let id = || event.get_document("documentKey").ok().and_then(|key| key.get("_id").ok().flatten());
    let named = |what: &str| {
        let id = id().and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::Null);
        Change::Changed(format!("{what} of {}", shown(&id)))
    };
    match (event.get_str("operationType").unwrap_or_default(), reader.shape) {
        ("insert", _) => match event.get_document("fullDocument") {
            Ok(document) => vec![Change::Items(items(reader, document))],
            Err(_) => Vec::new(),
        },
        (what @ ("update" | "replace"), shape) => {
            let description = event.get_document("updateDescription").ok();
            let id = id().and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::Null);
            let mut changes = vec![Change::Grown(id)];
            if shape == Shape::Documents || !description.is_some_and(only_grows) {
                changes.push(named(what));
            }
            changes
        }
        ("delete", _) => vec![named("delete")],
        ("drop" | "rename" | "dropDatabase" | "invalidate", _) => vec![Change::Invalidated],
        _ => Vec::new(),
    }
}

/// The items of a document that was inserted.
fn items(reader: &DocumentReader, document: &RawDocument) -> Vec<SizedItem> {
    let mut parts = Vec::new();
    let whole_document = SourcePlace::of(Shape::Documents, &reader.owner, document);
    if reader.shape == Shape::Documents {
        read_place(reader, &whole_document, &mut parts);
        return parts;
    }
    let Ok(array) = document.get_array(ITEMS) else {
        let item = document.get(ITEMS).ok().flatten();
        read_place(reader, &SourcePlace { item, index: None, ..whole_document }, &mut parts);
        return parts;
    };
    let items: Vec<RawBsonRef<'_>> = array.into_iter().filter_map(Result::ok).collect();
    let count = document.get("count").ok().flatten().and_then(whole);
    for (index, item) in items.iter().enumerate() {
        let place = SourcePlace {
            item: Some(*item),
            index: u32::try_from(index).ok(),
            items: u32::try_from(items.len()).ok(),
            count,
            ..whole_document
        };
        read_place(reader, &place, &mut parts);
    }
    parts
}

/// Whether an update of a bucket changes nothing but its count, besides whole elements of its array.
fn only_grows(description: &RawDocument) -> bool {
    let is_element = |name: &str| {
        let index = name.strip_prefix(ITEMS).and_then(|rest| rest.strip_prefix('.'));
        index.is_some_and(|index| !index.is_empty() && index.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let is_empty =
        |name| description.get_array(name).map_or(true, |array| array.into_iter().next().is_none());
    let updated = description.get_document("updatedFields");
    is_empty("removedFields")
        && is_empty("truncatedArrays")
        && updated.is_ok_and(|updated| {
            updated.iter().flatten().all(|(name, _)| name.as_str() == "count" || is_element(name.as_str()))
        })
}

/// A document's `_id`, to tell documents apart.
pub(crate) fn same_id(id: &Bson) -> Vec<u8> {
    let mut document = RawDocumentBuf::new();
    if let Ok(value) = RawBson::try_from(id.clone()) {
        document.append(cstr!(""), value);
    }
    document.into_bytes()
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    #[test]
    fn a_push_grows_and_anything_else_changes() {
        for (description, grows) in [
            (doc! { "updatedFields": { "count": 3, "history.2": {} }, "removedFields": [] }, true),
            (doc! { "updatedFields": { "history.2": {}, "history.10": {} }, "truncatedArrays": [] }, true),
            (doc! { "updatedFields": { "history.2.qty": 1 } }, false),
            (doc! { "updatedFields": { "history": [] } }, false),
            (doc! { "updatedFields": { "customerId": 1 } }, false),
            (doc! { "updatedFields": { "count": 1 }, "removedFields": ["a"] }, false),
            (doc! { "updatedFields": {}, "truncatedArrays": [{ "field": "history", "newSize": 1 }] }, false),
        ] {
            assert_eq!(only_grows(&RawDocumentBuf::try_from(&description).unwrap()), grows, "{description}");
        }
    }
}
