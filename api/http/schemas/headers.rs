//! The headers of answers. Those of the same name have the same values; what one means is said where it is
//! answered.

use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};

use super::schema;

/// A header and its name.
pub(crate) type NamedHeader = (&'static str, Header);

/// What a listing says of its links.
pub(crate) const LINKS: &str = "The links of the body (RFC 8288), if they have at most 2 KiB.";

macro_rules! headers {
    ($($function:ident, $name:literal: $schema:tt;)*) => {$(
        pub(crate) fn $function(about: impl Into<String>) -> NamedHeader {
            named($name, about, json!($schema))
        }
    )*};
}

headers! {
    accept_ranges, "Accept-Ranges": { "type": "string", "enum": ["items"] };
    cache_control, "Cache-Control": { "type": "string", "pattern": "^[a-z0-9=, -]+$", "maxLength": 40, "examples": ["no-cache"] };
    content_range, "Content-Range": { "type": "string", "pattern": "^items ([0-9]+-[0-9]+|\\*)/[0-9]+$", "maxLength": 60, "examples": ["items 0-9/34"] };
    etag, "ETag": { "type": "string", "pattern": "^(W/)?\"[!#-~]+\"$", "maxLength": 10000, "examples": ["\"1c9dad48152e05.4.7.trades.p2\""] };
    idempotency_replayed, "Idempotency-Replayed": { "type": "boolean", "examples": [true] };
    link, "Link": { "type": "string", "pattern": "^</", "maxLength": 2048, "examples": ["</v1/customers/7/trades>; rel=\"self\""] };
    location, "Location": { "type": "string", "pattern": "^/v1/", "maxLength": 200, "examples": ["/v1/customers/7/trades/1"] };
    retry_after, "Retry-After": { "type": "integer", "minimum": 0, "maximum": 4294967295_u32, "examples": [2] };
    www_authenticate, "WWW-Authenticate": { "type": "string", "pattern": "^Bearer ", "maxLength": 4096, "examples": ["Bearer realm=\"pagebucket\""] };
    x_total_count, "X-Total-Count": { "type": "integer", "minimum": 0, "maximum": 9007199254740991_u64, "examples": [34] };
}

/// How long the database took.
pub(crate) fn server_timing() -> NamedHeader {
    let about = "`db`: milliseconds spent waiting for the database. `cache`: whether all full pages were in memory; absent if \
                 none was looked up.";
    let schema = json!({ "type": "string", "pattern": "^db;dur=", "maxLength": 60, "examples": ["db;dur=0.412, cache;desc=hit"] });
    named("Server-Timing", about, schema)
}

/// The headers of a server with rate limits.
pub(crate) fn rates() -> [NamedHeader; 2] {
    let left = "What is left of the client's limit: `r` units, and the seconds `t` until all are back, or until there are enough for \
                this request. Absent if the server has no limits, or if it answered before they apply.";
    let policy =
        "The client's limit: `q` units at once, which are back after `w` seconds. Absent like `RateLimit`.";
    let pattern = r#"^"[^"]+"(;[a-z]+=[^,;]+)*(, "[^"]+"(;[a-z]+=[^,;]+)*)*$"#;
    let items =
        |example| json!({ "type": "string", "pattern": pattern, "maxLength": 400, "examples": [example] });
    [
        named("RateLimit", left, items(r#""reads";r=92;t=1"#)),
        named("RateLimit-Policy", policy, items(r#""reads";q=100;w=1"#)),
    ]
}

fn named(name: &'static str, about: impl Into<String>, values: Value) -> NamedHeader {
    (name, HeaderBuilder::new().schema(Some(schema(values))).description(Some(about)).build())
}
