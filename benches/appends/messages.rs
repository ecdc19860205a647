//! Messages of 1 KB, 50 a page, in one room: larger items and longer pages than trades have.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::TryStreamExt;
use mongodb::bson::{DateTime, Document, doc, oid::ObjectId};
use mongodb::{Collection, Database};
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::Clock;
use pagebucket_service::ServiceConfig;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::harness::peers::{as_text, refused};
use crate::harness::{Bench, CLOSED_LOOP, Client, Load, Outcome, RATE, Report, Result, Section, Server};
use crate::harness::{Summary, Verdict, Work, compare, index};

/// Messages on a page.
const PAGE: usize = 50;

/// Pages that the room has before the first block: 20 MB, which is less than our cache of pages holds.
const PAGES: usize = 400;

const PATH: &str = "/v1/rooms/hall/messages";

/// Those that append come first.
const CONTENDERS: [&str; 5] = ["ours", "ours again", "flat", "flat, by id", "ours, cache off"];

/// One document a message. Pages by skip and limit, or by the id of the message before.
#[derive(Clone)]
struct Flat {
    definition: Arc<Definition>,
    messages: Collection<Message>,
}

/// A message, as far as it is shown.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    author: String,
    text: String,
    #[serde(serialize_with = "as_text")]
    sent_at: DateTime,
}

/// What is asked for: a page, or what comes after a message.
#[derive(Deserialize)]
struct Wanted {
    page: Option<u64>,
    after: Option<ObjectId>,
}

pub async fn measure(bench: &Bench, report: &mut Report) -> Result<()> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/histories");
    let definitions = Definitions::of_directory(directory.as_ref())?;
    let definition = definitions.get("messages").ok_or("there is no definition of messages")?;
    let text = "The plan is attached. ".repeat(44);
    let message = json!({ "author": "ann", "text": text }).to_string();
    let page = format!("[{}]", vec![message.as_str(); PAGE].join(","));
    let mut started = Vec::new();
    for label in CONTENDERS {
        let name = format!("bench_messages_{}", started.len());
        let database = bench.mongod.database(&name).await?;
        let server = if label.starts_with("ours") {
            let store = bench.mongod.store_of(&name, definitions.clone()).await?;
            let change = |config: &mut ServiceConfig| {
                if label == "ours, cache off" {
                    config.api.page_cache = 0;
                }
            };
            Server::ours(store, change).await?
        } else {
            index(&database, "messages", doc! { "roomId": 1, "_id": 1 }, false).await?;
            let flat = Flat { definition: Arc::clone(definition), messages: database.collection("messages") };
            Server::peer(Router::new().route(PATH, get(list).post(append)).with_state(flat), true).await?
        };
        let mut client = Client::new(server.address);
        for _ in 0..PAGES {
            client.post(PATH, &page).await?;
        }
        let pages = paths(label, &database).await?;
        started.push((server, database, pages));
    }
    let (settings, timing) = (&bench.settings, bench.settings.timing(1.0));
    let block = async |place: usize, round: u64, connections, item: Option<&str>| {
        let (server, database, pages) = &started[place];
        let before = stored(database).await?;
        let work = match item {
            Some(item) => Work::Post(PATH, item.into()),
            None => Work::Get(Arc::clone(pages), PAGE * 1000),
        };
        let seed = settings.seed.wrapping_add(round * 1000);
        let load = Load { connections, work, keyed: false, timing: Some(timing), seed };
        let block = load.run(server.address).await?;
        let stored = stored(database).await? - before;
        Ok(Summary::new(block.clone(), Verdict::of(stored, block.acknowledged, block.failed)))
    };
    let name = "messages: 64 connections, one room";
    let about = "Messages of 1 KB, one a request, for a room of 400 pages of 50. Flat keeps one document a message, \
                 with an index on the room and the id.";
    let comparisons = compare(RATE, "ours / flat; ours again / ours");
    let appends = Outcome::new(name, about, "messages", comparisons)
        .in_turns(&CONTENDERS[..3], settings, async |place, round| {
            block(place, round, 64, Some(&message)).await
        })
        .await?;
    let name = "messages: 32 connections, pages";
    let about = "Any of the 400 pages. Flat skips the messages before it, or has the id of the last one from its client.";
    let compared = "ours / flat; ours / flat, by id; ours, cache off / flat; ours, cache off / flat, by id; ours again / ours";
    let pages = Outcome::new(name, about, "pages", compare(RATE, compared))
        .in_turns(CONTENDERS, settings, async |place, round| block(place, round, 32, None).await)
        .await?;
    for outcome in [appends, pages] {
        report.workload(&outcome, Section::of(&outcome, CLOSED_LOOP));
    }
    for (server, database, _) in started {
        server.stop().await?;
        database.drop().await?;
    }
    Ok(())
}

/// The addresses of the pages.
async fn paths(label: &str, database: &Database) -> Result<Arc<[String]>> {
    let by_number = |page: usize| match label {
        "flat" => format!("{PATH}?page={page}"),
        _ => format!("{PATH}/pages/{page}"),
    };
    if label != "flat, by id" {
        return Ok((1..=PAGES).map(by_number).collect());
    }
    let messages = database.collection::<Document>("messages");
    let found = messages.find(doc! {}).projection(doc! { "_id": 1 }).sort(doc! { "_id": 1 }).await?;
    let ids: Vec<Document> = found.try_collect().await?;
    let last = ids.chunks(PAGE).filter_map(|page| page.last()?.get_object_id("_id").ok());
    Ok(last.take(PAGES - 1).map(|id| format!("{PATH}?after={id}")).collect())
}

/// Messages in a database.
async fn stored(database: &Database) -> Result<u64> {
    let count = doc! { "$sum": { "$ifNull": ["$count", 1] } };
    let sum = doc! { "$group": { "_id": null, "count": count } };
    let mut found = database.collection::<Document>("messages").aggregate([sum]).await?;
    let count = found.try_next().await?.ok_or("no messages")?;
    Ok(count.get_i64("count").or_else(|_| count.get_i32("count").map(i64::from))? as u64)
}

async fn append(State(flat): State<Flat>, body: Bytes) -> Response {
    let Ok(drafts) = flat.definition.item.parse_drafts(&body, 1000) else {
        return StatusCode::UNPROCESSABLE_ENTITY.into_response();
    };
    let now = Clock::system().now();
    let document = |draft: pagebucket_model::item::Draft| {
        let mut document = doc! { "roomId": "hall" };
        document.extend(Document::try_from(draft.dated(now).document())?);
        Ok(document)
    };
    let documents: mongodb::error::Result<Vec<Document>> = drafts.into_iter().map(document).collect();
    let inserted = async { flat.messages.clone_with_type::<Document>().insert_many(documents?).await };
    match inserted.await {
        Ok(_) => (StatusCode::CREATED, Json(json!({ "roomId": "hall", "date": now }))).into_response(),
        Err(error) => refused(error),
    }
}

async fn list(State(flat): State<Flat>, Query(wanted): Query<Wanted>) -> Response {
    let mut filter = doc! { "roomId": "hall" };
    if let Some(after) = wanted.after {
        filter.insert("_id", doc! { "$gt": after });
    }
    let skipped = wanted.page.map_or(0, |page| (page - 1) * PAGE as u64);
    let found = flat.messages.find(filter).sort(doc! { "_id": 1 }).skip(skipped).limit(PAGE as i64);
    match async { found.await?.try_collect::<Vec<Message>>().await }.await {
        Ok(items) => Json(json!({ "roomId": "hall", "items": items })).into_response(),
        Err(error) => refused(error),
    }
}
