//! The time that a read spends in the database, for `Server-Timing`.

use std::time::{Duration, Instant};

use axum::http::HeaderValue;

/// How long a read waited for the database, and whether it found its pages in the page cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    database: Duration,
    /// `None` if no page was looked up.
    hit: Option<bool>,
}

impl Timing {
    /// Waits for the database.
    pub async fn database<T>(&mut self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let result = work.await;
        self.database += started.elapsed();
        result
    }

    /// Notes whether a page was in the page cache.
    pub fn cached(&mut self, hit: bool) {
        self.hit = Some(hit && self.hit.unwrap_or(true));
    }

    /// Adds the time of a part of the read.
    pub fn add(&mut self, part: Self) {
        let Self { database, hit } = part;
        self.database += database;
        hit.into_iter().for_each(|hit| self.cached(hit));
    }

    /// As the value of `Server-Timing`.
    pub fn header(&self) -> HeaderValue {
        match (self.database, self.hit) {
            (Duration::ZERO, None) => return HeaderValue::from_static("db;dur=0.000"),
            (Duration::ZERO, Some(true)) => return HeaderValue::from_static("db;dur=0.000, cache;desc=hit"),
            _ => {}
        }
        let mut text = format!("db;dur={:.3}", self.database.as_secs_f64() * 1000.0);
        if let Some(hit) = self.hit {
            text.push_str(if hit { ", cache;desc=hit" } else { ", cache;desc=miss" });
        }
        HeaderValue::try_from(text).expect("a number and words")
    }
}
