//! The peers' statement: the upsert of the literature, one `updateOne` a view.
//!
//! ```js
//! db.page_views.updateOne(
//!   { page: "/page/1", timestamp: ISODate("2014-01-01T10:01:00Z") },
//!   { $inc: { totalViews: 1, "seconds.14": 1 } },
//!   { upsert: true })
//! ```
//!
//! Its collection has the unique index and no validator, as the literature has it. Without the index it would
//! count a minute in two documents now and then; with it, of two upserts that both find no document, the
//! server itself tries the second again.

use std::ops::Range;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::post;
use mongodb::bson::{Bson, DateTime, Document, doc};
use mongodb::error::Result as Driver;
use mongodb::options::{Acknowledgment, UpdateOptions, WriteConcern};
use mongodb::{Collection, Database};
use pagebucket_model::domain::Clock;
use pagebucket_page_views::{COLLECTION, Minute, parse_views};

use super::view::{MinuteNumber, PAGES, path, start};
use crate::harness::{BODY, Result};

/// Where views are counted.
pub const COUNTING: &str = "/v1/page-views";

/// Counts by upserts.
#[derive(Clone)]
pub struct Upserts {
    collection: Collection<Document>,
    options: UpdateOptions,
}

impl Upserts {
    /// At majority and journal, or, as published, acknowledged when the server has it in memory.
    pub fn new(database: &Database, w1: bool) -> Self {
        let acknowledgement = if w1 {
            WriteConcern::builder().w(Acknowledgment::Nodes(1)).build()
        } else {
            WriteConcern::builder().w(Acknowledgment::Majority).journal(true).build()
        };
        let options = UpdateOptions::builder().upsert(true).write_concern(acknowledgement).build();
        Self { collection: database.collection(COLLECTION), options }
    }

    /// Adds views to a second of a page's minute, which begins at `minute`, in milliseconds.
    pub async fn count(&self, page: &str, minute: i64, second: u8, views: u32) -> Driver<()> {
        let filter = doc! { "page": page, "timestamp": DateTime::from_millis(minute) };
        let views = views as i32;
        let update = doc! { "$inc": { "totalViews": views, format!("seconds.{second}"): views } };
        self.collection.update_one(filter, update).with_options(self.options.clone()).await.map(drop)
    }
}

/// The handler that counts by upserts, one after the other: our parser, and the same answers.
pub fn routes(upserts: Upserts) -> Router {
    Router::new().route(COUNTING, post(counting)).with_state(upserts)
}

async fn counting(State(upserts): State<Upserts>, request: Request) -> StatusCode {
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
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

/// Makes documents without views, in which all seconds are there, for these minutes of all pages.
pub async fn preallocate(database: &Database, minutes: Range<MinuteNumber>) -> Result<()> {
    let seconds: Document = (0..60).map(|second| (second.to_string(), Bson::Int32(0))).collect();
    let collection = database.collection::<Document>(COLLECTION);
    for minute in minutes {
        let timestamp = DateTime::from_millis(start(minute));
        let zeros = |page| {
            doc! { "page": path(page), "timestamp": timestamp, "totalViews": 0, "seconds": seconds.clone() }
        };
        collection.insert_many((1..=PAGES).map(zeros)).ordered(false).await?;
    }
    Ok(())
}
