//! What an item is in a native time-series collection.

use mongodb::bson::raw::{CString, RawBson, RawBsonRef, cstr};
use mongodb::bson::{DateTime, RawDocumentBuf};
use pagebucket_model::definition::{Definition, TimeSeries};
use pagebucket_model::domain::OwnerId;

use crate::mongo::values::int64;
use crate::store::buckets::document::StoredItem;

/// The measurement of an item. `meta` are the properties that the metaField has beside the owner.
pub(crate) fn measurement(
    item: StoredItem<'_>,
    definition: &Definition,
    meta: &[String],
    owner: &OwnerId,
    generation: i64,
) -> RawDocumentBuf {
    let (date, key) = (&*definition.date.name, definition.key_field());
    let mut measurement = RawDocumentBuf::new();
    measurement.append(name(date), RawBson::DateTime(DateTime::from_millis(item.date().millis())));
    measurement.append(cstr!("meta"), RawBson::Document(meta_field(item, meta, owner, generation)));
    measurement.append(cstr!("seq"), RawBson::Int64(int64(item.seq.get())));
    for (field, value) in item.document().iter().flatten() {
        let text: &str = field.as_ref();
        let is_ours = [date, key, TimeSeries::META_FIELD, "seq", "_id"].contains(&text);
        // The database takes such names for paths and operators when it adds to a native bucket.
        let is_odd = text.starts_with('$') || text.contains('.');
        if !is_ours && !is_odd && !meta.iter().any(|name| name == text) {
            measurement.append(field, value);
        }
    }
    measurement
}

fn meta_field(item: StoredItem<'_>, names: &[String], owner: &OwnerId, generation: i64) -> RawDocumentBuf {
    let mut meta = RawDocumentBuf::new();
    let owner = match owner {
        OwnerId::Integer(id) => RawBson::Int64(int64(*id)),
        OwnerId::Text(id) => RawBson::String(id.to_string()),
    };
    meta.append(cstr!("owner"), owner);
    if generation > 0 {
        meta.append(cstr!("generation"), RawBson::Int64(generation));
    }
    // Always in this order: native buckets compare the bytes.
    for property in names {
        if let Ok(Some(value)) = item.document().get(property.as_str()) {
            meta.append(name(property), value);
        }
    }
    meta
}

/// A measurement with another generation.
pub(crate) fn with_generation(
    measurement: &mongodb::bson::RawDocument,
    generation: i64,
) -> Option<RawDocumentBuf> {
    let mut copy = RawDocumentBuf::new();
    for field in measurement {
        let (field, value) = field.ok()?;
        let text: &str = field.as_ref();
        match (text, value) {
            // Another document needs another one.
            ("_id", _) => {}
            (TimeSeries::META_FIELD, RawBsonRef::Document(meta)) => {
                let mut changed = RawDocumentBuf::new();
                for field in meta {
                    let (field, value) = field.ok()?;
                    let text: &str = field.as_ref();
                    if text != "generation" {
                        changed.append(field, value);
                    }
                    if text == "owner" {
                        changed.append(cstr!("generation"), RawBson::Int64(generation));
                    }
                }
                copy.append(field, RawBson::Document(changed));
            }
            (_, value) => copy.append(field, value),
        }
    }
    Some(copy)
}

fn name(text: &str) -> CString {
    CString::try_from(text).expect("a checked name has no NUL")
}
