//! What clients asked for, what they were told, and what readers saw.

use std::time::Duration;

use mongodb::bson::DateTime;
use serde_json::Value;

use crate::harness::{Answer, TOTAL};

/// Everything that happened in a run. Moments are counted from its beginning.
#[derive(Debug, Clone, Default)]
pub struct Log {
    pub wanted: Vec<Wanted>,
    pub seen: Vec<Seen>,
    /// What was done to the servers, and when.
    pub faults: Vec<(Duration, String)>,
}

/// One append that a client wants, and each answer that it got to it.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub owner: u64,
    pub key: Option<String>,
    /// The items are told apart by their numbers, of which no two in a run are the same:
    /// `first ..first + count`.
    pub first: u64,
    pub count: u64,
    pub told: Vec<Told>,
}

/// One attempt, and its answer.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which instance was asked.
    pub instance: usize,
    pub sent: Duration,
    pub heard: Duration,
    pub reply: Reply,
}

impl Told {
    /// One of several attempts in a row. Its time is made up of its number, from 0.
    pub fn nth(number: usize, reply: Reply) -> Self {
        let sent = Duration::from_secs(2 * number as u64);
        Self { instance: 0, sent, heard: sent + Duration::from_secs(1), reply }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// 201.
    Stored(Stored),
    /// 503: ask again. The first items are stored in `ranges`; of the next `unknown` nothing is
    /// known; the rest is not stored.
    Again { slug: String, ranges: Vec<Range>, unknown: u64 },
    /// Anything else, which no client should get.
    Other(String),
    /// No answer, or not in time.
    Silence,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub ranges: Vec<Range>,
    /// Of items without a date of their own, in milliseconds.
    pub date: i64,
    pub items: u64,
    pub pages: u64,
    /// It says that it stored nothing itself.
    pub replayed: bool,
}

/// First and last `seq`.
pub type Range = (u64, u64);

/// A stored item, as far as the judge knows it apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    pub number: i64,
    /// In milliseconds.
    pub date: i64,
}

/// What a reader was shown at one moment.
#[derive(Debug, Clone)]
pub struct Seen {
    pub reader: usize,
    pub instance: usize,
    /// How often an instance had been killed before.
    pub restarts: u32,
    pub owner: u64,
    pub at: Duration,
    pub sight: Sight,
}

#[derive(Debug, Clone)]
pub enum Sight {
    Page { page: u64, full: bool, items: Vec<Item> },
    Totals { items: u64, pages: u64 },
}

impl Wanted {
    /// Whether it was acknowledged.
    pub fn is_stored(&self) -> bool {
        self.told.iter().any(|told| matches!(told.reply, Reply::Stored(_)))
    }

    /// The 201s, in the order in which they were heard.
    pub fn acknowledgements(&self) -> Vec<(&Told, &Stored)> {
        let mut all: Vec<_> = self
            .told
            .iter()
            .filter_map(|told| match &told.reply {
                Reply::Stored(stored) => Some((told, stored)),
                _ => None,
            })
            .collect();
        all.sort_by_key(|(told, _)| told.heard);
        all
    }
}

impl Reply {
    /// What an append of `count` items was answered.
    pub fn of(answer: &Answer, count: u64) -> Self {
        let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
            return Self::Other(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)));
        };
        match answer.status.as_u16() {
            201 => Self::Stored(Stored {
                ranges: ranges(&body),
                date: millis(body["date"].as_str().expect("a date")),
                items: body[TOTAL].as_u64().expect("a total"),
                pages: body["totalPages"].as_u64().expect("a total"),
                replayed: answer.headers.get("idempotency-replayed").is_some_and(|value| value == "true"),
            }),
            503 => {
                let slug = body["type"].as_str().and_then(|kind| kind.split_once('#'));
                let slug = slug.expect("a problem's type").1.to_owned();
                let items = &body["unknownItems"];
                let unknown = match (items["first"].as_u64(), items["last"].as_u64()) {
                    (Some(first), Some(last)) => last + 1 - first,
                    // Those that do not say which.
                    _ if ["outcome-unknown", "timed-out"].contains(&slug.as_str()) => count,
                    _ => 0,
                };
                Self::Again { slug, ranges: ranges(&body), unknown }
            }
            status => Self::Other(format!("{status}: {body}")),
        }
    }

    /// Where the first items of the request are, by this answer.
    pub fn ranges(&self) -> &[Range] {
        match self {
            Self::Stored(Stored { ranges, .. }) | Self::Again { ranges, .. } => ranges,
            Self::Other(_) | Self::Silence => &[],
        }
    }
}

/// A date of the API's, in milliseconds.
pub fn millis(date: &str) -> i64 {
    DateTime::parse_rfc3339_str(date).expect("a date").timestamp_millis()
}

fn ranges(body: &Value) -> Vec<Range> {
    let seq = |range: &Value, end: &str| range[end].as_u64().expect("a seq");
    let ranges = body["ranges"].as_array().map_or(&[][..], Vec::as_slice);
    ranges.iter().map(|range| (seq(range, "firstSeq"), seq(range, "lastSeq"))).collect()
}

/// Each `seq` of these ranges.
pub fn seqs(ranges: &[Range]) -> impl Iterator<Item = u64> + '_ {
    ranges.iter().flat_map(|(first, last)| *first..=*last)
}
