//! The engine in a program of one's own: the example of the README.

#[path = "../../../examples/embed.rs"]
#[allow(dead_code, reason = "its `main` takes arguments")]
mod example;

use std::time::Duration;

use pagebucket_engine::appends::Append;
use pagebucket_engine::model::definition::Definition;
use pagebucket_engine::model::domain::{Clock, Cursor, Limit, Position, Seq, Window};
use pagebucket_engine::{Capacity, Deadline, Store};

use crate::harness::{Setup, shared};

#[tokio::test(flavor = "multi_thread")]
async fn the_example_runs() {
    let connection = Setup::on(shared().await).connection;
    for _ in 0..2 {
        example::run(&connection.uri, &connection.database).await.expect("no failure, and no finding");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_is_read_across_pages() {
    let connection = Setup::on(shared().await).connection;
    let within = || Deadline::within(Duration::from_secs(60));
    let definitions = Definition::parse(example::NOTES).expect("a definition").into();
    let store = Store::connect(connection, definitions, Capacity::default(), Clock::system())
        .await
        .expect("to connect");
    store.migrate().await.expect("to migrate");
    let notes = store.history("notes").expect("it is defined");
    let ann = notes.definition().owner.kind.parse("ann").expect("an owner");
    let body = format!("[{}]", [r#"{ "text": "Buy bread." }"#; 25].join(","));
    let drafts = notes.definition().item.parse_drafts(body.as_bytes(), 25).expect("notes");
    let append = Append::new(ann.clone(), drafts, Clock::system().now(), within());
    notes.appends().append(append).await.expect("to append");

    let history = notes.reads().history(ann, within()).await.expect("a history");
    let after = |seq| Cursor::After(Position::behind(Seq::new(seq).expect("a number")));
    for (cursor, limit, expected) in [
        (Cursor::After(Position::BEGINNING), 3, 1..=3),
        (after(9), 3, 10..=12),
        (Cursor::Before(Position::before(Seq::new(12).expect("a number"))), 2, 10..=11),
        (Cursor::End, 7, 19..=25),
        (Cursor::End, 100, 1..=25),
    ] {
        let window = Window { cursor, limit: Limit::new(limit).expect("a limit") };
        let shown = history.window(window, within()).await.expect("to read");
        let shown: Vec<u64> =
            shown.iter().map(|(bucket, seq)| bucket.item(*seq).expect("its item").seq.get()).collect();
        assert_eq!(shown, expected.collect::<Vec<_>>(), "{window:?}");
    }
}
