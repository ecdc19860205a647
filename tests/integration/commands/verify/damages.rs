//! What may be wrong in a database, and what `verify` says of it.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use mongodb::Collection;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc};

use super::deletions::{TOMBSTONE, bury, retire};
use crate::harness::History;

/// One damage, which is done to the history of an owner of its own.
pub struct Damage {
    pub what: &'static str,
    /// The page whose bucket the finding names.
    pub page: u64,
    /// What follows the owner's id and `_` in the `_id` of that bucket, if it is not that of the page before.
    id: Option<&'static str>,
    /// What the line about it holds.
    pub line: &'static str,
    /// Whether it can be repaired.
    pub mends: bool,
}

const fn damage(what: &'static str, page: u64, line: &'static str, mends: bool) -> Damage {
    Damage { what, page, id: None, line, mends }
}

impl Damage {
    const fn at(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// The `_id` that the finding names.
    pub fn id(&self, history: &History, owner: u64, ids: &BTreeMap<u64, String>) -> String {
        match (self.what, self.id) {
            ("an _id before all texts", _) => "77".to_owned(),
            ("an _id after all texts", _) => "true".to_owned(),
            (_, Some(id)) => format!("{}_{id}", history.id(owner)),
            (_, None) => ids[&self.page].clone(),
        }
    }
}

pub const DAMAGES: [Damage; 46] = [
    damage("count too low", 2, "invariant 2: count is ", true),
    damage("count of a full page too high", 3, "invariant 2: count is ", true),
    // It is the only trace of lost items.
    damage("count of the last page too high", 5, "invariant 2: count is ", false),
    damage("count of another type", 3, "invariant 2: count is ", true),
    damage("first", 2, "data model: first is ", true),
    damage("last is missing", 4, "data model: last is missing", true),
    damage("the items of another page", 3, "data model: first is ", false),
    damage("another first and another last", 2, "data model: first is ", false),
    damage("another first and no last", 5, "data model: first is ", false),
    damage("no page", 3, "invariant 1: page is missing", true),
    damage("page of another type", 3, "invariant 1: page is missing", true),
    damage("another page of another type", 3, "invariant 1: page is missing", false),
    damage("no page on the first page", 1, "invariant 1: page is missing", true),
    damage("no page on the last page", 5, "invariant 1: page is missing", false),
    damage("a page is gone", 4, "invariant 1: page 3 is missing before it", false),
    damage("the first page is gone", 2, "invariant 1: page 1 is missing before it", false),
    damage("an item is gone", 2, "invariant 2: holds ", false),
    damage("an item too many", 3, "invariant 2: holds ", false),
    damage("no items", 5, "invariant 2: holds 0 items", false),
    damage("two pages have changed places", 3, "invariant 3: is page 2, after page 3", false),
    damage("an item stands twice", 4, "invariant 6: its item ", false),
    damage("another owner's", 2, "data model: ", false),
    damage("the last page is another owner's", 5, "data model: ", false),
    damage("an item without its date", 2, "data model: history.1.", false),
    damage("a value of a type that no item has", 3, "data model: history.0.", false),
    damage("a key of another length", 3, "data model: history.0.", false),
    damage("a key of another type", 2, "data model: history.1.", false),
    damage(
        "a field too many on the last page",
        5,
        "data model: has the field more, which no page has",
        false,
    ),
    damage("firstPage on the last page", 5, "data model: has the field firstPage, which no page has", false),
    damage("since on a page", 2, "data model: has the field since, which no page has", false),
    damage("nine digits", 3, "data model: _id is not the owner's id, _ and ten digits", false)
        .at("999999999"),
    damage("nine digits on the last page", 5, "data model: _id is not the owner's id", false).at("999999999"),
    damage("no digits", 3, "data model: _id is not the owner's id", false).at("x"),
    damage("an _id before all texts", 6, "data model: _id is not the owner's id", false),
    damage("an _id after all texts", 6, "data model: _id is not the owner's id", false),
    damage("retired too far", 1, "invariant 1: firstPage is 1000, after the last page", false),
    damage("a retired page is left", 2, "invariant 1: is left, though the pages before page 3 are", false),
    damage("a marker with an item", 1, "data model: holds 1 items, though it is a marker of the", false),
    damage("a marker without since", 1, "data model: since is missing, not a date", false),
    damage("a marker without firstPage", 1, "data model: firstPage is missing, not an int64", false),
    damage("a marker with a field too many", 1, "data model: has the field erased, which no marker", false),
    damage("a tombstone without since", 1, "data model: since is missing, not a date", false).at(":"),
    damage("a tombstone without erased", 1, "data model: erased is missing, not a date", false).at(":"),
    damage("a tombstone without swept", 1, "data model: swept is missing, not true or false", false).at(":"),
    damage("a tombstone with another _id", 1, "data model: _id is ", false).at("9000000000"),
    damage("a page behind a tombstone", 5, "data model: is left, though its owner is erased", false),
];

/// Does a damage to a history, past all guards.
pub async fn harm(history: &History, buckets: &Collection<Document>, owner: u64, damage: &Damage) {
    let of = |page: u64| doc! { history.owner_field: history.owner_bson(owner), "page": page as i64 };
    let this = of(damage.page);
    let set = async |query: Document, update: Document| {
        let update = buckets.update_one(query, update).bypass_document_validation(true);
        assert_eq!(update.await.expect("an answer").modified_count, 1, "{}", damage.what);
    };
    let binary = |bytes: Vec<u8>| Bson::from(Binary { subtype: BinarySubtype::Generic, bytes });
    let key = || binary(vec![7; 12]);
    match damage.what {
        "count too low" => set(this, doc! { "$inc": { "count": -1 } }).await,
        "count of the last page too high" => set(this, doc! { "$inc": { "count": 2 } }).await,
        "count of another type" => set(this, doc! { "$set": { "count": history.page_size as f64 } }).await,
        "count of a full page too high" => set(this, doc! { "$inc": { "count": 2 } }).await,
        "the items of another page" => {
            let other = buckets.find_one(of(2)).await.expect("an answer").expect("a bucket");
            set(this, doc! { "$set": { "history": other.get_array("history").expect("items") } }).await;
        }
        "another first and another last" => {
            let dates = [1, 2].map(DateTime::from_millis);
            set(this, doc! { "$set": { "first": dates[0], "last": dates[1] } }).await;
        }
        "another first and no last" => {
            let first = DateTime::from_millis(1);
            set(this, doc! { "$set": { "first": first }, "$unset": { "last": 1 } }).await;
        }
        "page of another type" => set(this, doc! { "$set": { "page": 3.0 } }).await,
        "another page of another type" => set(this, doc! { "$set": { "page": 7.0 } }).await,
        "first" => set(this, doc! { "$set": { "first": DateTime::from_millis(1) } }).await,
        "last is missing" => set(this, doc! { "$unset": { "last": 1 } }).await,
        "no page" | "no page on the first page" | "no page on the last page" => {
            set(this, doc! { "$unset": { "page": 1 } }).await;
        }
        "a page is gone" => drop(buckets.delete_one(of(3)).await.expect("an answer")),
        "the first page is gone" => drop(buckets.delete_one(of(1)).await.expect("an answer")),
        "an item is gone" => {
            let whole = buckets.find_one(this.clone()).await.expect("an answer").expect("a bucket");
            let items = whole.get_array("history").expect("items");
            let before = items[items.len() - 2].as_document().expect("an item");
            let last = before.get_datetime(history.date).expect("a date");
            let pop = doc! { "$pop": { "history": 1 }, "$inc": { "count": -1 }, "$set": { "last": last } };
            set(this, pop).await;
        }
        "an item too many" => {
            let whole = buckets.find_one(this.clone()).await.expect("an answer").expect("a bucket");
            let first = whole.get_array("history").expect("items")[0].clone();
            set(this, doc! { "$push": { "history": first }, "$inc": { "count": 1 } }).await;
        }
        "no items" => set(this, doc! { "$set": { "history": [], "count": 0 } }).await,
        "two pages have changed places" => {
            set(of(2), doc! { "$set": { "page": 1_000_i64 } }).await;
            set(of(3), doc! { "$set": { "page": 2_i64 } }).await;
            set(of(1_000), doc! { "$set": { "page": 3_i64 } }).await;
        }
        "an item stands twice" => {
            set(of(2), doc! { "$set": { format!("history.1.{}", history.key): key() } }).await;
            set(this, doc! { "$set": { format!("history.0.{}", history.key): key() } }).await;
        }
        "another owner's" | "the last page is another owner's" => {
            set(this, doc! { "$set": { history.owner_field: history.owner_bson(9_999) } }).await;
        }
        "an item without its date" => {
            set(this, doc! { "$unset": { format!("history.1.{}", history.date): 1 } }).await;
        }
        "a value of a type that no item has" => {
            set(this, doc! { "$set": { "history.0.more": Bson::MaxKey } }).await;
        }
        "a key of another length" | "a key of another type" => {
            let (place, key) = match damage.what {
                "a key of another length" => (0, binary(vec![7; 11])),
                _ => (1, "7".repeat(12).into()),
            };
            set(this, doc! { "$set": { format!("history.{place}.{}", history.key): key } }).await;
        }
        "a field too many on the last page" => set(this, doc! { "$set": { "more": 1 } }).await,
        "firstPage on the last page" => set(this, doc! { "$set": { "firstPage": 1_i64 } }).await,
        "since on a page" => set(this, doc! { "$set": { "since": DateTime::now() } }).await,
        "nine digits" | "nine digits on the last page" | "no digits" => {
            let mut page = buckets.find_one_and_delete(this).await.expect("an answer").expect("a bucket");
            page.insert("_id", damage.id(history, owner, &BTreeMap::new()));
            buckets.insert_one(page).await.expect("a text");
        }
        "an _id before all texts" | "an _id after all texts" => {
            let mut page = buckets.find_one(of(5)).await.expect("an answer").expect("a bucket");
            let id = if damage.what == "an _id before all texts" { Bson::from(77) } else { true.into() };
            page.extend(doc! { "_id": id, "page": 6_i64 });
            buckets.insert_one(page).bypass_document_validation(true).await.expect("an answer");
        }
        "retired too far" => {
            retire(history, buckets, owner, 3, true).await;
            set(this, doc! { "$set": { "firstPage": 1_000_i64 } }).await;
        }
        "a retired page is left" => {
            retire(history, buckets, owner, 3, false).await;
            set(of(1), doc! { "$set": { "swept": true } }).await;
        }
        "a marker with an item" => {
            let first = buckets.find_one(this.clone()).await.expect("an answer").expect("a bucket");
            retire(history, buckets, owner, 3, true).await;
            let item = first.get_array("history").expect("items")[0].clone();
            set(this, doc! { "$push": { "history": item } }).await;
        }
        "a marker without since" | "a marker without firstPage" => {
            retire(history, buckets, owner, 3, true).await;
            let field = damage.what.rsplit(' ').next().expect("a field");
            set(this, doc! { "$unset": { field: 1 } }).await;
        }
        "a marker with a field too many" => {
            retire(history, buckets, owner, 3, true).await;
            set(this, doc! { "$set": { "erased": DateTime::now() } }).await;
        }
        "a tombstone without since" | "a tombstone without erased" | "a tombstone without swept" => {
            bury(history, buckets, owner, true).await;
            let field = damage.what.rsplit(' ').next().expect("a field");
            let tombstone = doc! { history.owner_field: history.owner_bson(owner), "page": TOMBSTONE };
            set(tombstone, doc! { "$unset": { field: 1 } }).await;
        }
        "a tombstone with another _id" => {
            bury(history, buckets, owner, true).await;
            let tombstone = doc! { history.owner_field: history.owner_bson(owner), "page": TOMBSTONE };
            let found = buckets.find_one_and_delete(tombstone).await.expect("an answer");
            let mut tombstone = found.expect("a tombstone");
            tombstone.insert("_id", damage.id(history, owner, &BTreeMap::new()));
            buckets.insert_one(tombstone).await.expect("a text");
        }
        "a page behind a tombstone" => {
            let pages = of(1).get(history.owner_field).cloned();
            let pages = buckets.find(doc! { history.owner_field: pages });
            let pages: Vec<Document> = pages.await.expect("an answer").try_collect().await.expect("pages");
            bury(history, buckets, owner, true).await;
            buckets.insert_many(pages).await.expect("valid pages");
        }
        other => panic!("no such damage: {other}"),
    }
}
