//! The body of an append: bounded, timed, JSON, and parsed with all its faults.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::problem::{Kind, Problem};
use super::{Api, Limits, uploads};
use crate::domain::{DraftError, TradeDraft, parse_drafts};

/// The most trades in one request.
pub(super) const MOST_TRADES: usize = 1000;

/// What is appended.
pub enum TradesBody {
    /// One trade, or an array of 1 to 1,000.
    Whole(Vec<TradeDraft>),
    /// A trade a line, still to be read.
    Lines(Body),
}

/// A trade a line, still to be read.
pub struct LinesBody(pub Body);

impl FromRequest<Arc<Api>> for LinesBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &Arc<Api>) -> Result<Self, Problem> {
        expect(request.headers(), &[uploads::MEDIA_TYPE])?;
        Ok(Self(request.into_body()))
    }
}

impl FromRequest<Arc<Api>> for TradesBody {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Problem> {
        if expect(request.headers(), &[JSON, uploads::MEDIA_TYPE])? == uploads::MEDIA_TYPE {
            return Ok(Self::Lines(request.into_body()));
        }
        let bytes = read(request.into_body(), api.limits).await?;
        match parse_drafts(&bytes, MOST_TRADES) {
            Ok(drafts) => Ok(Self::Whole(drafts)),
            Err(DraftError::NotJson(error)) => {
                Err(Problem::new(Kind::MalformedJson, format!("Not JSON: {error}.")))
            }
            Err(DraftError::Invalid(faults)) => Err(Problem::invalid_trades(&faults)),
        }
    }
}

pub(super) const JSON: &str = "application/json";

/// Which of these media types the body is.
pub(super) fn expect(headers: &HeaderMap, types: &[&'static str]) -> Result<&'static str, Problem> {
    let refuse = |detail: &str| Err(Problem::new(Kind::UnsupportedMediaType, detail));
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (essence, parameters) = given.split_once(';').unwrap_or((given, ""));
    let Some(media_type) = types.iter().find(|media_type| essence.trim().eq_ignore_ascii_case(media_type))
    else {
        return refuse(&format!("The `Content-Type` must be `{}`.", types.join("` or `")));
    };
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    if charset.is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
        return refuse("The body must be in UTF-8.");
    }
    match headers
        .get(header::CONTENT_ENCODING)
        .map(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        Some(false) => refuse("The body must not be compressed."),
        _ => Ok(media_type),
    }
}

/// Reads all of a body, within its limits.
pub(super) async fn read(body: Body, limits: Limits) -> Result<Bytes, Problem> {
    let too_large = || {
        let most = format!("The body must have at most {} bytes.", limits.body);
        Err(Problem::new(Kind::BodyTooLarge, most))
    };
    // Before anything is read: who announces too much and waits for "100 Continue" need not send it.
    if body.size_hint().lower() > limits.body as u64 {
        return too_large();
    }
    let collected = Limited::new(body, limits.body).collect();
    match tokio::time::timeout(limits.body_timeout, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => too_large(),
        Ok(Err(_)) => Err(Problem::new(Kind::MalformedJson, "The body ended before its end.")),
        Err(_elapsed) => {
            let seconds = limits.body_timeout.as_secs();
            Err(Problem::new(Kind::BodyTimeout, format!("The body must arrive within {seconds} s.")))
        }
    }
}
