//! The table of the kinds of problems.

use axum::http::StatusCode;

/// What the `type` of every problem begins with.
const TYPE: &str = "/problems#";

/// One row of the table of kinds.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The last part of its `type`.
    pub slug: &'static str,
    /// The status it is sent with.
    pub status: StatusCode,
    /// The kind in words.
    pub title: &'static str,
    /// What it means and what a client may do, for the documentation.
    pub about: &'static str,
    /// Whether it means that the request stored nothing.
    pub nothing_stored: bool,
    /// Seconds to wait before a retry. Only for kinds that store nothing.
    pub retry_after: Option<u32>,
}

macro_rules! kinds {
    ($($kind:ident: $status:ident, $slug:literal, $title:literal, nothing_stored = $nothing:literal
        $(, retry_after = $seconds:literal)?, $about:literal;)*) => {
        /// The kinds of problems that a client can tell apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ProblemKind {
            $(#[doc = $about] $kind,)*
        }

        impl ProblemKind {
            /// All of them, by status.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// Its row of the table.
            pub fn spec(self) -> Spec {
                match self {
                    $(Self::$kind => Spec {
                        slug: $slug,
                        status: StatusCode::$status,
                        title: $title,
                        about: $about,
                        nothing_stored: $nothing,
                        retry_after: [$($seconds)?].first().copied(),
                    },)*
                }
            }
        }
    };
}

// The table, by status.
kinds! {
    InvalidParameter: BAD_REQUEST, "invalid-parameter", "Invalid parameter", nothing_stored = true,
        "A parameter of the path or the query is unknown, repeated, missing or malformed. `errors` names each.";
    MalformedJson: BAD_REQUEST, "malformed-json", "Malformed JSON", nothing_stored = true,
        "The body is incomplete, or not JSON (RFC 8259) in UTF-8. `detail` says what is wrong.";
    Unauthorized: UNAUTHORIZED, "unauthorized", "Unauthorized", nothing_stored = true,
        "The request has no valid token or key. `WWW-Authenticate` says what is wrong (RFC 6750). Nothing was done.";
    Forbidden: FORBIDDEN, "forbidden", "Forbidden", nothing_stored = true,
        "The token or key lacks the scope that the request needs, or does not allow access to these histories. The answer is the same whether they exist or not. Nothing was done.";
    ErasingOff: FORBIDDEN, "erasing-off", "Erasing is off", nothing_stored = true,
        "This server does not authenticate its clients, and was not started with `--allow-erase`: no client may erase. An operator can, by the command `pagebucket erase`. Nothing was erased.";
    NotFound: NOT_FOUND, "not-found", "Not found", nothing_stored = true,
        "Nothing is served at this address.";
    PageNotFound: NOT_FOUND, "page-not-found", "No such page", nothing_stored = true,
        "The history has no page with this number yet.";
    ItemNotFound: NOT_FOUND, "item-not-found", "No such item", nothing_stored = true,
        "The history has no item with this sequence number yet.";
    BucketNotFound: NOT_FOUND, "bucket-not-found", "No such bucket", nothing_stored = true,
        "There is no bucket for this page and minute. No view was counted in it and it was not preallocated, or its retention time has passed.";
    MethodNotAllowed: METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", nothing_stored = true,
        "This address does not support the method. The header `Allow` names those that it supports.";
    NotAcceptable: NOT_ACCEPTABLE, "not-acceptable", "Not acceptable", nothing_stored = true,
        "`Accept` does not allow the media type of this route, or `Accept-Encoding` excludes every encoding that the server can send. Nothing was done.";
    BodyTimeout: REQUEST_TIMEOUT, "body-timeout", "Body too slow", nothing_stored = true,
        "The body did not arrive in time, or the body of an upload came too slowly. Nothing was stored.";
    HistoryExhausted: CONFLICT, "history-exhausted", "History exhausted", nothing_stored = true,
        "The next bucket of this history would begin after the last possible second, in November 2286. Either the last bucket already begins in that second, or the server's clock is wrong. A retry fails until this is corrected.";
    Retired: GONE, "retired", "Retired", nothing_stored = true,
        "The history had what the request asks for, and no longer keeps it. `firstPage` is the first page that is there, `firstSeq` its first item. Page and sequence numbers stay as they were: continue at `firstPage`, or with `after=0`, which begins at the first item that is there. For an append with an `Idempotency-Key`: the pages that may hold the earlier attempt's items are deleted, so its outcome is unknown.";
    Erased: GONE, "erased", "Erased", nothing_stored = true,
        "The histories of this owner are erased. They are neither read nor appended to, unless an operator reopens them. `erasedAt` says since when. Nothing was stored. Delete what you have kept of them.";
    PositionTooOld: GONE, "position-too-old", "Position too old", nothing_stored = true,
        "The log of the database does not reach back to this `Last-Event-ID` of a live stream of all owners, or the `id` comes from another database. Begin a stream without it, and then list the owners: their totals say what is new.";
    UnexpectedSeq: PRECONDITION_FAILED, "unexpected-seq", "Unexpected sequence number", nothing_stored = true,
        "The history has another total than `expectedSeq` says, so the first item would not get the next sequence number. `totalItems` is the total now. Nothing was stored. Read what was appended meanwhile, decide again, and send the request with the new total. The same items may be sent again with the same `Idempotency-Key`; others need another one.";
    BodyTooLarge: PAYLOAD_TOO_LARGE, "body-too-large", "Body too large", nothing_stored = true,
        "The body is longer than the server accepts, or its page views need more counters (one for each page and second) than the server accepts. `detail` states the limit. Nothing was stored.";
    UnsupportedMediaType: UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "Unsupported media type", nothing_stored = true,
        "The body must be `application/json`, or for an upload `application/x-ndjson`, as its `Content-Type` must say. It must be in UTF-8 and not compressed.";
    RangeNotSatisfiable: RANGE_NOT_SATISFIABLE, "range-not-satisfiable", "Range not satisfiable", nothing_stored = true,
        "The header `Range` asks for items beyond the end of the history. `Content-Range` says how many items there are. The same window as `offset` and `limit` is empty, and not an error.";
    MisdirectedRequest: MISDIRECTED_REQUEST, "misdirected-request", "Misdirected request", nothing_stored = true,
        "The request names no host, several hosts, or a host that this server does not answer for. A server that listens only on the loopback interface answers for `localhost`, `127.0.0.1`, `[::1]` and its `--allowed-hosts`. Nothing was done.";
    InvalidItem: UNPROCESSABLE_ENTITY, "invalid-item", "Invalid item", nothing_stored = true,
        "The body is JSON, but neither an item of the history nor an array of 1 to 1,000 items. `errors` locates each fault by a JSON Pointer (RFC 6901). It lists at most 100; `errorsOmitted` counts the rest. Nothing was stored.";
    InvalidPageView: UNPROCESSABLE_ENTITY, "invalid-page-view", "Invalid page view", nothing_stored = true,
        "The JSON is not a page view, an array of 1 to 1,000 page views, or an hour to preallocate. `errors` locates each fault by a JSON Pointer (RFC 6901) and, in a body of lines, by a `line` counted from 1. It lists at most 100; `errorsOmitted` counts the rest. Nothing was counted.";
    IdempotencyKeyReused: UNPROCESSABLE_ENTITY, "idempotency-key-reused", "Idempotency key reused", nothing_stored = true,
        "An earlier request to this history had the same `Idempotency-Key` and other items. This request stored nothing. A new request needs a new key.";
    LineDiffers: UNPROCESSABLE_ENTITY, "line-differs", "Line differs", nothing_stored = true,
        "One line of an upload: an earlier upload with the same `Idempotency-Key` stored another item for this line. The stored item stays.";
    LineOutOfOrder: UNPROCESSABLE_ENTITY, "line-out-of-order", "Line out of order", nothing_stored = true,
        "One line of an upload: an earlier upload with the same `Idempotency-Key` stored later lines, but not this one. It is not stored, because it would follow them. Send it with another key, or without a key.";
    SummaryTooLarge: UNPROCESSABLE_ENTITY, "summary-too-large", "Summary too large", nothing_stored = true,
        "A single span of time has items on more pages than a request reads, or more points than `limit`. `detail` says which. Ask for shorter spans, fewer or no groups, some of the groups by a filter, or a greater `limit`.";
    TooManyRequests: TOO_MANY_REQUESTS, "too-many-requests", "Too many requests", nothing_stored = true,
        "The client exceeded its rate limit. `RateLimit-Policy` says what is allowed, and `RateLimit` what is left. Nothing was stored; retry after `Retry-After` seconds.";
    Internal: INTERNAL_SERVER_ERROR, "internal", "Internal error", nothing_stored = false,
        "The server failed. Its log has the details under the same request id.";
    NotAvailable: NOT_IMPLEMENTED, "not-available", "Not available", nothing_stored = true,
        "The database tells no changes: it is a standalone server, or its user lacks the privilege `changeStream`. List the owners instead. Live streams of histories are available.";
    Overloaded: SERVICE_UNAVAILABLE, "overloaded", "Overloaded", nothing_stored = true, retry_after = 1,
        "Too many requests at once. Nothing was stored; retry after `Retry-After` seconds.";
    SummaryNotReady: SERVICE_UNAVAILABLE, "summary-not-ready", "Summary not ready", nothing_stored = true, retry_after = 5,
        "A single span of time has items on more pages than a request reads, and the tiles that would be read instead are being made. Retry after `Retry-After` seconds.";
    DatabaseUnavailable: SERVICE_UNAVAILABLE, "database-unavailable", "Database unavailable", nothing_stored = true, retry_after = 2,
        "The database does not answer. Nothing was stored; retry after `Retry-After` seconds.";
    ShuttingDown: SERVICE_UNAVAILABLE, "shutting-down", "Shutting down", nothing_stored = true, retry_after = 2,
        "This instance is stopping. Nothing was stored; retry after `Retry-After` seconds.";
    TimedOut: SERVICE_UNAVAILABLE, "timed-out", "Timed out", nothing_stored = false,
        "The request took longer than the time limit. It is not known whether an append was stored: read the end of the history before you send it again. It is not known whether page views were counted.";
    PartlyStored: SERVICE_UNAVAILABLE, "partly-stored", "Partly stored", nothing_stored = false,
        "The first items of the request are stored, in `ranges`. Those in `notStoredItems` (items of the array, counted from 0) are not stored, and may be sent again. For an upload, the lines in `notStoredLines` are not stored. For page views, `counted` is the number of counted views; those in `notCountedItems` are not counted, and may be sent again.";
    OutcomeUnknown: SERVICE_UNAVAILABLE, "outcome-unknown", "Outcome unknown", nothing_stored = false,
        "The first items of the request are stored, in `ranges`. It is not known whether those in `unknownItems` (items of the array, counted from 0) are stored: read the end of the history before you send them again. Those in `notStoredItems` are not stored. For an upload, `unknownLines` and `notStoredLines` say the same of lines, counted from 1. For page views, `counted` is the number of counted views, and those in `notCountedItems` are not counted. It is not known whether the `unknown` views are counted: if you send them again, they may be counted twice. A preallocation may be repeated.";
    NotStored: SERVICE_UNAVAILABLE, "not-stored", "Not stored", nothing_stored = true,
        "One line of an upload that ended early. It is not stored, and may be sent again. The last line of the answer says why the upload ended.";
    HttpVersionNotSupported: HTTP_VERSION_NOT_SUPPORTED, "http-version-not-supported", "HTTP version not supported", nothing_stored = true,
        "Exports, and answers to uploads line by line, are streamed. They need HTTP/1.1 or later, because a truncated answer in HTTP/1.0 looks complete. The request may have been downgraded by a proxy: nginx needs `proxy_http_version 1.1`. Nothing was done.";
}

impl ProblemKind {
    /// The kind of the problems with this `type`.
    pub fn of_type(r#type: &str) -> Option<Self> {
        let slug = r#type.strip_prefix(TYPE)?;
        Self::ALL.iter().copied().find(|kind| kind.spec().slug == slug)
    }

    /// The `type` of its problems.
    pub(crate) fn r#type(self) -> String {
        format!("{TYPE}{}", self.spec().slug)
    }

    /// The kind of an error response that the framework made: the first one of its status.
    pub fn of_status(status: StatusCode) -> Option<Self> {
        if !status.is_client_error() {
            return status.is_server_error().then_some(Self::Internal);
        }
        Self::ALL.iter().copied().find(|kind| kind.spec().status == status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_slug_of_its_own() {
        let mut slugs: Vec<_> = ProblemKind::ALL.iter().map(|kind| kind.spec().slug).collect();
        assert!(ProblemKind::ALL.iter().map(|kind| kind.spec().status).is_sorted());
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), ProblemKind::ALL.len());
    }

    #[test]
    fn asking_again_is_only_proposed_where_nothing_was_stored() {
        let mut retried = ProblemKind::ALL.iter().filter(|kind| kind.spec().retry_after.is_some());
        assert!(retried.all(|kind| kind.spec().nothing_stored));
    }

    #[test]
    fn a_type_is_of_one_kind() {
        for kind in ProblemKind::ALL {
            assert_eq!(ProblemKind::of_type(&kind.r#type()), Some(*kind));
        }
        for foreign in
            ["about:blank", "overloaded", "https://example.org/problems#overloaded", "/problems#teapot"]
        {
            assert_eq!(ProblemKind::of_type(foreign), None, "{foreign}");
        }
    }
}
