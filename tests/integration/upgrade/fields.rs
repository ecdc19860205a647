//! Which stored fields a version reads. Each field of each kind of document is altered in a copy of the
//! database, and something that the version says must be another thing then. What nothing says is named here,
//! with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::{FutureExt, TryStreamExt};
use mongodb::bson::{Bson, Decimal128, Document, doc};
use mongodb::{Collection, Database};
use pagebucket_engine::Deadline;
use pagebucket_engine::series::SeriesQuery;
use pagebucket_http::auth::keys::Keys;
use pagebucket_model::domain::{Clock, Order};
use pagebucket_model::summary::{Fill, SpanLength, Spans, SummaryShape, Zone};

use super::fixture::{Exchange, Fixture};
use super::{KEY, RELEASED, command, loaded_with, reopened, setup, write};
use crate::harness::{PATIENCE, SERIES, engine, shared, spawn};

/// Something that a version says of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reading {
    /// What it answers to the requests of the fixture that read, and have this in them.
    Answers(&'static str),
    /// What it answers to the repeats of appends.
    Repeats,
    /// What `verify` prints.
    Verify,
    /// What `migrate --check` prints.
    Check,
    /// The API keys, and whose the key of the fixture is.
    ApiKeys,
    /// What is known of the adoption.
    Adoption,
    /// The beginning of all tags.
    Epoch,
    /// What the trades of all customers add up to, by the route and in the view that other programs read.
    Series,
    /// What becomes of this erased customer by a reopening.
    Reopening(u64),
}

use Reading::{Adoption, Answers, ApiKeys, Check, Epoch, Reopening, Repeats, Series, Verify};

impl Reading {
    /// Whether it leaves another database behind than it found.
    fn changes(self) -> bool {
        matches!(self, Repeats | ApiKeys | Series | Reopening(_))
    }
}

/// What reads the documents of each kind, the quickest first.
const READINGS: &[(&str, &[Reading])] = &[
    ("adoptions", &[Adoption]),
    ("api_keys", &[ApiKeys]),
    ("histories", &[Check]),
    ("idempotency_keys", &[Repeats]),
    ("kept_summaries", &[Answers("/v1/rooms/room-1"), Verify]),
    ("migrations", &[Check, Epoch]),
    ("notes", &[Answers("/v1/rooms"), Verify, Repeats]),
    ("page_views", &[Answers("/v1/page-views")]),
    ("series", &[Series]),
    ("series_generations", &[Series]),
    ("summary_tiles", &[Verify, Answers("summary")]),
    ("trades", &[Answers("/v1/customers"), Verify, Repeats, Reopening(2), Reopening(3)]),
    ("trades_series_", &[Series]),
];

/// Fields of kinds of documents of which nothing says that they are other ones, and why.
const UNSEEN: &[(&str, &[&str], &str)] = &[
    ("adoptions", &["latest", "started"], "an operator reads them"),
    (
        "adoptions",
        &["parameters.ignore", "parameters.map", "parameters.order", "parameters.owner", "parameters.shape"],
        "a copy that was complete is not complete under others; this one followed no changes",
    ),
    ("histories", &["item", "itemSha256"], "an operator reads them: an item may get more members"),
    ("histories", &["markers"], "an instance that runs learns by another number that there are new markers"),
    ("idempotency_keys", &["touched"], "the time of the last use, after which the record is deleted"),
    (
        "kept_summaries",
        &["first", "last"],
        "which tiles a span of time meets: the dates of these pages are gone",
    ),
    ("kept_summaries", &["roomId"], "an erasure deletes by it; `_id` has it too"),
    ("migrations", &["appliedAt", "name"], "an operator reads them"),
    ("migrations", &["compatible"], "asked of a migration that a version does not know"),
    ("notes, marker", &["first", "last"], "a marker has no items, so it has no dates"),
    ("notes, marker", &["second"], "continued from when the marker is the last page"),
    ("notes, marker", &["since", "swept"], "when to sweep, which is done"),
    ("page_views", &["_id"], "a page and a minute identify the counts"),
    (
        "series",
        &["batch.from", "batch.g", "batch.o", "batch.to"],
        "what the feeder announced last, which the next one compares with the measurements",
    ),
    (
        "series",
        &["holder", "place", "scanAfter", "term", "until"],
        "the lease and the place of a feeder; the next one has its own, and compares all pages without a place",
    ),
    ("series", &["raises"], "a reader compares what it is before with what it is afterwards"),
    ("series, current", &["latest"], "the number of a later build is greater"),
    (
        "series_generations",
        &["_id", "forgotten", "next", "term"],
        "for the next change of the generation, and for what is left to delete; readers go by the owner",
    ),
    (
        "series_generations, pending",
        &["_id", "current", "forgotten", "next", "owner", "pending", "term"],
        "its owner is erased and has no measurements that count",
    ),
    ("trades, marker", &["first", "last"], "as in notes"),
    ("trades, marker", &["second"], "as in notes"),
    ("trades, marker", &["since", "swept"], "as in notes"),
    ("trades, swept tombstone", &["first", "last"], "as in notes"),
    ("trades, swept tombstone", &["erased"], "the audit log says when"),
    ("trades, swept tombstone", &["since"], "when to sweep, which is done"),
    ("trades, tombstone", &["first", "last"], "as in notes"),
    ("trades, tombstone", &["erased"], "the audit log says when"),
    (
        "trades, tombstone",
        &["firstPage", "second"],
        "continued from after the sweep: of a swept one it is seen",
    ),
    ("trades, tombstone", &["since"], "when to sweep"),
];

/// What a document is, where a collection has several kinds.
fn kind(collection: &str, document: &Document) -> String {
    let kind = match collection {
        "notes" | "trades" if document.contains_key("erased") => {
            if document.get_bool("swept").unwrap_or(false) { ", swept tombstone" } else { ", tombstone" }
        }
        "notes" | "trades" if document.contains_key("firstPage") => ", marker",
        "series" if document.contains_key("current") => ", current",
        "series_generations" if document.contains_key("pending") => ", pending",
        _ => "",
    };
    format!("{collection}{kind}")
}

/// A document of the fixture with another value in one place.
struct Alteration {
    collection: String,
    kind: String,
    /// The names on the way to the value, without the numbers of elements.
    field: String,
    before: Document,
    after: Document,
}

/// Other values of the same type, which no other document has: of bytes, those with another first, middle and
/// last byte.
fn others(value: &Bson) -> Vec<Bson> {
    let flipped = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        bytes
    };
    vec![match value {
        Bson::Binary(binary) => {
            let last = binary.bytes.len() - 1;
            let places = BTreeSet::from([0, last / 2, last]).into_iter();
            let other = |at| {
                Bson::Binary(mongodb::bson::Binary {
                    subtype: binary.subtype,
                    bytes: flipped(&binary.bytes, at),
                })
            };
            return places.map(other).collect();
        }
        Bson::Boolean(value) => Bson::Boolean(!value),
        Bson::Int32(number) => Bson::Int32(number + 100),
        Bson::Int64(number) => Bson::Int64(number + 100),
        Bson::DateTime(date) => {
            Bson::DateTime(mongodb::bson::DateTime::from_millis(date.timestamp_millis() + 86_400_000))
        }
        Bson::Decimal128(number) => {
            let bytes = flipped(&number.bytes(), 0).try_into().expect("16 bytes");
            Bson::Decimal128(Decimal128::from_bytes(bytes))
        }
        Bson::ObjectId(id) => {
            let bytes = flipped(&id.bytes(), 11).try_into().expect("12 bytes");
            Bson::ObjectId(mongodb::bson::oid::ObjectId::from_bytes(bytes))
        }
        Bson::String(text) => {
            let last = if text.ends_with('a') { 'b' } else { 'a' };
            let begin = text.char_indices().next_back().map_or("", |(at, _)| &text[..at]);
            Bson::String(format!("{begin}{last}"))
        }
        Bson::Null => Bson::Int32(1),
        Bson::Array(elements) if elements.is_empty() => Bson::Array(vec![Bson::Int32(1)]),
        other => panic!("no other value of {other}"),
    }]
}

/// All alterations of a value: each has the field, and the whole value with another one in its place.
fn alterations(value: &Bson, field: &str) -> Vec<(String, Bson)> {
    let below = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
    match value {
        Bson::Document(document) => {
            let members = document.iter().flat_map(|(name, member)| {
                let found = alterations(member, &below(name)).into_iter();
                found.map(move |(field, other)| {
                    let mut document = document.clone();
                    document.insert(name, other);
                    (field, Bson::Document(document))
                })
            });
            members.collect()
        }
        Bson::Array(elements) if !elements.is_empty() => {
            let found = elements.iter().enumerate().flat_map(|(at, element)| {
                let found = alterations(element, field).into_iter();
                found.map(move |(field, other)| {
                    let mut elements = elements.clone();
                    elements[at] = other;
                    (field, Bson::Array(elements))
                })
            });
            // Of many elements, the first that has the field.
            let mut once = BTreeSet::new();
            found.filter(|(field, _)| once.insert(field.clone())).collect()
        }
        leaf => others(leaf).into_iter().map(|other| (field.to_owned(), other)).collect(),
    }
}

/// An alteration of each field of each kind of document: of those of a kind that have the same names, the one
/// with the most fields below them.
fn all(fixture: &Fixture) -> Vec<Alteration> {
    let mut kinds: BTreeMap<_, (Document, Vec<(String, Bson)>)> = BTreeMap::new();
    for (collection, document) in fixture.documents("database.jsonl.gz") {
        let names: BTreeSet<String> = document.keys().cloned().collect();
        let kind = kind(&collection, &document);
        let found = alterations(&Bson::Document(document.clone()), "");
        let known = kinds.entry((collection, kind, names)).or_default();
        if found.len() >= known.1.len() {
            *known = (document, found);
        }
    }
    let altered = kinds.into_iter().flat_map(|((collection, kind, _), (before, found))| {
        found.into_iter().map(move |(field, after)| {
            let Bson::Document(after) = after else { unreachable!("of a document") };
            let (collection, kind, before) = (collection.clone(), kind.clone(), before.clone());
            Alteration { collection, kind, field, before, after }
        })
    });
    altered.collect()
}

/// What the version says of this database.
async fn read(fixture: &Fixture, database: &Database, reading: Reading) -> String {
    let setup = async || setup(fixture, shared().await.uri(), database);
    let say = async |arguments: &[&str]| {
        let ended = command(fixture, database, arguments).await;
        // The log has times.
        let last = ended.err.lines().last().filter(|line| line.starts_with("pagebucket: "));
        format!("{:?} {} {last:?}", ended.status, ended.out)
    };
    match reading {
        Answers(_) | Repeats => {
            let service = setup().await.start().await;
            let asks = |exchange: &&Exchange| match reading {
                Answers(part) => exchange.asks("GET") && exchange.asks(part),
                _ => exchange.asks("POST"),
            };
            let mut found = None;
            for exchange in fixture.exchanges().iter().filter(asks) {
                found = exchange.difference(&service.client).await;
                if found.is_some() {
                    break;
                }
            }
            assert!(service.stop().await);
            found.unwrap_or_default()
        }
        Verify => say(&["verify", "--pages-per-second", "1000000"]).await,
        Check => say(&["migrate", "--check"]).await,
        ApiKeys => {
            let store = setup().await.store().await;
            let deadline = Deadline::within(PATIENCE);
            let records = store.api_keys().all(deadline).await;
            let secret = std::fs::read_to_string(fixture.definitions().with_file_name(KEY.1)).expect("a key");
            let principal = Keys::new(&store, Clock::system()).principal(secret.trim(), deadline).await;
            format!("{records:?} {:?}", principal.map(|principal| format!("{principal:?}")).ok())
        }
        Adoption => {
            let store = setup().await.store().await;
            let source = format!("{}.old", write::OLD);
            let known = store.adoptions().find("trades", &source).await;
            format!("{known:?}")
        }
        Epoch => {
            let service = setup().await.start().await;
            let page = service.client.get(&format!("{}/pages/7", SERIES.path(1))).await;
            assert!(service.stop().await);
            format!("{:?}", page.headers.get("etag"))
        }
        Series => {
            // Without a feeder, which mends what it finds.
            let store = setup().await.store().await;
            let engine = engine::histories(&store, SERIES);
            let definition = engine.definition();
            let (series, summaries) = (definition.time_series.as_ref(), definition.summaries.as_ref());
            let shape = SummaryShape {
                spans: Spans { length: SpanLength::parse("1h").expect("a length"), zone: Zone::UTC },
                groups: series.expect("a time series").meta.clone(),
                values: summaries.expect("summaries").values.clone(),
            };
            let query = SeriesQuery {
                shape: Arc::new(shape),
                ends: [1_699_920_000_000, 1_700_438_400_000],
                fill: Fill::None,
                order: Order::Ascending,
                filters: Vec::new(),
                limit: 1_000,
            };
            let answer = engine.series().summarise(&query, Deadline::within(PATIENCE)).await;
            let answer = answer.map(|answer| (answer.page.points, answer.up_to));
            let group = doc! { "_id": "$type", "trades": { "$sum": 1 }, "numbers": { "$sum": "$seq" } };
            let view = database.collection::<Document>("trades_series");
            let groups = view.aggregate([doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }]).await;
            let groups: Vec<_> = groups.expect("a view").try_collect().await.expect("groups");
            format!("{answer:?} {groups:?}")
        }
        Reopening(owner) => {
            let reopened = reopened(fixture, database, owner).await;
            let pages = database.collection::<Document>("trades");
            let pages = pages.find(doc! { "customerId": owner as i64, "count": { "$gt": 0 } }).await;
            let pages: Vec<_> = pages.expect("an answer").try_collect().await.expect("pages");
            let ids: Vec<_> = pages.iter().filter_map(|page| page.get_str("_id").ok()).collect();
            format!("{reopened} {ids:?}")
        }
    }
}

/// The same, or that a version cannot open it at all.
async fn said(fixture: &Fixture, database: &Database, reading: Reading) -> String {
    let said = AssertUnwindSafe(read(fixture, database, reading)).catch_unwind().await;
    said.unwrap_or_else(|_| "it cannot be opened".to_owned())
}

fn readings(collection: &str) -> &'static [Reading] {
    let of = READINGS
        .iter()
        .find(|(name, _)| *name == collection || (name.ends_with('_') && collection.starts_with(name)));
    of.unwrap_or_else(|| panic!("nothing reads {collection}")).1
}

/// A new database with what the fixture has, on which no migration is pending: a reading that migrates would
/// leave another one behind.
async fn migrated(fixture: &Fixture) -> Database {
    migrated_with(fixture, |_, document| document).await
}

/// The same, with what becomes of each document of a collection.
async fn migrated_with(fixture: &Fixture, change: impl Fn(&str, Document) -> Document) -> Database {
    let database = loaded_with(fixture, change).await;
    let ended = command(fixture, &database, &["migrate"]).await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    database
}

/// A database for the readings that change it, and the documents that it had before.
struct Restorable {
    database: Database,
    /// Whether the last reading was a reopening, whose store may write after its answer.
    is_reopened: bool,
    documents: BTreeMap<String, Vec<Document>>,
}

impl Restorable {
    async fn loaded(fixture: &Fixture) -> Self {
        let database = migrated(fixture).await;
        Self { documents: documents(&database).await, database, is_reopened: false }
    }

    /// Takes back what readings have written, as far as this one can see it: another database takes ten times
    /// as long.
    async fn restore(&mut self, fixture: &Fixture, reading: Reading) {
        let now = documents(&self.database).await;
        // Each service has a feeder, which makes the time series again.
        let reads_series = matches!(reading, Series | Reopening(_));
        let is_reopened = self.is_reopened;
        self.is_reopened = matches!(reading, Reopening(_));
        let is_changed = |name: &str| now.get(name) != self.documents.get(name);
        let changed: Vec<_> =
            self.documents.keys().chain(now.keys()).filter(|name| is_changed(name)).collect();
        // What no insert puts right.
        if is_reopened || reads_series && changed.iter().any(|name| of_series(name)) {
            self.database.drop().await.expect("to drop");
            *self = Self { is_reopened: self.is_reopened, ..Self::loaded(fixture).await };
            return;
        }
        for name in changed.into_iter().filter(|name| !of_series(name)) {
            let [before, now] =
                [&self.documents, &now].map(|all| all.get(name).map_or(&[][..], Vec::as_slice));
            let collection = self.database.collection::<Document>(name);
            let gone = now.iter().filter(|document| !before.contains(document));
            let gone: Vec<_> = gone.filter_map(|document| document.get("_id")).collect();
            collection.delete_many(doc! { "_id": { "$in": gone } }).await.expect("an answer");
            // A record of a key may be written after the answer, and be there again.
            for document in before.iter().filter(|document| !now.contains(document)) {
                put(&collection, document).await;
            }
        }
    }
}

/// Whether measurements of a time series are in this collection.
fn of_series(collection: &str) -> bool {
    collection.starts_with("trades_series")
}

/// All documents of a database, by collection; of views there are none.
async fn documents(database: &Database) -> BTreeMap<String, Vec<Document>> {
    let collections = database.list_collections().await.expect("collections");
    let collections: Vec<_> = collections.try_collect().await.expect("collections");
    let mut found = BTreeMap::new();
    for collection in collections {
        if collection.options.view_on.is_some() || collection.name.starts_with("system.") {
            continue;
        }
        let documents = database.collection::<Document>(&collection.name);
        let all = documents
            .find(doc! {})
            .sort(doc! { "_id": 1 })
            .await
            .expect("an answer")
            .try_collect()
            .await
            .expect("documents");
        found.insert(collection.name, all);
    }
    found
}

/// What notices an alteration, if anything does. `database` has the fixture, before and afterwards.
async fn noticed(
    fixture: &Fixture,
    (database, changing): (&Database, &mut Restorable),
    alteration: &Alteration,
    usual: &BTreeMap<Reading, String>,
) -> Option<Reading> {
    let Alteration { collection, before, after, .. } = alteration;
    for reading in readings(collection) {
        if let Reopening(owner) = reading
            && before.get_i64("customerId").ok() != Some(*owner as i64)
        {
            continue;
        }
        let now = if of_series(collection) {
            // Measurements cannot be replaced.
            let copy = migrated_with(fixture, |name, document| {
                if name == collection && document == *before { after.clone() } else { document }
            });
            let copy = copy.await;
            let now = said(fixture, &copy, *reading).await;
            copy.drop().await.expect("to drop");
            now
        } else {
            let database = if reading.changes() {
                changing.restore(fixture, *reading).await;
                &changing.database
            } else {
                database
            };
            replace(database, collection, before, after).await;
            let now = said(fixture, database, *reading).await;
            replace(database, collection, after, before).await;
            now
        };
        if now != usual[reading] {
            return Some(*reading);
        }
    }
    None
}

async fn replace(database: &Database, collection: &str, document: &Document, by: &Document) {
    let documents = database.collection::<Document>(collection);
    documents.delete_one(doc! { "_id": document.get("_id") }).await.expect("an answer");
    put(&documents, by).await;
}

async fn put(documents: &Collection<Document>, document: &Document) {
    let put = documents.replace_one(doc! { "_id": document.get("_id") }, document).upsert(true);
    put.bypass_document_validation(true).await.expect("an answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_stored_field_is_read() {
    let fixture = Arc::new(Fixture::of(RELEASED[0]));
    let all_readings: BTreeSet<_> = READINGS.iter().flat_map(|(_, readings)| *readings).copied().collect();
    let (mut usual, mut whole) = (BTreeMap::new(), Restorable::loaded(&fixture).await);
    for reading in all_readings {
        whole.restore(&fixture, reading).await;
        usual.insert(reading, read(&fixture, &whole.database, reading).await);
    }
    let (usual, left) = (Arc::new(usual), Arc::new(Mutex::new(all(&fixture))));
    let workers = (0..4).map(|_| {
        let (fixture, usual, left) = (Arc::clone(&fixture), Arc::clone(&usual), Arc::clone(&left));
        spawn(async move {
            let (database, mut changing) = (migrated(&fixture).await, Restorable::loaded(&fixture).await);
            let mut found = Vec::new();
            while let Some(alteration) = next(&left) {
                let by = noticed(&fixture, (&database, &mut changing), &alteration, &usual).await;
                println!("{}: {}: {by:?}", alteration.kind, alteration.field);
                found.extend(by.is_none().then_some((alteration.kind, alteration.field)));
            }
            // Nothing of it was noticed because of what an earlier one has left behind.
            for (reading, usual) in usual.iter() {
                let database = if reading.changes() {
                    changing.restore(&fixture, *reading).await;
                    &changing.database
                } else {
                    &database
                };
                assert_eq!(said(&fixture, database, *reading).await, *usual, "{reading:?}");
            }
            found
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut unseen = BTreeSet::new();
    for worker in workers {
        unseen.extend(worker.await.expect("no panic"));
    }
    let named = UNSEEN.iter().flat_map(|(kind, fields, _)| fields.iter().map(move |field| (*kind, *field)));
    let named: BTreeSet<_> = named.map(|(kind, field)| (kind.to_owned(), field.to_owned())).collect();
    let missing: Vec<_> = unseen.difference(&named).collect();
    let seen: Vec<_> = named.difference(&unseen).collect();
    assert!(missing.is_empty() && seen.is_empty(), "nothing says: {missing:#?}\nsomething says: {seen:#?}");
}

fn next(left: &Mutex<Vec<Alteration>>) -> Option<Alteration> {
    left.lock().expect("no test panics here").pop()
}
