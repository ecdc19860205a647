//! What a document of a history's collection is, and what a marker must hold.

use mongodb::bson::raw::{RawBsonRef, RawDocument};
use pagebucket_model::domain::{MAX_SAFE_INTEGER, OwnerId, PageNumber, PageSize};

use super::finding::{shown, value};
use crate::mongo::values::whole_number;
use crate::store::buckets::bucket_id::BucketId;
use crate::store::buckets::marker::{TOMBSTONE, tombstone_id};
use crate::store::collection::page_in;

/// Fields of each document beside the owner's field. The last two are of pages that were inserted, and stay
/// if a marker takes their place.
const FIELDS: [&str; 8] = ["_id", "page", "count", "first", "last", "history", "opened", "openable"];
/// Fields of markers alone.
const OF_MARKERS: [&str; 4] = ["firstPage", "second", "since", "swept"];
/// The field of tombstones alone.
const OF_TOMBSTONES: &str = "erased";

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub(crate) enum DocumentKind {
    /// A bucket of items.
    #[display("page")]
    Page,
    /// The first page that stays, if it can be read; and whether all pages before it are deleted.
    #[display("marker of the beginning")]
    Beginning { first_page: Option<PageNumber>, swept: bool },
    /// Whether nothing can come any more.
    #[display("tombstone")]
    Tombstone { swept: bool },
}

impl DocumentKind {
    /// Of a damaged marker too. `owner` is whose it is by its `_id`.
    pub(crate) fn of(document: &RawDocument, owner: Option<&OwnerId>) -> Self {
        let has = |field: &&str| document.get(field).is_ok_and(|value| value.is_some());
        let counts_none = value(document, "count").as_ref().and_then(whole_number) == Some(0);
        if !counts_none && items(document).is_none_or(|mut items| items.next().is_some()) {
            return Self::Page;
        }
        let swept = document.get_bool("swept").unwrap_or(false);
        let has_its_id =
            owner.is_some_and(|owner| document.get_str("_id").ok() == Some(&tombstone_id(owner)));
        if has_its_id || document.get_i64("page").ok() == Some(TOMBSTONE) {
            return Self::Tombstone { swept };
        }
        if !OF_MARKERS.iter().any(has) {
            return Self::Page;
        }
        Self::Beginning { first_page: page_in(document, "firstPage"), swept }
    }

    /// Whether such a document has this field, which is not the owner's.
    pub(crate) fn has(self, field: &str) -> bool {
        let of_markers = self != Self::Page && OF_MARKERS.contains(&field);
        let of_tombstones = matches!(self, Self::Tombstone { .. }) && field == OF_TOMBSTONES;
        FIELDS.contains(&field) || of_markers || of_tombstones
    }

    /// What is wrong with a marker of `owner` alone: what makes readers, appends, retirement or erasure fail.
    pub(crate) fn faults(self, document: &RawDocument, owner: &OwnerId, size: PageSize) -> Vec<String> {
        let is_tombstone = matches!(self, Self::Tombstone { .. });
        let id = document.get_str("_id").unwrap_or_default();
        let bucket = BucketId::parse(id, owner);
        let (id_is_right, page, first) = match is_tombstone {
            true => (id == tombstone_id(owner), TOMBSTONE, 1),
            false => (bucket.is_some(), PageNumber::FIRST.get() as i64, 2),
        };
        // The next page comes after a marker of the beginning, and its items have sequence numbers.
        let least = bucket.filter(|_| !is_tombstone).map_or(0, |bucket| bucket.second);
        let seconds = least as i64..=BucketId::LAST_SECOND as i64;
        let pages = first..=(MAX_SAFE_INTEGER / size.get() as u64) as i64;
        let is_date = |field: &str| document.get_datetime(field).is_ok();
        let is_in = |field: &str, range: &std::ops::RangeInclusive<i64>| {
            document.get_i64(field).is_ok_and(|number| range.contains(&number))
        };
        let swept = value(document, "swept");
        let rules = [
            ("_id", id_is_right, format!("that of a {self}")),
            ("page", document.get_i64("page").ok() == Some(page), format!("{page} as int64")),
            ("count", document.get_i32("count").ok() == Some(0), "0 as int32".to_owned()),
            ("first", is_date("first"), "a date".to_owned()),
            ("last", is_date("last"), "a date".to_owned()),
            ("firstPage", is_in("firstPage", &pages), format!("an int64 from {first} to {}", pages.end())),
            (
                "second",
                is_in("second", &seconds),
                format!("an int64 from {} to {}", seconds.start(), seconds.end()),
            ),
            ("since", is_date("since"), "a date".to_owned()),
            (OF_TOMBSTONES, !is_tombstone || is_date(OF_TOMBSTONES), "a date".to_owned()),
            (
                "swept",
                swept.map_or(!is_tombstone, |swept| swept.as_bool().is_some()),
                "true or false".to_owned(),
            ),
        ];
        let wrong = rules.into_iter().filter(|(_, is_right, _)| !is_right);
        let wrong =
            wrong.map(|(field, _, right)| format!("{field} is {}, not {right}", shown(document, field)));
        let holds = match items(document).map(Iterator::count) {
            None => Some("history is not an array".to_owned()),
            Some(0) => None,
            Some(items) => Some(format!("holds {items} items, though it is a {self}")),
        };
        wrong.chain(holds).collect()
    }
}

/// The elements of `history`, if it is an array.
fn items(document: &RawDocument) -> Option<impl Iterator> {
    match document.get("history") {
        Ok(Some(RawBsonRef::Array(history))) => Some(history.into_iter()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::care::migrations::creation;
    use pagebucket_model::definition::Definition;

    /// What the validator allows and no kind has would be reported in each history.
    #[test]
    fn the_validator_allows_these_fields_and_no_other() {
        let definition = Definition::trades();
        let [_, validator, _] = creation::commands(&definition);
        let schema =
            validator.get_document("validator").and_then(|it| it.get_document("$jsonSchema")).unwrap();
        let allowed: BTreeSet<_> =
            schema.get_document("properties").unwrap().keys().map(String::as_str).collect();
        let mut ours: BTreeSet<_> = FIELDS.into_iter().chain(OF_MARKERS).collect();
        ours.extend([OF_TOMBSTONES, &*definition.owner.field]);
        assert_eq!(allowed, ours);
    }
}
