//! The history that a test is about: what the test must know of the definition, and items to send.

mod known;

use std::ops::RangeInclusive;

use mongodb::bson::{Bson, DateTime, Document, doc};
use serde_json::{Value, json};

pub use known::{ALL, NOTES, READINGS, SERIES, TRACES, TRADES};

/// The member of a listing that tells how many items a history has.
pub const TOTAL: &str = "totalItems";

/// The kind of the problem of an item that its definition refuses.
pub const INVALID_ITEM: &str = "invalid-item";

/// The kind of the problem of a `seq` that no item has.
pub const ITEM_NOT_FOUND: &str = "item-not-found";

/// A history, by its definition.
///
/// Tests count owners and items from 1. The generated item `n` holds the number `n`, by which tests tell
/// items apart; where a test appends items in order from 1, the number of an item is its `seq`.
#[derive(Debug, Clone, Copy)]
pub struct History {
    /// The name of the collection and the last part of the route, as `trades`.
    pub name: &'static str,
    /// The owners' collection in routes, as `customers`.
    pub owners: &'static str,
    /// The owner's name in JSON and database, as `customerId`.
    pub owner_field: &'static str,
    /// Items on a page.
    pub page_size: u64,
    /// The most bytes of a stored item, with its key and its place.
    pub max_item_bytes: u64,
    /// The properties, as columns of CSV; none where some cannot be cells.
    pub columns: &'static [&'static str],
    /// The property that spans of time go by.
    pub date: &'static str,
    /// The engine's own field in a stored item.
    pub key: &'static str,
    /// The directory with the definition; `None` for the definition that the binary embeds.
    pub definitions: Option<&'static str>,
    /// Where an item holds its number.
    number: &'static [&'static str],
    owner: fn(u64) -> Value,
    item: fn(u64) -> Value,
    /// The generated item as the database holds it, without its date.
    stored: fn(u64) -> Document,
    /// Whether tests store generated items alone, so that each stored item is compared with the generated
    /// one.
    generated_alone: bool,
}

impl History {
    /// The same history in a test that stores other items than generated ones.
    pub fn holding_any(&self) -> &'static Self {
        Box::leak(Box::new(Self { generated_alone: false, ..*self }))
    }

    /// The owner in JSON.
    pub fn owner(&self, owner: u64) -> Value {
        (self.owner)(owner)
    }

    /// The owner in the database.
    pub fn owner_bson(&self, owner: u64) -> Bson {
        match self.owner(owner) {
            Value::String(id) => id.into(),
            number => Bson::Int64(number.as_i64().expect("an id")),
        }
    }

    /// The owner in addresses, and in the `_id` of buckets.
    pub fn id(&self, owner: u64) -> String {
        match self.owner(owner) {
            Value::String(id) => id,
            number => number.to_string(),
        }
    }

    /// The owner that has this id in the database.
    pub fn owner_of(&self, id: &Bson) -> u64 {
        let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let digits = text.trim_start_matches(|letter: char| !letter.is_ascii_digit());
        let number: u64 = digits.parse().expect("an owner of the tests");
        (number..number + 2).find(|owner| self.owner_bson(*owner) == *id).expect("an owner of the tests")
    }

    /// These owners in the order of listings.
    pub fn in_order(&self, owners: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let mut owners: Vec<u64> = owners.into_iter().collect();
        let order = |owner: &u64| match self.owner(*owner) {
            Value::String(id) => (0, id),
            number => (number.as_u64().expect("an id"), String::new()),
        };
        owners.sort_by_key(order);
        owners
    }

    /// The address of the owners, as `/v1/customers`.
    pub fn owners_path(&self) -> String {
        format!("/v1/{}", self.owners)
    }

    /// The address of an owner, as `/v1/customers/7`.
    pub fn owner_path(&self, owner: u64) -> String {
        format!("/v1/{}/{}", self.owners, self.id(owner))
    }

    /// The address of an owner's history, and what follows, as `/v1/customers/7/trades?page=2`.
    pub fn at(&self, owner: u64, rest: &str) -> String {
        format!("{}/{}{rest}", self.owner_path(owner), self.name)
    }

    /// The address of an owner's history.
    pub fn path(&self, owner: u64) -> String {
        self.at(owner, "")
    }

    /// The address of an owner's uploads.
    pub fn uploads(&self, owner: u64) -> String {
        self.at(owner, "/upload")
    }

    /// The address of an owner's uploads that are answered line by line.
    pub fn outcomes(&self, owner: u64) -> String {
        self.at(owner, "/upload.ndjson")
    }

    /// The address of uploads of many owners, as `/v1/trades/upload`.
    pub fn of_many(&self) -> String {
        format!("/v1/{}/upload", self.name)
    }

    /// The address of uploads of many owners that are answered line by line.
    pub fn outcomes_of_many(&self) -> String {
        format!("/v1/{}/upload.ndjson", self.name)
    }

    /// What a command of the binary takes to know the definition: nothing for the embedded one.
    pub fn flags(&self, command: &str) -> Vec<&'static str> {
        let Some(directory) = self.definitions else { return Vec::new() };
        match command {
            "serve" | "adopt" | "migrate" | "openapi" | "verify" | "erase" | "series" => {
                vec!["--histories", directory]
            }
            "import" | "export" | "tail" => vec!["--histories", directory, "--history", self.name],
            _ => Vec::new(),
        }
    }

    /// A command on the collection, as `update trades`.
    pub fn command(&self, name: &str) -> String {
        format!("{name} {}", self.name)
    }

    /// How many items so many pages hold: 2.5 are two pages and a half.
    pub fn pages(&self, pages: f64) -> u64 {
        (pages * self.page_size as f64) as u64
    }

    /// The page of a `seq`.
    pub fn page_of(&self, seq: u64) -> u64 {
        seq.div_ceil(self.page_size)
    }

    /// How many items a window shows that names no limit.
    pub fn default_limit(&self) -> u64 {
        self.page_size.min(100)
    }

    /// A generated item, without a date.
    pub fn item(&self, number: u64) -> Value {
        (self.item)(number)
    }

    /// A generated item of this date.
    pub fn item_at(&self, number: u64, date: &str) -> Value {
        let mut item = self.item(number);
        item[self.date] = json!(date);
        item
    }

    /// An array of generated items.
    pub fn items(&self, numbers: RangeInclusive<u64>) -> Value {
        numbers.map(self.item).collect()
    }

    /// Generated items, a line each.
    pub fn lines(&self, numbers: impl IntoIterator<Item = u64>) -> String {
        numbers.into_iter().map(|number| format!("{}\n", self.item(number))).collect()
    }

    /// A line of an upload of many owners.
    pub fn line_of(&self, owner: u64, number: u64) -> String {
        let mut item = self.item_at(number, "2004-01-09T00:00:00Z");
        item[self.owner_field] = self.owner(owner);
        format!("{item}\n")
    }

    /// The number of an item in JSON.
    pub fn number(&self, item: &Value) -> u64 {
        let number = self.number.iter().fold(item, |value, name| &value[name]);
        number.as_u64().unwrap_or_else(|| panic!("no number: {item}"))
    }

    /// The number of a stored item.
    pub fn stored_number(&self, item: &Document) -> i64 {
        let (last, outer) = self.number.split_last().expect("a name");
        let inner = outer.iter().fold(item, |item, name| item.get_document(name).expect("an object"));
        inner.get_i64(last).expect("a number")
    }

    /// The name of the number in queries, as `reading.number`.
    pub fn number_path(&self) -> String {
        self.number.join(".")
    }

    /// A generated item as the database holds it.
    pub fn stored_item(&self, number: u64, date: DateTime) -> Document {
        let mut item = (self.stored)(number);
        item.insert(self.date, date);
        item
    }

    /// Whether a stored item is the generated one of its number, whatever its date and its key.
    pub fn is_as_sent(&self, item: &Document) -> bool {
        let mut item = item.clone();
        item.remove(self.date);
        item.remove(self.key);
        !self.generated_alone || item == (self.stored)(self.stored_number(&item) as u64)
    }

    /// Whether an item in an answer is the generated one of its number, with a `seq` and a date: numbers by
    /// value.
    pub fn shows_what_was_sent(&self, item: &Value) -> bool {
        let (mut shown, mut sent) = (item.clone(), self.item(self.number(item)));
        let date = item[self.date].clone();
        let Some(shown) = shown.as_object_mut().filter(|_| date.is_string()) else { return false };
        // The page of an item is named where it stands alone.
        shown.remove("page");
        shown.remove("seq");
        sent[self.date] = date;
        same(&Value::Object(shown.clone()), &sent)
    }

    /// A bucket as an append would have left it, of items with these numbers and dates.
    pub fn bucket(&self, owner: u64, second: i64, page: u64, items: &[(u64, DateTime)]) -> Document {
        let dates = || items.iter().map(|(_, date)| *date);
        let history: Vec<Document> =
            items.iter().map(|(number, date)| self.stored_item(*number, *date)).collect();
        doc! {
            "_id": format!("{}_{second:010}", self.id(owner)), self.owner_field: self.owner_bson(owner),
            "page": page as i64, "count": items.len() as i32, "first": dates().min(), "last": dates().max(),
            "history": history,
        }
    }

    /// The totals of this history in the view of an owner: of `GET /v1/customers/7` and of its listing.
    pub fn totals<'a>(&self, owner: &'a Value) -> &'a Value {
        &owner[self.name]
    }

    /// How many owners an upload of many owners had, by its summary or its problem.
    pub fn owners_of<'a>(&self, summary: &'a Value) -> &'a Value {
        &summary["owners"]
    }

    /// The sequence numbers of a listing of items whose numbers are their sequence numbers.
    #[track_caller]
    pub fn seqs(&self, listing: &Value) -> Vec<u64> {
        let items = listing["items"].as_array().expect("items");
        let seq = |item: &Value| {
            assert_eq!(item["seq"], self.number(item), "an item at another's address: {item}");
            item["seq"].as_u64().expect("a number")
        };
        items.iter().map(seq).collect()
    }
}

/// Whether two values are the same: `1` and `1.0` are, and the order of names is nothing.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let found = |(name, one)| other.get(name).is_some_and(|other| same(one, other));
            one.len() == other.len() && one.iter().all(found)
        }
        _ => one == other,
    }
}
