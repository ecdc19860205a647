//! Items by their offset in the order: the header `Range` of a request, and what the headers of an answer say
//! about the items that it shows.

use axum::http::header::{IF_RANGE, RANGE, VARY};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method};
use axum::response::Response;
use pagebucket_model::domain::{Invalid, Limit, Order, Position, SeqRange, Totals};

use crate::answer::notes::AnswerNotes;
use crate::middleware::cors::TOTAL_COUNT;

/// At most `limit` items after the first `offset` in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetRange {
    pub offset: u64,
    pub limit: Limit,
    /// Whether the header `Range` asks for them. Such an answer is a part: 206, or 416 if there are none.
    pub part: bool,
}

/// The items that the header `Range` asks for (RFC 9110, section 14.2). `None` if there is no such header, or
/// if it is to be ignored: in a request other than GET, in another unit, or with `If-Range`, whose condition
/// would have to be evaluated first.
pub(crate) fn requested(parts: &Parts) -> Option<Result<OffsetRange, Invalid>> {
    if parts.method != Method::GET || parts.headers.contains_key(IF_RANGE) {
        return None;
    }
    let lines: Vec<_> = parts.headers.get_all(RANGE).iter().map(HeaderValue::as_bytes).collect();
    let header = String::from_utf8_lossy(&lines.join(&b',')).into_owned();
    let (unit, ranges) = header.split_once('=')?;
    let rule = "must be `items=first-last`: two offsets from 0 to 9007199254740991, for 1 to 100 items";
    unit.eq_ignore_ascii_case("items").then(|| only(ranges).ok_or_else(|| Invalid::new(rule)))
}

/// The only range of a list, which may have empty elements (RFC 9110, section 5.6.1).
fn only(ranges: &str) -> Option<OffsetRange> {
    let mut ranges = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
    let (first, last) = ranges.next()?.split_once('-')?;
    let [first, last] = [first, last].map(|offset| Position::parse(offset).ok());
    let (offset, last) = (first?.get(), last?.get());
    let limit = Limit::new(last.checked_sub(offset)? + 1).ok()?;
    ranges.next().is_none().then_some(OffsetRange { offset, limit, part: true })
}

/// Adds the headers that say which items an answer shows, and of how many.
pub(crate) fn with_headers(
    mut response: Response,
    shown: Option<SeqRange>,
    order: Order,
    totals: Totals,
) -> Response {
    let total = totals.items();
    let offsets = shown.map(|SeqRange { first, last }| match order {
        Order::Ascending => format!("{}-{}", first.get() - 1, last.get() - 1),
        Order::Descending => format!("{}-{}", total - last.get(), total - first.get()),
    });
    let range = format!("items {}/{total}", offsets.as_deref().unwrap_or("*"));
    let range = HeaderValue::try_from(range).expect("words and numbers");
    AnswerNotes::of_mut(response.extensions_mut()).content_range = Some(range);
    let headers = response.headers_mut();
    headers.insert(TOTAL_COUNT, total.into());
    headers.append(VARY, HeaderValue::from_static("range"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(method: Method, headers: &[(&str, &str)]) -> Option<Result<(u64, usize), Invalid>> {
        let request = axum::http::Request::builder().method(method);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        requested(&parts).map(|rows| rows.map(|rows| (rows.offset, rows.limit.get())))
    }

    #[test]
    fn one_range_of_items_is_served() {
        for (header, rows) in [
            ("items=0-9", (0, 10)),
            ("Items=5-5", (5, 1)),
            ("items=0-99", (0, 100)),
            ("items= 10-19 ,", (10, 10)),
            ("items=9007199254740991-9007199254740991", (9_007_199_254_740_991, 1)),
        ] {
            assert_eq!(range(Method::GET, &[("range", header)]), Some(Ok(rows)), "{header}");
        }
    }

    #[test]
    fn other_ranges_of_items_are_refused() {
        for header in [
            "items=",
            "items=,",
            "items=5",
            "items=-5",
            "items=5-",
            "items=9-0",
            "items=0-100",
            "items=0-9007199254740991",
            "items=0-9007199254740992",
            "items=0-9,20-29",
            "items=a-b",
            "items=0-9;x",
            "items=+0-9",
            "items=0--9",
            "items=0-9=",
        ] {
            assert!(matches!(range(Method::GET, &[("range", header)]), Some(Err(_))), "{header}");
        }
        let twice = [("range", "items=0-9"), ("range", "items=0-9")];
        assert!(matches!(range(Method::GET, &twice), Some(Err(_))));
    }

    #[test]
    fn what_is_no_range_of_items_is_ignored() {
        for header in ["", "bytes=0-9", "bytes=0-9,items=0-9", "items", "0-9", "rows=0-9", "ä=0-9"] {
            assert_eq!(range(Method::GET, &[("range", header)]), None, "{header}");
        }
        assert_eq!(range(Method::GET, &[]), None);
        assert_eq!(range(Method::HEAD, &[("range", "items=0-9")]), None);
        assert_eq!(range(Method::GET, &[("range", "items=0-9"), ("if-range", "\"x\"")]), None);
    }
}
