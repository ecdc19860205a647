//! Parameters of requests about page views.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use pagebucket_model::domain::{Instant, Invalid, Limit};
use pagebucket_page_views::{Minute, PagePath, Resolution, SeriesSpan, SpanError};
use utoipa::openapi::path::Parameter;

use crate::problem::Problem;
use crate::request::params::{ParameterReader, given, in_query, instant, required_in_query};
use crate::schemas::{date_time, page_path, resolution, whole};
use crate::state::Api;

/// `/page-views?…`
pub(crate) struct SeriesParams {
    pub path: PagePath,
    pub span: SeriesSpan,
}

/// `/page-views/buckets?…`
pub(crate) struct BucketParams {
    pub path: PagePath,
    pub minute: Minute,
}

/// `/page-views/top?…`
pub(crate) struct TopParams {
    /// On a whole minute.
    pub from: Instant,
    /// On a whole minute.
    pub to: Instant,
    pub limit: Limit,
}

impl FromRequestParts<Arc<Api>> for SeriesParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let mut reader = ParameterReader::of(parts);
        let path = reader.required("path", PagePath::parse);
        let resolution = reader.query("resolution", Resolution::parse).unwrap_or(Resolution::Minute);
        let (from, to) = (reader.query("from", instant), reader.query("to", instant));
        let span = SeriesSpan::covering(from, to.unwrap_or_else(|| api.clock.now()), resolution);
        let span = span.map_err(|error| match error {
            SpanError::Reversed => reversed(&mut reader, to),
            SpanError::To(Invalid(detail)) => reader.refuse("to", detail),
            SpanError::TooLong { points, fits } => {
                let most = SeriesSpan::MOST_POINTS;
                let advice = match fits {
                    Some(fits) => format!("`{fits}` fits"),
                    None => "use a shorter span, because no resolution fits".to_owned(),
                };
                let detail =
                    format!("`{resolution}` gives {points} points, more than the limit of {most}: {advice}");
                reader.refuse("resolution", detail);
            }
        });
        reader.finish()?;
        Ok(Self { path: given(path), span: given(span.ok()) })
    }
}

fn reversed(reader: &mut ParameterReader<'_>, to: Option<Instant>) {
    match to {
        Some(_) => reader.refuse("to", "must not be before `from`"),
        None => reader.refuse("from", "must not be later than now if there is no `to`"),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for BucketParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = ParameterReader::of(parts);
        let path = reader.required("path", PagePath::parse);
        let minute = reader.required("timestamp", |text| Minute::beginning_at(instant(text)?));
        reader.finish()?;
        Ok(Self { path: given(path), minute: given(minute) })
    }
}

impl FromRequestParts<Arc<Api>> for TopParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Problem> {
        let mut reader = ParameterReader::of(parts);
        let (from, to) = (reader.query("from", instant), reader.query("to", instant));
        let limit = reader.query("limit", Limit::parse);
        let end = to.unwrap_or_else(|| api.clock.now());
        let hour_before =
            || Instant::from_millis(end.millis() - Resolution::Hour.millis()).unwrap_or(Instant::MIN);
        let begin = from.unwrap_or_else(hour_before);
        let span = if begin > end {
            reversed(&mut reader, to);
            None
        } else {
            let span = Resolution::Minute.around(begin, end);
            span.map_err(|Invalid(detail)| reader.refuse("to", detail)).ok()
        };
        reader.finish()?;
        let (from, to) = given(span);
        Ok(Self { from, to, limit: limit.unwrap_or(Limit::TOP) })
    }
}

fn path_parameter() -> Parameter {
    required_in_query("path", "The path of the page, as it was counted.", page_path(), "/index.htm")
}

/// `from` and `to`; `begin` is the default of `from`.
fn span(begin: &str) -> [Parameter; 2] {
    let from = format!("Only views at this moment or later: RFC 3339 with an offset. Default: {begin}.");
    let to = "Only views before this moment. Default: now.";
    [in_query("from", &from, date_time()), in_query("to", to, date_time())]
}

impl SeriesParams {
    /// Documents the parameters.
    pub(crate) fn documented() -> Vec<Parameter> {
        let description = "The span of one point; hours and days are those of UTC. Default: `minute`.";
        let [from, to] = span("60 points before the end of the last point");
        vec![path_parameter(), from, to, in_query("resolution", description, resolution())]
    }
}

impl BucketParams {
    /// Documents the parameters.
    pub(crate) fn documented() -> Vec<Parameter> {
        let description = "The beginning of the minute: RFC 3339 with an offset, on a whole minute.";
        vec![
            path_parameter(),
            required_in_query("timestamp", description, date_time(), "2014-01-01T10:01:00.000Z"),
        ]
    }
}

impl TopParams {
    /// Documents the parameters.
    pub(crate) fn documented() -> Vec<Parameter> {
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::TOP.get().into()));
        let [from, to] = span("an hour before `to`");
        vec![from, to, in_query("limit", "Maximum number of pages in the answer.", limit)]
    }
}
