//! The body of a request: its media type, and its bytes within their limits.

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Uri, header};
use http_body_util::BodyExt;
use pagebucket_streams::ingest::BYTE_ORDER_MARK;

use crate::admission::accept::NDJSON;
use crate::admission::deadline;
use crate::admission::limits::Limits;
use crate::problem::{Problem, ProblemKind};

/// The media type of any bytes: of a body of lines in OpenAPI 3.0, which generators know no other word for.
pub(crate) const OCTETS: &str = "application/octet-stream";

/// Expects a body of this media type; lines may also be sent as [`OCTETS`]. `advice` may say where to send
/// others.
///
/// # Errors
/// The body is of another type, or it is compressed or not in UTF-8.
pub(crate) fn expect(
    headers: &HeaderMap,
    expected: &str,
    advice: impl FnOnce() -> String,
) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(ProblemKind::UnsupportedMediaType, detail));
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (media_type, parameters) = given.split_once(';').unwrap_or((given, ""));
    let is = |expected: &str| media_type.trim().eq_ignore_ascii_case(expected);
    if !is(expected) && (expected != NDJSON || !is(OCTETS)) {
        return refuse(&format!("The `Content-Type` must be `{expected}`.{}", advice()));
    }
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches('"').to_owned())
    });
    if charset.is_some_and(|charset| !charset.eq_ignore_ascii_case("utf-8")) {
        return refuse("The body must be in UTF-8.");
    }
    let coding = headers.get(header::CONTENT_ENCODING);
    if coding.is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return refuse("The body must not be compressed.");
    }
    Ok(())
}

/// Advice for a route that takes JSON and has an upload below it.
pub(crate) fn upload_below(uri: &Uri) -> String {
    upload_of(uri.path())
}

/// Advice for a route that takes JSON and has an upload beside it.
pub(crate) fn upload_beside(uri: &Uri) -> String {
    upload_of(uri.path().rsplit_once('/').map_or("", |(parent, _)| parent))
}

fn upload_of(parent: &str) -> String {
    format!(" Lines of `{NDJSON}` are sent to `{parent}/upload`.")
}

/// Reads all of a body of JSON, within its limits. A byte order mark before it is left out (RFC 8259, section
/// 8.1), as in uploads.
///
/// # Errors
/// The body is too long or too slow, or breaks off.
pub(crate) async fn read(mut body: Body, limits: Limits) -> Result<Bytes, Problem> {
    let too_large = || {
        let most = format!("The body must have at most {} bytes.", limits.body);
        Err(Problem::new(ProblemKind::BodyTooLarge, most))
    };
    // Before anything is read: a client that announces too much and waits for "100 Continue" need not send
    // it.
    if body.size_hint().lower() > limits.body as u64 {
        return too_large();
    }
    // One buffer: a frame takes far more memory than its bytes if it has few.
    let mut collected = Vec::new();
    let all = async {
        while let Some(frame) = body.frame().await.transpose()? {
            let data = frame.into_data().unwrap_or_default();
            if data.len() > limits.body - collected.len() {
                return Ok(false);
            }
            collected.extend_from_slice(&data);
        }
        Ok::<_, axum::Error>(true)
    };
    let limit = limits.body_timeout.min(deadline::BODY);
    match tokio::time::timeout(limit, all).await {
        Ok(Ok(true)) => {
            let all = Bytes::from(collected);
            Ok(if all.starts_with(BYTE_ORDER_MARK) { all.slice(BYTE_ORDER_MARK.len()..) } else { all })
        }
        Ok(Ok(false)) => too_large(),
        Ok(Err(_)) => Err(Problem::new(ProblemKind::MalformedJson, "The body is incomplete.")),
        Err(_elapsed) => {
            let seconds = limit.as_secs();
            Err(Problem::new(ProblemKind::BodyTimeout, format!("The body must arrive within {seconds} s.")))
        }
    }
}
