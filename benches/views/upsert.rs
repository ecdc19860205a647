//! The peers' statement: the upsert of the literature, one `updateOne` a view.
//!
//! ```js
//! db.page_views.updateOne(
//!   { page: "/page/1", timestamp: ISODate("2014-01-01T10:01:00Z") },
//!   { $inc: { totalViews: 1, "seconds.14": 1 } },
//!   { upsert: true })
//! ```
//!
//! Its collection has the unique index and no validator, as the literature has it. Without the index it would count
//! a minute in two documents now and then; with it, of two upserts that both find no document, the server itself
//! tries the second again.

use std::ops::Range;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{MethodRouter, post};
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::error::Result as Driver;
use mongodb::options::{Acknowledgment, IndexOptions, UpdateOptions, WriteConcern};
use mongodb::{Collection, Database, IndexModel};
use pagebucket::domain::{Clock, Minute, parse_views};
use pagebucket::store::page_views::COLLECTION;

use crate::harness::Result;
use crate::open_loop::Counter;
use crate::views::{MinuteNumber, PAGES, View, path, start};

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// As published: the server has it in memory.
    One,
    /// On a majority of the nodes, and in their journals.
    Majority,
}

/// Counts by upserts.
#[derive(Clone)]
pub struct Upserts {
    collection: Collection<Document>,
    options: UpdateOptions,
}

impl Upserts {
    pub fn new(database: &Database, concern: Concern) -> Self {
        let acknowledgement = match concern {
            Concern::One => WriteConcern::builder().w(Acknowledgment::Nodes(1)).build(),
            Concern::Majority => WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build(),
        };
        let options = UpdateOptions::builder().upsert(true).write_concern(acknowledgement).build();
        Self { collection: database.collection(COLLECTION), options }
    }

    /// Adds views to a second of a page's minute, which begins at `minute`, in milliseconds.
    async fn count(&self, page: &str, minute: i64, second: u8, views: u32) -> Driver<()> {
        let filter = doc! { "page": page, "timestamp": DateTime::from_millis(minute) };
        let views = views as i32;
        let update = doc! { "$inc": { "totalViews": views, format!("seconds.{second}"): views } };
        self.collection.update_one(filter, update).with_options(self.options.clone()).await.map(drop)
    }
}

impl Counter for Upserts {
    /// A driver connects by itself, when there is no connection for a command: in the warm-up.
    async fn ready(&mut self) -> Result<()> {
        Ok(())
    }

    async fn count(&mut self, view: View) -> bool {
        let Ok(minute) = start(view.minute) else { return false };
        Self::count(self, &path(view.page), minute, view.second, 1).await.is_ok()
    }
}

/// The handler that counts by upserts, one after the other: our parser, and the same answers.
pub fn handler(upserts: Upserts) -> MethodRouter {
    post(counting).with_state(upserts)
}

async fn counting(State(upserts): State<Upserts>, request: Request) -> StatusCode {
    let Ok(body) = to_bytes(request.into_body(), 1024 * 1024).await else {
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    let Ok(views) = parse_views(&body, 1000, Clock::system().now()) else {
        return StatusCode::UNPROCESSABLE_ENTITY;
    };
    for view in views {
        let (minute, second) = (Minute::of(view.at).start().millis(), Minute::second_of(view.at));
        if let Err(error) = upserts.count(view.path.as_str(), minute, second, view.views).await {
            tracing::debug!(%error, "not counted");
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
    }
    StatusCode::NO_CONTENT
}

/// Makes the peers' index.
pub async fn prepare(database: &Database) -> Result<()> {
    let unique = IndexOptions::builder().unique(true).build();
    let index = IndexModel::builder().keys(doc! { "page": 1, "timestamp": 1 }).options(unique).build();
    database.collection::<Document>(COLLECTION).create_index(index).await?;
    Ok(())
}

/// Makes documents without views, in which all seconds are there, for these minutes of all pages.
pub async fn preallocate(database: &Database, minutes: Range<MinuteNumber>) -> Result<()> {
    let seconds: Document = (0..60).map(|second| (second.to_string(), Bson::Int32(0))).collect();
    let collection = database.collection::<Document>(COLLECTION);
    for minute in minutes {
        let timestamp = DateTime::from_millis(start(minute)?);
        let zeros = |page| {
            doc! { "page": path(page), "timestamp": timestamp, "totalViews": 0, "seconds": seconds.clone() }
        };
        collection.insert_many((1..=PAGES).map(zeros)).ordered(false).await?;
    }
    Ok(())
}
