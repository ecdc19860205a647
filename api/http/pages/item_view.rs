//! The JSON of stored items, alone and on their page, and its documentation.

use std::io::Write;

use axum::body::Bytes;
use pagebucket_engine::Bucket;
use pagebucket_engine::internal::Epoch;
use pagebucket_engine::reads::StoredItem;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, OwnerMember, PageNumber, Seq, SeqRange};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::item_schemas::Item;
use crate::caching::control::Caching;
use crate::schemas::owner_member;

/// A stored item.
#[derive(Debug, Serialize)]
pub struct ItemView(Box<RawValue>);

impl ItemView {
    /// The item as it is stored.
    pub fn new(item: &StoredItem<'_>) -> Self {
        let mut json = Vec::with_capacity(2 * item.document().as_bytes().len());
        write_item(&mut json, item);
        Self::of_json(json)
    }

    /// The JSON of an item, as it was written before.
    fn of_json(json: Vec<u8>) -> Self {
        let json = String::from_utf8(json).expect("JSON is UTF-8");
        Self(RawValue::from_string(json).expect("an item is an object"))
    }
}

/// Appends the JSON of items to `json`, with commas between them.
pub(crate) fn write_items<'a>(json: &mut Vec<u8>, items: impl Iterator<Item = StoredItem<'a>>) {
    for (place, item) in items.enumerate() {
        if place > 0 {
            json.push(b',');
        }
        write_item(json, &item);
    }
}

fn write_item(json: &mut Vec<u8>, item: &StoredItem<'_>) {
    write!(json, "{{\"seq\":{}", item.seq).expect("a vector takes all bytes");
    item.write_members(json);
    json.push(b'}');
}

/// A page as it is stored: a bucket.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemPage)]
pub(crate) struct StoredPage {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    owner: OwnerMember,
    #[schema(value_type = u64, minimum = 1)]
    page: PageNumber,
    /// Whether the page is full. A full page never changes.
    full: bool,
    /// Sequence number of the first {item}.
    #[schema(value_type = u64, minimum = 1)]
    first_seq: Seq,
    /// Number of {manyItems} on the page.
    #[schema(minimum = 1)]
    count: usize,
    // The last member: [`Page`] relies on it.
    /// In order of arrival.
    #[schema(value_type = Vec<Item>, min_items = 1)]
    items: Vec<ItemView>,
}

/// A page as it was read.
#[derive(Debug)]
pub struct Page {
    /// Its JSON.
    pub json: Bytes,
    /// How its JSON, or that of one of its items, may be cached.
    pub caching: Caching,
    /// Whether the page is full, so that it never changes.
    pub full: bool,
    first: Seq,
    /// Where each item begins in the JSON; at the end, where the next one would. Between two items is a
    /// comma.
    begins: Box<[u32]>,
}

impl Page {
    /// The page of `owner` as it is stored.
    pub fn new(epoch: Epoch, definition: &Definition, owner: &OwnerId, bucket: &Bucket) -> Self {
        let (page, full, first) = (bucket.page(), bucket.full(), bucket.first_seq());
        let caching = match full {
            true => Caching::of_full(epoch, definition, owner, page),
            false => Caching::of_tail(epoch, definition, owner, bucket.totals()),
        };
        let view = StoredPage {
            owner: OwnerMember::new(&definition.owner.field, owner),
            page,
            full,
            first_seq: first,
            count: bucket.count(),
            items: Vec::new(),
        };
        let mut json = serde_json::to_vec(&view).expect("a page holds only texts and numbers");
        // Items are written in place of the empty list: pages are the hottest answer.
        json.truncate(json.len() - "]}".len());
        let small = |at| u32::try_from(at).expect("the JSON of 4 MiB of BSON has less than 4 GiB");
        let mut begins = Vec::with_capacity(bucket.count() + 1);
        for item in bucket.items() {
            begins.push(small(json.len()));
            write_item(&mut json, &item);
            json.push(b',');
        }
        begins.push(small(json.len()));
        json.pop();
        json.extend_from_slice(b"]}");
        // Without spare capacity, because the page cache may keep it.
        Self { json: json.into_boxed_slice().into(), caching, full, first, begins: begins.into() }
    }

    /// Size on the heap, in bytes.
    pub fn size(&self) -> usize {
        self.json.len() + size_of_val(&*self.begins) + self.caching.tag.header().len()
    }

    /// Number of its items.
    pub fn count(&self) -> usize {
        self.begins.len() - 1
    }

    /// The items in `range` that are on the page, in order of arrival.
    pub fn items(&self, range: SeqRange) -> impl Iterator<Item = ItemView> {
        range.seqs().filter_map(|seq| Some(ItemView::of_json(self.item(seq)?.to_vec())))
    }

    /// The JSON of the item at this address; `None` if it is on another page.
    pub fn item(&self, seq: Seq) -> Option<&[u8]> {
        let place = usize::try_from(seq.get().checked_sub(self.first.get())?).ok()?;
        let (begin, next) = (*self.begins.get(place)?, *self.begins.get(place + 1)?);
        Some(&self.json[begin as usize..next as usize - ",".len()])
    }
}
