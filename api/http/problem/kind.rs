use axum::http::StatusCode;

/// What the `type` of every problem begins with.
const TYPE: &str = "/problems#";

/// The kinds of problems that a client can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A malformed path or query.
    InvalidParameter,
    /// A body that is not JSON.
    MalformedJson,
    /// An address at which nothing is served.
    NotFound,
    /// A page that does not exist yet.
    PageNotFound,
    /// A trade that does not exist yet.
    TradeNotFound,
    /// A bucket of page views that does not exist.
    BucketNotFound,
    /// An address that does not support the method.
    MethodNotAllowed,
    /// A client that accepts no form of the answer.
    NotAcceptable,
    /// A body that came too slowly.
    BodyTimeout,
    /// A history that can take no more buckets.
    HistoryExhausted,
    /// A body that is too long.
    BodyTooLarge,
    /// A body of an unsupported media type.
    UnsupportedMediaType,
    /// A host that this server does not answer for.
    MisdirectedRequest,
    /// JSON that is not a trade.
    InvalidTrade,
    /// JSON that is not a page view.
    InvalidPageView,
    /// A key that an earlier request used.
    IdempotencyKeyReused,
    /// A line of an upload for which an earlier upload stored another trade.
    LineDiffers,
    /// A line of an upload that an earlier upload left out.
    LineOutOfOrder,
    /// A failure of the server.
    Internal,
    /// Too many requests at once.
    Overloaded,
    /// The database is unavailable.
    DatabaseUnavailable,
    /// The service is stopping.
    ShuttingDown,
    /// A request that took too long.
    TimedOut,
    /// An append of which only the first trades are stored.
    PartlyStored,
    /// It is not known whether an append was stored.
    OutcomeUnknown,
    /// A line of an upload that ended before the line was stored.
    NotStored,
    /// A request for a streamed answer over HTTP/1.0.
    HttpVersionNotSupported,
}

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
    /// Seconds to wait before a retry. Only for kinds that store nothing.
    pub retry_after: Option<u32>,
}

impl Kind {
    /// All of them, by status.
    pub const ALL: [Self; 27] = [
        Self::InvalidParameter,
        Self::MalformedJson,
        Self::NotFound,
        Self::PageNotFound,
        Self::TradeNotFound,
        Self::BucketNotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::BodyTimeout,
        Self::HistoryExhausted,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::MisdirectedRequest,
        Self::InvalidTrade,
        Self::InvalidPageView,
        Self::IdempotencyKeyReused,
        Self::LineDiffers,
        Self::LineOutOfOrder,
        Self::Internal,
        Self::Overloaded,
        Self::DatabaseUnavailable,
        Self::ShuttingDown,
        Self::TimedOut,
        Self::PartlyStored,
        Self::OutcomeUnknown,
        Self::NotStored,
        Self::HttpVersionNotSupported,
    ];

    /// The table.
    pub fn spec(self) -> Spec {
        const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        let (slug, status, title, about, retry_after) = match self {
            Self::InvalidParameter => (
                "invalid-parameter",
                StatusCode::BAD_REQUEST,
                "Invalid parameter",
                "A parameter of the path or the query is unknown, repeated, missing or malformed. `errors` names each.",
                None,
            ),
            Self::MalformedJson => (
                "malformed-json",
                StatusCode::BAD_REQUEST,
                "Malformed JSON",
                "The body is incomplete, or not JSON (RFC 8259) in UTF-8. `detail` says what is wrong.",
                None,
            ),
            Self::NotFound => {
                ("not-found", StatusCode::NOT_FOUND, "Not found", "Nothing is served at this address.", None)
            }
            Self::PageNotFound => (
                "page-not-found",
                StatusCode::NOT_FOUND,
                "No such page",
                "The history has no page with this number yet.",
                None,
            ),
            Self::TradeNotFound => (
                "trade-not-found",
                StatusCode::NOT_FOUND,
                "No such trade",
                "The history has no trade with this sequence number yet.",
                None,
            ),
            Self::BucketNotFound => (
                "bucket-not-found",
                StatusCode::NOT_FOUND,
                "No such bucket",
                "There is no bucket for this page and minute. No view was counted in it and it was not preallocated, or its retention time has passed.",
                None,
            ),
            Self::MethodNotAllowed => (
                "method-not-allowed",
                StatusCode::METHOD_NOT_ALLOWED,
                "Method not allowed",
                "This address does not support the method. The header `Allow` names those that it supports.",
                None,
            ),
            Self::NotAcceptable => (
                "not-acceptable",
                StatusCode::NOT_ACCEPTABLE,
                "Not acceptable",
                "`Accept` excludes `application/json` (for an export, both `application/x-ndjson` and `text/csv`), or `Accept-Encoding` excludes every encoding that the server can send. Nothing was done.",
                None,
            ),
            Self::BodyTimeout => (
                "body-timeout",
                StatusCode::REQUEST_TIMEOUT,
                "Body too slow",
                "The body did not arrive in time, or the body of an upload came too slowly. Nothing was stored.",
                None,
            ),
            Self::HistoryExhausted => (
                "history-exhausted",
                StatusCode::CONFLICT,
                "History exhausted",
                "The next bucket of this history would begin after the last possible second, in November 2286. Either the last bucket already begins in that second, or the server's clock is wrong. A retry fails until this is corrected.",
                None,
            ),
            Self::BodyTooLarge => (
                "body-too-large",
                StatusCode::PAYLOAD_TOO_LARGE,
                "Body too large",
                "The body is longer than the server accepts, or its page views need more counters (one for each page and second) than the server accepts. `detail` states the limit. Nothing was stored.",
                None,
            ),
            Self::UnsupportedMediaType => (
                "unsupported-media-type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported media type",
                "The body must be `application/json`, or `application/x-ndjson` where the operation accepts lines, as its `Content-Type` must say. It must be in UTF-8 and not compressed.",
                None,
            ),
            Self::MisdirectedRequest => (
                "misdirected-request",
                StatusCode::MISDIRECTED_REQUEST,
                "Misdirected request",
                "The request names no host, several hosts, or a host that this server does not answer for. A server that listens only on the loopback interface answers for `localhost`, `127.0.0.1`, `[::1]` and its `--allowed-hosts`. Nothing was done.",
                None,
            ),
            Self::InvalidTrade => (
                "invalid-trade",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid trade",
                "The body is JSON, but neither a trade nor an array of 1 to 1,000 trades. `errors` locates each fault by a JSON Pointer (RFC 6901). It lists at most 100; `errorsOmitted` counts the rest. Nothing was stored.",
                None,
            ),
            Self::InvalidPageView => (
                "invalid-page-view",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid page view",
                "The body is JSON, but not a page view, not an array of 1 to 1,000 page views, or not an hour to preallocate. `errors` locates each fault by a JSON Pointer (RFC 6901) and, in a body of lines, by a `line` counted from 1. It lists at most 100; `errorsOmitted` counts the rest. Nothing was counted.",
                None,
            ),
            Self::IdempotencyKeyReused => (
                "idempotency-key-reused",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Idempotency key reused",
                "An earlier request to this history had the same `Idempotency-Key` and other trades. This request stored nothing. A new request needs a new key.",
                None,
            ),
            Self::LineDiffers => (
                "line-differs",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Line differs",
                "One line of an upload: an earlier upload with the same `Idempotency-Key` stored another trade for this line. The stored trade stays.",
                None,
            ),
            Self::LineOutOfOrder => (
                "line-out-of-order",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Line out of order",
                "One line of an upload: an earlier upload with the same `Idempotency-Key` stored later lines, but not this one. It is not stored, because it would follow them. Send it with another key, or without a key.",
                None,
            ),
            Self::Internal => (
                "internal",
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal error",
                "The server failed. Its log has the details under the same request id.",
                None,
            ),
            Self::Overloaded => (
                "overloaded",
                UNAVAILABLE,
                "Overloaded",
                "Too many requests at once. Nothing was stored; retry after `Retry-After` seconds.",
                Some(1),
            ),
            Self::DatabaseUnavailable => (
                "database-unavailable",
                UNAVAILABLE,
                "Database unavailable",
                "The database does not answer. Nothing was stored; retry after `Retry-After` seconds.",
                Some(2),
            ),
            Self::ShuttingDown => (
                "shutting-down",
                UNAVAILABLE,
                "Shutting down",
                "This instance is stopping. Nothing was stored; retry after `Retry-After` seconds.",
                Some(2),
            ),
            Self::TimedOut => (
                "timed-out",
                UNAVAILABLE,
                "Timed out",
                "The request took longer than the time limit. It is not known whether an append was stored: read the end of the history before you send it again. It is not known whether page views were counted.",
                None,
            ),
            Self::PartlyStored => (
                "partly-stored",
                UNAVAILABLE,
                "Partly stored",
                "The first trades of the request are stored, in `ranges`. Those in `notStoredItems` (items of the array, counted from 0) are not stored, and may be sent again. For an upload, the lines in `notStoredLines` are not stored. For page views, `counted` is the number of counted views; those in `notCountedItems` are not counted, and may be sent again.",
                None,
            ),
            Self::NotStored => (
                "not-stored",
                UNAVAILABLE,
                "Not stored",
                "One line of an upload that ended early. It is not stored, and may be sent again. The last line of the answer says why the upload ended.",
                None,
            ),
            Self::HttpVersionNotSupported => (
                "http-version-not-supported",
                StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                "HTTP version not supported",
                "Exports, and answers to uploads line by line, are streamed. They need HTTP/1.1 or later, because a truncated answer in HTTP/1.0 looks complete. The request may have been downgraded by a proxy: nginx needs `proxy_http_version 1.1`. Nothing was done.",
                None,
            ),
            Self::OutcomeUnknown => (
                "outcome-unknown",
                UNAVAILABLE,
                "Outcome unknown",
                "The first trades of the request are stored, in `ranges`. It is not known whether those in `unknownItems` (items of the array, counted from 0) are stored: read the end of the history before you send them again. Those in `notStoredItems` are not stored. For an upload, `unknownLines` and `notStoredLines` say the same of lines, counted from 1. For page views, `counted` is the number of counted views, and those in `notCountedItems` are not counted. It is not known whether the `unknown` views are counted: if you send them again, they may be counted twice. A preallocation may be repeated.",
                None,
            ),
        };
        Spec { slug, status, title, about, retry_after }
    }

    /// The kind of the problems with this `type`.
    pub fn of_type(r#type: &str) -> Option<Self> {
        let slug = r#type.strip_prefix(TYPE)?;
        Self::ALL.into_iter().find(|kind| kind.spec().slug == slug)
    }

    /// The `type` of its problems.
    pub(super) fn r#type(self) -> String {
        format!("{TYPE}{}", self.spec().slug)
    }

    /// Whether a problem of this kind means that the request stored nothing.
    pub fn says_nothing_was_stored(self) -> bool {
        match self {
            Self::Internal | Self::TimedOut | Self::PartlyStored | Self::OutcomeUnknown => false,
            Self::InvalidParameter
            | Self::MalformedJson
            | Self::NotFound
            | Self::PageNotFound
            | Self::TradeNotFound
            | Self::BucketNotFound
            | Self::MethodNotAllowed
            | Self::NotAcceptable
            | Self::BodyTimeout
            | Self::HistoryExhausted
            | Self::BodyTooLarge
            | Self::UnsupportedMediaType
            | Self::InvalidTrade
            | Self::InvalidPageView
            | Self::IdempotencyKeyReused
            | Self::LineDiffers
            | Self::LineOutOfOrder
            | Self::Overloaded
            | Self::DatabaseUnavailable
            | Self::ShuttingDown
            | Self::NotStored
            | Self::MisdirectedRequest
            | Self::HttpVersionNotSupported => true,
        }
    }

    /// The kind of an error response that the framework made.
    pub(super) fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::BAD_REQUEST => Some(Self::InvalidParameter),
            StatusCode::NOT_FOUND => Some(Self::NotFound),
            StatusCode::METHOD_NOT_ALLOWED => Some(Self::MethodNotAllowed),
            StatusCode::REQUEST_TIMEOUT => Some(Self::BodyTimeout),
            StatusCode::PAYLOAD_TOO_LARGE => Some(Self::BodyTooLarge),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Some(Self::UnsupportedMediaType),
            status if status.is_server_error() => Some(Self::Internal),
            _ => None,
        }
    }
}

/// "1 fault. `errors` says ...", "3 faults. `errors` says ..."
pub(super) fn summary(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}: `errors` says which, and what is wrong.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_slug_of_its_own() {
        let mut slugs: Vec<_> = Kind::ALL.iter().map(|kind| kind.spec().slug).collect();
        assert!(Kind::ALL.iter().map(|kind| kind.spec().status).is_sorted());
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), Kind::ALL.len());
    }

    #[test]
    fn asking_again_is_only_proposed_where_nothing_was_stored() {
        let mut retried = Kind::ALL.into_iter().filter(|kind| kind.spec().retry_after.is_some());
        assert!(retried.all(Kind::says_nothing_was_stored));
    }

    #[test]
    fn a_type_is_of_one_kind() {
        for kind in Kind::ALL {
            assert_eq!(Kind::of_type(&kind.r#type()), Some(kind));
        }
        for foreign in
            ["about:blank", "overloaded", "https://example.org/problems#overloaded", "/problems#teapot"]
        {
            assert_eq!(Kind::of_type(foreign), None, "{foreign}");
        }
    }
}
