//! What a client is ready to take. There is one answer, JSON, or for an upload a JSON text a line, and
//! it is said before anything is done that it will not be taken: an append is not stored then.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem};
use super::uploads;

/// Answers 406 to whoever would take neither JSON nor any encoding of it that is made here.
pub(super) async fn json_or_nothing(request: Request, next: Next) -> Response {
    let lines = uploads::is_one(request.method(), request.headers()) && takes_lines(request.headers());
    let refused = if !lines && !takes_json(request.headers()) {
        "The answer is `application/json`, which `Accept` excludes."
    } else if !takes_encoding(request.headers()) {
        "The answer is sent as it is, or as `gzip` or `zstd`; `Accept-Encoding` excludes all three."
    } else {
        return next.run(request).await;
    };
    Problem::new(Kind::NotAcceptable, refused).into_response()
}

/// Whether some media range that is as exact as any (RFC 9110, 12.5.1) names JSON with a weight
/// above 0. A header without one well-formed range excludes nothing.
fn takes_json(headers: &HeaderMap) -> bool {
    let ranges: Vec<_> = listed(headers, header::ACCEPT).filter(|(range, _)| range.contains('/')).collect();
    let weight = |named: &str| {
        ranges.iter().filter(|(range, _)| range.eq_ignore_ascii_case(named)).map(|(_, taken)| *taken).max()
    };
    let exactest = ["application/json", "application/*", "*/*"].into_iter().find_map(weight);
    exactest.unwrap_or(ranges.is_empty())
}

/// Whether it names a JSON text a line, so that an upload is answered line by line.
pub(super) fn takes_lines(headers: &HeaderMap) -> bool {
    listed(headers, header::ACCEPT)
        .any(|(range, taken)| taken && range.eq_ignore_ascii_case(uploads::MEDIA_TYPE))
}

/// Whether it takes the bytes as they are, or compressed in a way that they are compressed here.
fn takes_encoding(headers: &HeaderMap) -> bool {
    let codings: Vec<_> = listed(headers, header::ACCEPT_ENCODING).collect();
    let weight = |named: &str| {
        codings.iter().find(|(coding, _)| coding.eq_ignore_ascii_case(named)).map(|(_, taken)| *taken)
    };
    let any_other = weight("*");
    weight("identity").or(any_other).unwrap_or(true)
        || ["gzip", "zstd"].iter().any(|coding| weight(coding).or(any_other).unwrap_or(false))
}

/// The elements of a header, each without its parameters, and whether its weight is above 0. A weight
/// that is none is taken for 1.
fn listed(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = (&str, bool)> {
    let lines = headers.get_all(name).into_iter().filter_map(|line: &HeaderValue| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|element| {
        let (named, parameters) = element.split_once(';').unwrap_or((element, ""));
        let weight = parameters.split(';').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f32>().unwrap_or(1.0))
        });
        Some((named.trim(), weight.is_none_or(|weight| weight > 0.0))).filter(|(named, _)| !named.is_empty())
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
            assert!(takes_json(&with(header::ACCEPT, accept)), "{accept:?}");
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
            assert!(!takes_json(&with(header::ACCEPT, accept)), "{accept:?}");
        }
        assert!(takes_json(&HeaderMap::new()));
    }

    #[test]
    fn lines_are_only_sent_to_who_names_them() {
        for (accept, lines) in [
            ("application/x-ndjson", true),
            ("application/json, Application/X-NDJSON;q=0.1", true),
            ("application/x-ndjson;q=0", false),
            ("application/*", false),
            ("*/*", false),
        ] {
            assert_eq!(takes_lines(&with(header::ACCEPT, accept)), lines, "{accept:?}");
        }
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
}
