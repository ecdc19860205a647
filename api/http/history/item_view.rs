//! The JSON of stored items, alone and on their page, and its documentation.

use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use axum::body::Bytes;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

use super::item_schemas::Item;
use crate::definition::Definition;
use crate::domain::{OwnerId, PageNumber, Seq};
use crate::http::schemas::{ordinal, owner_id};
use crate::store::history::{Bucket, Stored};

/// The member of an answer that says whose history it is. The definition names it.
#[derive(Debug)]
pub struct OwnerMember {
    definition: Arc<Definition>,
    id: OwnerId,
}

impl OwnerMember {
    /// For the history of `id`.
    pub fn new(definition: &Arc<Definition>, id: &OwnerId) -> Self {
        Self { definition: Arc::clone(definition), id: id.clone() }
    }
}

/// The documentation of [`OwnerMember`].
pub fn owner_member() -> RefOr<Schema> {
    ObjectBuilder::new().property("{ownerField}", owner_id()).required("{ownerField}").into()
}

impl Serialize for OwnerMember {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(Some(1))?;
        members.serialize_entry(&self.definition.owner.field, &self.id)?;
        members.end()
    }
}

/// A stored item.
#[derive(Debug, Clone)]
pub struct ItemView {
    seq: Seq,
    json: Box<RawValue>,
}

impl ItemView {
    /// The item as it is stored.
    pub fn new(item: &Stored<'_>) -> Self {
        let mut json = Vec::with_capacity(2 * item.document().as_bytes().len());
        write_item(&mut json, format_args!("\"seq\":{}", item.seq), item);
        Self::of_json(item.seq, json)
    }

    /// The JSON of the item at `seq`, as it was written before.
    fn of_json(seq: Seq, json: Vec<u8>) -> Self {
        let json = String::from_utf8(json).expect("JSON is UTF-8");
        Self { seq, json: RawValue::from_string(json).expect("an item is an object") }
    }

    /// Its sequence number.
    pub fn seq(&self) -> Seq {
        self.seq
    }
}

impl Serialize for ItemView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json.serialize(serializer)
    }
}

/// Writes an object that begins with the members `first` and has all members of the item.
fn write_item(json: &mut Vec<u8>, first: fmt::Arguments<'_>, item: &Stored<'_>) {
    write!(json, "{{{first}").expect("a vector takes all bytes");
    item.write_members(json);
    json.push(b'}');
}

/// The JSON of a stored item and the number of its page.
pub fn placed(page: PageNumber, item: &Stored<'_>) -> Vec<u8> {
    let mut json = Vec::new();
    write_item(&mut json, format_args!("\"page\":{page},\"seq\":{}", item.seq), item);
    json
}

/// A page as it is stored: a bucket.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemPage)]
pub struct PageView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    #[schema(schema_with = ordinal)]
    page: PageNumber,
    /// Whether the page is full. A full page never changes.
    full: bool,
    /// Sequence number of the first {item}.
    #[schema(schema_with = ordinal)]
    first_seq: Seq,
    /// Number of {manyItems} on the page.
    #[schema(minimum = 1)]
    count: usize,
    // The last member: [`PageJson`] relies on it.
    /// In order of arrival.
    #[schema(value_type = Vec<Item>, min_items = 1)]
    items: Vec<ItemView>,
}

/// The JSON of a page.
#[derive(Debug, Clone)]
pub struct PageJson {
    /// The whole.
    pub json: Bytes,
    first: Seq,
    /// Where each item ends in it. An item begins after the comma that follows the one before.
    ends: Box<[u32]>,
}

impl PageJson {
    /// The page of `owner` as it is stored.
    pub fn new(definition: &Arc<Definition>, owner: &OwnerId, bucket: &Bucket) -> Self {
        let view = PageView {
            owner: OwnerMember::new(definition, owner),
            page: bucket.page(),
            full: bucket.full(),
            first_seq: bucket.first_seq(),
            count: bucket.count(),
            items: Vec::new(),
        };
        let mut json = serde_json::to_vec(&view).expect("a page holds only texts and numbers");
        // Items are written in place of the empty list: pages are the hottest answer.
        json.truncate(json.len() - "]}".len());
        let end = |item: Stored<'_>| {
            if item.seq != bucket.first_seq() {
                json.push(b',');
            }
            write_item(&mut json, format_args!("\"seq\":{}", item.seq), &item);
            u32::try_from(json.len()).expect("a page has at most 4 MiB of BSON, and its JSON less than 4 GiB")
        };
        let ends = bucket.items().map(end).collect();
        json.extend_from_slice(b"]}");
        // Without spare capacity, because the page cache may keep it.
        Self { json: json.into_boxed_slice().into(), first: bucket.first_seq(), ends }
    }

    /// Size on the heap, in bytes.
    pub fn size(&self) -> usize {
        self.json.len() + size_of_val(&*self.ends)
    }

    /// The items of the page, in order of arrival.
    pub fn items(&self) -> impl Iterator<Item = ItemView> {
        (0..self.ends.len()).map(|place| {
            let seq = self.first.plus(place);
            ItemView::of_json(seq, self.json[self.range(place)].to_vec())
        })
    }

    /// The members of the item at this address, without the braces; `None` if it is on another page.
    pub fn members(&self, seq: Seq) -> Option<&[u8]> {
        let place = seq.get().checked_sub(self.first.get())?;
        let range = (place < self.ends.len() as u64).then(|| self.range(place as usize))?;
        Some(&self.json[range.start + 1..range.end - 1])
    }

    fn range(&self, place: usize) -> Range<usize> {
        let end = self.ends[place] as usize;
        let start = match place.checked_sub(1) {
            Some(before) => self.ends[before] as usize + ",".len(),
            // The first item follows the bracket that opens the list.
            None => {
                let list = b"\"items\":[";
                let at = self.json.windows(list.len()).position(|part| part == list);
                at.expect("a page has a list of items") + list.len()
            }
        };
        start..end
    }
}
