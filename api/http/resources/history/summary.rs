//! Summaries of a history: what its items add up to, by spans of time and groups.
//!
//! An answer without `asOf` changes when the history grows, and when a span ends; its tag names both. With
//! `asOf` its points are a function of immutable pages, of the definition's `summaries`, and of the rules of
//! the time zone, which governments change: only in UTC it may be kept for good. How many points are in one
//! answer may differ, so tags are weak. What is retired is in no point, so an answer may not be kept for good
//! either when the history has lost its beginning.

pub(crate) mod of_all;
mod params;
mod view;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use pagebucket_engine::summaries::{SummaryError, SummaryPage, SummaryQuery, SummaryScan};
use pagebucket_engine::{Engine, Error, Gone, History};
use pagebucket_model::definition::Summaries;
use pagebucket_model::domain::{Instant, Order, OwnerId, OwnerMember, Seq, Totals};
use pagebucket_model::summary::{Zone, within_years};
use serde_json::json;
use sha2::{Digest, Sha256};

use self::params::{MOST_POINTS, SummaryParams};
use self::view::{SummaryPageView, SummaryPointView, not_declared};
use crate::admission::accept::JSON;
use crate::admission::address::decoded;
use crate::admission::client::Client;
use crate::admission::rate::of_search;
use crate::answer::notes::ItemCount;
use crate::caching::control::Caching;
use crate::caching::etag::weaken;
use crate::caching::reading::Reading;
use crate::problem::ProblemKind::{self, Erased, Retired, SummaryNotReady, SummaryTooLarge};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, Params};
use crate::resources::links::Links;
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::headers::{self, LINKS};
use crate::schemas::names::Names;
use crate::state::Api;

/// A summary that reads more pages has one of the permits of long reads.
const FEW_PAGES: usize = 100;

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { owners, items, owner_field, items_type, many_items, owner_example, examples, .. } = names;
    let example = examples.series_values.as_ref().map(|values| {
        json!({
            (owner_field): examples.owner, "by": "1d", "tz": "UTC", "totalItems": 1,
            "points": [{
                "start": "2004-01-09T00:00:00.000Z", "end": "2004-01-10T00:00:00.000Z", "date": "2004-01-09", "count": 1,
                "firstSeq": 1, "lastSeq": 1, "values": values, "complete": true
            }],
            "links": { "self": format!("/v1/{owners}/{owner_example}/{items}/summary?by=1d") }
        })
    });
    RouteDocument::of(
        names,
        format!("summarise{items_type}"),
        format!("Summarise {many_items} by spans of time"),
        format!("Returns what the {many_items} of each span of time add up to: their number, and of the properties \
        that the definition names, exact sums, and the first, greatest, least and last values by date. \
        `group` makes a point for each of its values. Points are in order of time, with `order=desc` the \
        newest first, and `next` goes on with the first span that is not in the answer; an answer may \
        have no points and a link to the next. A request reads at most 1,000 pages, or instead of 64 of \
        them a tile, which says what they add up to. If a single span needs more, or has more groups than \
        `limit`, it is refused with 422. The filters of listings choose {many_items} here, too."),
    )
    .parameters(<(OwnerId, SummaryParams)>::documented(names))
    .reads_tagged("The points.")
    .header(headers::link(LINKS))
    .header(headers::etag("Weak. Changes when the history grows, and when a span ends. With `asOf` it names the moment."))
    .header(headers::cache_control("`immutable` with `asOf` in UTC, unless pages are retired; otherwise `no-cache`."))
    .shows::<SummaryPageView>(JSON, example)
    .problems(problems(names, &[COMMON, &[Retired, Erased, SummaryTooLarge, SummaryNotReady]]))
}

pub(crate) async fn summary(
    State(api): State<Arc<Api>>,
    uri: Uri,
    Address { engine, params: (owner, params) }: Address<(OwnerId, SummaryParams)>,
    client: Client,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let definition = engine.definition();
    let Some(summaries) = &definition.summaries else {
        return Err(Problem::new(ProblemKind::NotFound, not_declared(definition)));
    };
    let asked = Asked { engine: &engine, owner: &owner, params: &params, tag: tag(summaries) };
    if let Some(last) = params.as_of
        && params.shape.spans.zone.is_utc()
        && let Some(unchanged) = reading.named(&engine, |_| asked.of_snapshot(&reading, last))
    {
        return Ok(unchanged);
    }
    let history = reading.database(engine.reads().history(owner.clone(), reading.deadline)).await?;
    match asked.answer(history, &api, &uri, &client, &mut reading).await {
        // Pages were retired while it was computed: what is there now is summarised.
        Err(Failed::Store(Error::Gone(Gone::Retired { .. }))) => {
            let history = reading.database(engine.reads().history(owner.clone(), reading.deadline)).await?;
            Ok(asked.answer(history, &api, &uri, &client, &mut reading).await?)
        }
        answer => Ok(answer?),
    }
}

/// A summary that a client asks for.
struct Asked<'a> {
    engine: &'a Engine,
    owner: &'a OwnerId,
    params: &'a SummaryParams,
    /// Names the summaries of the definition, and the version of the time zones.
    tag: String,
}

/// Why there is no answer.
enum Failed {
    /// The database, or what it says.
    Store(Error),
    Problem(Problem),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Store(error) => error.into(),
            Failed::Problem(problem) => problem,
        }
    }
}

impl Asked<'_> {
    /// The summary of this history.
    async fn answer(
        &self,
        history: History,
        api: &Api,
        uri: &Uri,
        client: &Client,
        reading: &mut Reading,
    ) -> Result<Response, Failed> {
        let (params, first, totals) = (self.params, history.first_seq(), history.totals());
        let as_of = params.as_of.filter(|last| Some(*last) <= totals.last_seq());
        if as_of.is_some_and(|last| last < first) {
            return Err(Problem::retired(history.first_page(), first).into());
        }
        let now = api.clock.now();
        let caching = match as_of {
            Some(last) => self.of_snapshot(reading, last),
            None => self.of_tail(reading, totals, now),
        };
        let now = as_of.is_none().then_some(now);
        let caching = match first > Seq::FIRST {
            true => caching.since(first).revalidated(),
            false => caching,
        };
        if let Some(unchanged) = reading.unchanged(&caching) {
            return Ok(unchanged);
        }
        let query = SummaryQuery {
            shape: Arc::clone(&params.shape),
            ends: params.ends,
            filters: params.filters.clone(),
            as_of,
            fill: params.fill,
            order: params.order,
            limit: params.limit,
        };
        let scan = reading.database(self.engine.summaries().of(history, query, reading.deadline)).await?;
        let _permit = match scan.stretches() > FEW_PAGES {
            true => Some(api.scans.take_soon(client.clone()).await?),
            false => None,
        };
        let first = scan.first_seq();
        let SummaryPage { page, .. } = self.read(scan, reading).await?;
        let point = |point| SummaryPointView::new(point, &params.shape, now);
        let points: Vec<_> = page.points.iter().map(point).collect();
        let next = page.next.map(|next| next_query(uri, params.order, within_years(next)));
        let (links, count) = (Links::to_points(uri, next), ItemCount::of(points.len()));
        let owner = OwnerMember::new(&self.engine.definition().owner.field, self.owner);
        let (header, spans) = (links.header(), &params.shape.spans);
        let view = SummaryPageView {
            owner,
            by: spans.length.to_string(),
            tz: spans.zone.name().to_owned(),
            total_items: as_of.map_or(totals.items(), Seq::get),
            first_seq: Some(first).filter(|first| *first > Seq::FIRST),
            points,
            links,
        };
        let mut answer = reading.answer(&caching, (header, count, Json(view)));
        // How many points are in one answer depends on what tiles there are.
        weaken(answer.headers_mut());
        Ok(answer)
    }

    async fn read(&self, scan: SummaryScan, reading: &mut Reading) -> Result<SummaryPage, Failed> {
        let (examined, lacked) = (scan.stretches(), scan.lacks_tiles());
        let read = reading.database(scan.read(reading.deadline)).await;
        let (count, lacks_tiles) = match &read {
            Ok(page) => (Some(page.read), page.lacks_tiles),
            Err(SummaryError::TooManyPages { read, lacks_tiles }) => (Some(*read), *lacks_tiles),
            Err(SummaryError::TooManyGroups(read)) => (Some(*read), lacked),
            Err(SummaryError::Store(_)) => (None, lacked),
        };
        count.into_iter().for_each(|read| reading.quota.owe(of_search(read, examined)));
        // After the pages were read, so that this answer does not wait for them. Also where it is refused,
        // because they were too many.
        if lacks_tiles {
            self.engine.summaries().begin_tiles(self.owner);
        }
        read.map_err(|error| match error {
            SummaryError::Store(error) => Failed::Store(error),
            SummaryError::TooManyPages { lacks_tiles: true, .. } => Failed::Problem(Problem::new(
                ProblemKind::SummaryNotReady,
                "More pages may have items of the first span of time than one request reads. Tiles, which say what 64 pages add up to, are being made of them.",
            )),
            SummaryError::TooManyPages { .. } => Failed::Problem(Problem::new(
                ProblemKind::SummaryTooLarge,
                "More pages may have items of the first span of time than one request reads. Ask for shorter spans (`by`), without groups and filters, or add them up from an export.",
            )),
            SummaryError::TooManyGroups(_) => Failed::Problem(Problem::new(
                ProblemKind::SummaryTooLarge,
                too_many_points(self.params.limit),
            )),
        })
    }

    /// With `asOf`. In another zone than UTC governments may change it.
    fn of_snapshot(&self, reading: &Reading, last: Seq) -> Caching {
        let caching = Caching::of_snapshot(reading.epoch, self.engine.definition(), self.owner, last);
        let caching = caching.of_part(&self.tag);
        if self.params.shape.spans.zone.is_utc() { caching } else { caching.revalidated() }
    }

    /// Without `asOf`: the last span that has ended matters, too.
    fn of_tail(&self, reading: &Reading, totals: Totals, now: Instant) -> Caching {
        let current = self.params.shape.spans.around(now).start;
        let caching = Caching::of_tail(reading.epoch, self.engine.definition(), self.owner, totals);
        caching.of_part(format_args!("{}.{current}", self.tag))
    }
}

/// Why a span with more points than `limit` is refused, and what to ask instead.
fn too_many_points(limit: usize) -> String {
    let instead = match limit < MOST_POINTS {
        true => format!("Ask for a greater `limit` (up to {MOST_POINTS}), fewer groups or shorter spans."),
        false => "Ask for some of the groups, by a filter with their values, for fewer groups or for shorter spans.".to_owned(),
    };
    format!(
        "One span of time has more than {limit} points, which `limit` allows, or too long numbers. {instead}"
    )
}

/// What a tag says of the definition, and of the time zones.
fn tag(summaries: &Summaries) -> String {
    let hash = Sha256::digest(summaries.canonical());
    let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("y{hash}.{}", Zone::version())
}

/// The address of the next points: with another `from`, or in descending order another `to`, otherwise as it
/// was requested.
fn next_query(own: &Uri, order: Order, next: Instant) -> String {
    let name =
        |pair: &str| decoded(pair.split('=').next().unwrap_or_default()).unwrap_or_default().into_owned();
    let end = if order == Order::Ascending { "from" } else { "to" };
    let is_end = |pair: &&str| name(pair) == end;
    let others = own.query().unwrap_or_default().split('&').filter(|pair| !is_end(pair) && !pair.is_empty());
    let others: Vec<_> = others.chain([&*format!("{end}={next}")]).map(str::to_owned).collect();
    format!("{}?{}", own.path(), others.join("&"))
}
