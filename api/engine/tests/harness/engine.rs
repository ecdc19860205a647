//! Items for the store itself: the one place where tests name its types of owners and items.

use std::collections::BTreeMap;
use std::sync::Mutex;

use mongodb::bson::Document;
use pagebucket_engine::appends::{Append, AppendTerms};
use pagebucket_engine::live::LiveReader;
use pagebucket_engine::{Engine, Store};
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::{Instant, OwnerId};
use pagebucket_model::item::{Draft, Item};

use super::{History, PATIENCE};

/// The definitions that a server of this history has. They are read once: tests send many items at the same
/// moment.
pub fn definitions(history: &History) -> Definitions {
    static KNOWN: Mutex<BTreeMap<Option<&str>, Definitions>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("no test panics here");
    known.entry(history.definitions).or_insert_with(|| read(history)).clone()
}

fn read(history: &History) -> Definitions {
    match history.definitions {
        None => Definitions::built_in(),
        Some(directory) => {
            Definitions::of_directory(directory.as_ref()).expect("definitions without a mistake")
        }
    }
}

fn with_definition<T>(history: &History, work: impl FnOnce(&Definition) -> T) -> T {
    work(definitions(history).get(history.name).expect("its definition"))
}

/// The owner, as the store names it.
pub fn owner(history: &History, owner: u64) -> OwnerId {
    with_definition(history, |definition| definition.owner.kind.parse(&history.id(owner)).expect("an owner"))
}

/// What the store chooses a committer by.
pub fn spread(history: &History, number: u64) -> u64 {
    owner(history, number).spread()
}

/// A generated item as a client sends it.
pub fn draft(history: &History, number: u64) -> Draft {
    let item = history.item(number).to_string();
    let drafts = |definition: &Definition| definition.item.parse_drafts(item.as_bytes(), 1);
    with_definition(history, drafts).expect("an item").remove(0)
}

/// A generated item of a date, in milliseconds.
pub fn dated(history: &History, number: u64, millis: i64) -> Item {
    draft(history, number).dated(Instant::from_millis(millis).expect("a date"))
}

/// An append of dated items.
pub fn append(owner: OwnerId, items: Vec<Item>, terms: impl Into<AppendTerms>) -> Append<'static> {
    Append::new(owner, items.into_iter().map(Draft::from).collect(), Instant::MIN, terms)
}

/// The appends and reads of a history.
pub fn histories<'a>(store: &'a Store, history: &History) -> &'a Engine {
    store.history(history.name).expect("its definition")
}

/// Reads until `last`, and checks that nothing is missing, doubled or in disorder: each item is the one of
/// its number.
pub async fn read_to(history: &History, reader: &mut LiveReader, last: u64) {
    while reader.position().get() < last {
        let mut expected = reader.position().get();
        let page = tokio::time::timeout(PATIENCE, reader.next()).await.expect("more").expect("a page");
        for item in page.items() {
            expected += 1;
            assert_eq!(item.seq.get(), expected);
            let stored = Document::try_from(item.document()).expect("a document");
            assert_eq!(history.stored_number(&stored), expected as i64, "the item of this number");
        }
        assert_eq!((page.last_seq().get(), reader.position().get()), (expected, expected));
    }
    assert_eq!(reader.position().get(), last);
}
