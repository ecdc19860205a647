//! What tests say of a definition is what its file says.

use std::collections::BTreeSet;
use std::path::Path;

use mongodb::bson::DateTime;
use serde_json::{Value, json};

use crate::harness::{ALL, History, TRACES};

/// The most bytes of a page.
const MOST: u64 = 4 * 1024 * 1024;

fn all() -> impl Iterator<Item = &'static History> {
    ALL.iter().copied().chain([TRACES])
}

#[test]
fn they_say_what_the_files_say() {
    for history in all() {
        let Some(directory) = history.definitions else { continue };
        let file = Path::new(directory).join(format!("{}.json", history.name));
        let definition = std::fs::read_to_string(file).expect("a file");
        let definition: Value = serde_json::from_str(&definition).expect("JSON");
        let kind = if history.owner(1).is_string() { "string" } else { "integer" };
        assert_eq!(definition["history"], history.name);
        assert_eq!(
            definition["owner"],
            json!({ "collection": history.owners, "field": history.owner_field, "type": kind })
        );
        assert_eq!(definition["pageSize"], history.page_size);
        assert_eq!(definition["date"], history.date);
        assert_eq!(definition["item"]["properties"][history.date]["format"], "date-time");
        let share = MOST / history.page_size;
        let most = definition["maxItemBytes"].as_u64().unwrap_or(share.min(16 * 1024));
        assert!(most == history.max_item_bytes && most <= share, "{}", history.name);
        for required in definition["item"]["required"].as_array().expect("names") {
            assert!(history.item(1).get(required.as_str().expect("a name")).is_some(), "{required}");
        }
    }
}

#[test]
fn generated_items_and_owners_are_told_apart() {
    for history in all() {
        let ids: BTreeSet<_> = (1..=100).map(|owner| history.id(owner)).collect();
        assert_eq!(ids.len(), 100, "{}", history.name);
        for owner in 1..=100 {
            assert_eq!(history.owner_of(&history.owner_bson(owner)), owner);
        }
        for number in [1, 8, 137, 1_000_000] {
            let (item, stored) = (history.item(number), history.stored_item(number, DateTime::now()));
            assert_eq!((history.number(&item), history.stored_number(&stored)), (number, number as i64));
            assert!(history.is_as_sent(&stored) && !item.as_object().expect("an item").contains_key("seq"));
            let names = item.as_object().expect("an item").keys();
            assert!(names.chain([&history.date.to_owned()]).all(|name| stored.contains_key(name)), "{item}");
        }
    }
}
