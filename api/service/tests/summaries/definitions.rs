//! Definitions whose summaries change between starts, and instances that differ in them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use mongodb::Database;
use mongodb::bson::{Document, doc};
use pagebucket_engine::internal::Ages;
use serde_json::{Value, json};

use crate::harness::differing::Directory;
use crate::harness::{Client, NOTES, PATIENCE, Service, Setup, eventually, shared};

/// A definition of notes with summaries.
pub(super) struct NoteDefinition(Directory);

impl NoteDefinition {
    pub(super) fn by_author() -> Self {
        Self::of(json!({ "group": ["author"], "values": { "number": ["sum"] } }))
    }

    /// It has no groups.
    pub(super) fn in_all() -> Self {
        Self::of(json!({ "values": { "number": ["sum", "max"] } }))
    }

    fn of(summaries: Value) -> Self {
        Self(Directory::changed(NOTES, |definition| definition["summaries"] = summaries))
    }

    /// An instance that asks for markers, and looks for tiles, again and again.
    pub(super) async fn start(
        &self,
        database: Option<&Database>,
        change: impl FnOnce(Setup) -> Setup,
    ) -> Service {
        let mut setup = Setup::on(shared().await).of(NOTES.holding_any());
        setup.definitions = Some(self.0.0.clone());
        let [poll, tail, command, marker, late] = [20, 100, 500, 800, 200].map(Duration::from_millis);
        setup = setup.aging(Ages { poll, tail, command, marker, late });
        setup.config.house_every = Duration::from_millis(100);
        if let Some(database) = database {
            setup = setup.in_database(database);
        }
        change(setup).start().await
    }

    /// Appends notes with the numbers from 1 on, one a minute.
    pub(super) async fn append(&self, client: &Client, owner: u64, count: u64) {
        let notes: Vec<_> = (1..=count).map(note).collect();
        client.append(owner, &json!(notes)).await.expect(201);
    }
}

fn author(number: u64) -> &'static str {
    if number.is_multiple_of(3) { "Bob" } else { "Ada" }
}

fn minute(number: u64) -> i64 {
    1_700_000_040_000 + number as i64 * 60_000
}

/// Long enough that tiles are shorter than pages.
fn note(number: u64) -> Value {
    let date = Timestamp::from_millisecond(minute(number)).unwrap().to_string();
    json!({ "author": author(number), "number": number, "text": "x".repeat(200), "writtenAt": date })
}

/// The points by hours of those of these notes for which `of` holds, without `complete`.
pub(super) fn note_points(notes: RangeInclusive<u64>, of: impl Fn(u64) -> bool, is_by_author: bool) -> Value {
    const HOUR: i64 = 3_600_000;
    let mut found: BTreeMap<(i64, &str), Vec<u64>> = BTreeMap::new();
    for number in notes.filter(|number| of(*number)) {
        let group = if is_by_author { author(number) } else { "" };
        found.entry((minute(number).div_euclid(HOUR) * HOUR, group)).or_default().push(number);
    }
    let instant = |millis| format!("{:.3}", Timestamp::from_millisecond(millis).unwrap());
    let point = |((start, group), numbers): ((i64, &str), Vec<u64>)| {
        let sum = numbers.iter().sum::<u64>().to_string();
        let mut point = json!({
            "start": instant(start), "end": instant(start + HOUR), "date": instant(start)[..19], "count": numbers.len(),
            "firstSeq": numbers.first(), "lastSeq": numbers.last(), "complete": true,
            "values": { "number": { "sum": sum } },
        });
        match is_by_author {
            true => point["group"] = json!({ "author": group }),
            false => point["values"]["number"]["max"] = json!(numbers.last()),
        }
        point
    };
    found.into_iter().map(point).collect()
}

/// The hashes of the tiles that are there, each with their number.
async fn tiles(database: &Database) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let mut tiles = database.collection::<Document>("summary_tiles").find(doc! {}).await.expect("an answer");
    while tiles.advance().await.expect("an answer") {
        let tile = tiles.deserialize_current().expect("a document");
        assert!(tile.contains_key("points"), "no stub: {tile}");
        let hash = tile.get_str("_id").expect("a text").split('/').nth(1).expect("a hash").to_owned();
        *found.entry(hash).or_default() += 1;
    }
    found
}

/// Each instance answers by its own definition, whatever tiles there are; those that are left are of the
/// definition that is left.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_may_change_between_starts() {
    let [by_author, in_all] = [NoteDefinition::by_author(), NoteDefinition::in_all()];
    let one = by_author.start(None, |setup| setup).await;
    let database = one.database.clone();
    by_author.append(&one.client, 1, 400).await;
    let path = NOTES.at(1, "/summary?by=1h&limit=1000");
    let is_right = async |client: &Client, is_by_author: bool| {
        let group = if is_by_author { "&group=author" } else { "" };
        let body = client.get(&format!("{path}{group}")).await.expect(200);
        assert_eq!(body["points"], note_points(1..=400, |_| true, is_by_author), "{is_by_author}");
    };
    // Of the 199 pages before the last one.
    let all_are_of_one = async || tiles(&database).await.into_values().collect::<Vec<_>>() == [3];
    eventually("tiles of the first definition", PATIENCE, async || {
        is_right(&one.client, true).await;
        all_are_of_one().await
    })
    .await;
    let first = tiles(&database).await.into_keys().next().expect("a hash");

    // Beside each other, they delete each other's tiles, and make their own.
    let other = in_all.start(Some(&database), |setup| setup).await;
    let (is_deleted, is_back) = (AtomicBool::new(false), AtomicBool::new(false));
    eventually("tiles of the first one are deleted, and made again", PATIENCE, async || {
        tokio::join!(is_right(&one.client, true), is_right(&other.client, false));
        let is_there = tiles(&database).await.contains_key(&first);
        is_deleted.fetch_or(!is_there, Ordering::Relaxed);
        is_back.fetch_or(is_there && is_deleted.load(Ordering::Relaxed), Ordering::Relaxed);
        is_back.load(Ordering::Relaxed)
    })
    .await;
    assert!(one.stop().await);
    eventually("those of the other definition are left", PATIENCE, async || {
        is_right(&other.client, false).await;
        let there = tiles(&database).await;
        !there.contains_key(&first) && there.into_values().collect::<Vec<_>>() == [3]
    })
    .await;
    assert!(other.stop().await);
    let again = by_author.start(Some(&database), |setup| setup).await;
    eventually("those of the first one are made again", PATIENCE, async || {
        is_right(&again.client, true).await;
        tiles(&database).await == [(first.clone(), 3)].into()
    })
    .await;
}
