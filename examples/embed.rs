//! A history in a program of one's own, without HTTP. Give it a MongoDB server and the name of a database:
//! `cargo run --example embed -- mongodb://127.0.0.1:27017/?directConnection=true notes`

use std::error::Error;
use std::time::Duration;

use pagebucket_engine::prelude::*;

/// A history of notes.
pub const NOTES: &str = r#"{
  "history": "notes", "title": "Note", "owner": { "collection": "people", "field": "personId", "type": "string" },
  "pageSize": 10, "maxItemBytes": 4096, "date": "writtenAt",
  "item": { "type": "object", "required": ["text"], "properties": {
    "text": { "type": "string", "description": "What it says.", "maxLength": 500, "examples": ["Buy bread."] },
    "writtenAt": { "type": "string", "format": "date-time", "description": "When it was written." } } }
}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [_, uri, database] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("usage: embed URI DATABASE".into());
    };
    run(uri, database).await
}

/// Opens the database, appends, reads and verifies.
pub async fn run(uri: &str, database: &str) -> Result<(), Box<dyn Error>> {
    let within = || Deadline::within(Duration::from_secs(30));
    let connection = ConnectionSettings::new(uri, database);
    let definitions = Definition::parse(NOTES).map_err(|mistake| mistake.to_string())?.into();
    let store = Store::connect(connection, definitions, Capacity::default(), Clock::system()).await?;
    store.migrate().await?;
    let notes = store.history("notes").ok_or("it is defined above")?;
    let ann = notes.definition().owner.kind.parse("ann")?;

    // Twice with the same key: the items are stored once.
    let body = br#"[{ "text": "Buy bread." }, { "text": "Call Tom." }]"#;
    for _ in 0..2 {
        let key = IdempotencyKey::parse(b"monday")?;
        let drafts = notes.definition().item.parse_drafts(body, 10)?;
        let arrived = Clock::system().now();
        let once = Some(Once::Request { key, canonical: &canonical(body) });
        let append = Append { once, ..Append::new(ann.clone(), drafts, arrived, within()) };
        let progress = notes.appends().append(append).await?;
        println!("{:?}, stored before: {}", progress.ranges(), progress.is_replayed());
    }
    let history = notes.reads().history(ann.clone(), within()).await?;
    println!("{} items on {} pages", history.totals().items(), history.totals().pages());
    let page = notes.reads().page(&ann, PageNumber::FIRST, within()).await?.ok_or("it has a first page")?;
    page.items().for_each(|item| println!("{}: {:?}", item.seq, item.document().get_str("text")));
    // The item nearest to the end, on whatever page it is.
    let window = Window { cursor: Cursor::End, limit: Limit::new(1)? };
    for (bucket, seq) in history.window(window, within()).await? {
        println!("the newest: {seq}, on page {} of {} items", bucket.page(), bucket.count());
    }
    let findings = notes.verifier().verify(&ann, Duration::from_secs(10), &mut async |_pages| {}).await?;
    if findings.is_empty() { Ok(()) } else { Err(format!("{findings:?}").into()) }
}
