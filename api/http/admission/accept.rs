//! Which answers a client can take. Each route answers in one media type. A client that excludes it is
//! refused before anything is done, so that an append is not stored. Where the address itself names the media
//! type of the answer by its ending, such as `.csv`, the client has asked for it, and `Accept` is disregarded
//! (RFC 9110, 12.5.1, allows it): generated clients send `Accept: application/json` with all of their
//! requests.
//!
//! Every answer that is not JSON is streamed, and a streamed answer needs HTTP/1.1, unless it is a live
//! stream. Its length is not known beforehand, so it is sent in chunks, and when it breaks off the last chunk
//! is missing (RFC 9112, 6.3). In HTTP/1.0 it would end with its connection, and one that breaks off would
//! look whole. Resetting the connection is not enough: the system closes the connections of a killed process
//! in order, and a forwarder of connections may turn a reset into an ordinary end.
//!
//! The status is 505, although RFC 9110 speaks of the *major* version there. 426 would have to name a
//! protocol in `Upgrade`. HTTP/1.0 does not know that header, and a proxy that passes it on to a client of
//! HTTP/2 makes the answer malformed (nginx does).

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Version, header};

use crate::problem::{Problem, ProblemKind};

/// The media type of JSON (RFC 8259).
pub(crate) const JSON: &str = "application/json";

/// The media type of one JSON text per line. (<https://github.com/ndjson/ndjson-spec>)
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// The media type of Server-Sent Events (HTML, section "Server-sent events").
pub(crate) const EVENTS: &str = "text/event-stream";

/// The media type of CSV (RFC 4180).
pub(crate) const CSV: &str = "text/csv";

/// Refuses clients of HTTP/1.0 if the answer is streamed, clients that exclude JSON or events if it has
/// these, and clients that exclude every encoding that the server can send.
///
/// # Errors
/// The client cannot take the answer.
pub(crate) fn takes_answer(request: &Request, media_type: &str) -> Result<(), Problem> {
    let headers = request.headers();
    let refuse = |kind, why: &str| Err(Problem::new(kind, why));
    // A client that loses a live stream resumes it after the last event, wherever it broke off.
    if ![JSON, EVENTS].contains(&media_type) && request.version() < Version::HTTP_11 {
        let why = "This answer is streamed, and needs HTTP/1.1 or later. The request, or a proxy, speaks HTTP/1.0. Nothing was done.";
        return refuse(ProblemKind::HttpVersionNotSupported, why);
    }
    if [JSON, EVENTS].contains(&media_type) && !takes_media(headers, media_type) {
        let why = format!("The answer is `{media_type}`, which `Accept` excludes.");
        return refuse(ProblemKind::NotAcceptable, &why);
    }
    if !takes_encoding(headers) {
        let why =
            "The answer is sent uncompressed, or as `gzip` or `zstd`. `Accept-Encoding` excludes all three.";
        return refuse(ProblemKind::NotAcceptable, why);
    }
    Ok(())
}

/// Whether the client accepts the media type. The most specific media range that matches it decides (RFC
/// 9110, 12.5.1), and the weight 0 excludes it. A header without a well-formed range excludes nothing.
fn takes_media(headers: &HeaderMap, media_type: &str) -> bool {
    if !headers.contains_key(header::ACCEPT) {
        return true;
    }
    let (kind, _) = media_type.split_once('/').expect("a media type has a subtype");
    let given = weight(headers, header::ACCEPT, [media_type, &format!("{kind}/*"), "*/*"]);
    given.map_or_else(
        || listed(headers, header::ACCEPT).all(|(range, _)| !range.contains('/')),
        |weight| weight > 0.0,
    )
}

/// Whether the client accepts the answer uncompressed, or in an encoding that the server can send.
fn takes_encoding(headers: &HeaderMap) -> bool {
    !headers.contains_key(header::ACCEPT_ENCODING)
        || weight_of_coding(headers, "identity").unwrap_or(1.0) > 0.0
        || ["gzip", "zstd"].iter().any(|coding| weight_of_coding(headers, coding).unwrap_or(0.0) > 0.0)
}

/// Whether the client accepts gzip, and does not prefer the uncompressed answer.
pub(crate) fn prefers_gzip(headers: &HeaderMap) -> bool {
    let gzip = weight_of_coding(headers, "gzip").unwrap_or(0.0);
    gzip > 0.0 && gzip >= weight_of_coding(headers, "identity").unwrap_or(0.0)
}

/// The weight that the client gives a content coding, by its name or by `*`; `None` if it gives none.
fn weight_of_coding(headers: &HeaderMap, coding: &str) -> Option<f32> {
    weight(headers, header::ACCEPT_ENCODING, [coding, "*"])
}

/// The weight of the first of these names that a header lists.
fn weight<const N: usize>(headers: &HeaderMap, header: HeaderName, names: [&str; N]) -> Option<f32> {
    names.into_iter().find_map(|name| {
        let same = listed(headers, header.clone()).filter(|(listed, _)| listed.eq_ignore_ascii_case(name));
        same.map(|(_, weight)| weight).max_by(f32::total_cmp)
    })
}

/// The elements of a header without their parameters, each with its weight. A malformed weight counts as 1.
fn listed(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = (&str, f32)> {
    let lines = headers.get_all(name).into_iter().filter_map(|line: &HeaderValue| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|element| {
        let (named, parameters) = element.split_once(';').unwrap_or((element, ""));
        let weight = parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f32>().unwrap_or(1.0))
        });
        Some((named.trim(), weight.unwrap_or(1.0))).filter(|(named, _)| !named.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn json_is_taken_unless_it_is_excluded() {
        for accept in [
            "*/*",
            "application/json",
            "APPLICATION/JSON; charset=utf-8",
            "application/*;q=0.1",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "application/problem+json, application/json",
            "*/*;q=0, application/json",
            "application/json;q=high",
            "",
            "garbage",
        ] {
            assert!(takes_media(&with(header::ACCEPT, accept), JSON), "{accept:?}");
        }
        for accept in [
            "text/html",
            "application/problem+json",
            "application/jsonp",
            "application/json;q=0",
            "application/json;q=0.000, */*",
            "application/*;q=0, */*",
            "*/*;q=0",
            "text/csv, garbage",
        ] {
            assert!(!takes_media(&with(header::ACCEPT, accept), JSON), "{accept:?}");
        }
        assert!(takes_media(&HeaderMap::new(), JSON));
    }

    #[test]
    fn some_encoding_is_taken_unless_all_are_excluded() {
        for accept in
            ["", "br", "gzip;q=0", "identity;q=0, gzip", "*;q=0, identity", "*;q=0, zstd;q=0.1", "*"]
        {
            assert!(takes_encoding(&with(header::ACCEPT_ENCODING, accept)), "{accept:?}");
        }
        for accept in ["identity;q=0", "*;q=0", "br, identity;q=0", "gzip;q=0, zstd;q=0, identity;q=0, *"] {
            assert!(!takes_encoding(&with(header::ACCEPT_ENCODING, accept)), "{accept:?}");
        }
    }

    #[test]
    fn gzip_is_preferred_where_it_is_taken() {
        for (accept, gzip) in [
            ("gzip", true),
            ("gzip, deflate, br, zstd", true),
            ("identity, GZIP", true),
            ("gzip;q=0.1", true),
            ("*", true),
            ("", false),
            ("br, zstd", false),
            ("gzip;q=0, *", false),
            ("identity, gzip;q=0.5", false),
            ("*;q=0", false),
        ] {
            assert_eq!(prefers_gzip(&with(header::ACCEPT_ENCODING, accept)), gzip, "{accept:?}");
        }
        assert!(!prefers_gzip(&HeaderMap::new()));
    }
}
