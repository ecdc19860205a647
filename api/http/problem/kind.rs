use axum::http::StatusCode;

/// What the `type` of every problem begins with.
const TYPE: &str = "/problems#";

/// What can be wrong, as far as a client can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A path or a query that is not of its form.
    InvalidParameter,
    /// A body that is not JSON.
    MalformedJson,
    /// Nothing at this address.
    NotFound,
    /// A page that is not there, or not yet.
    PageNotFound,
    /// A trade that is not there, or not yet.
    TradeNotFound,
    /// A minute of a page in which nothing was counted.
    BucketNotFound,
    /// An address that there is, asked in a way that it does not answer.
    MethodNotAllowed,
    /// A client that takes no answer of ours.
    NotAcceptable,
    /// A body that came too slowly.
    BodyTimeout,
    /// A history that can take no more buckets.
    HistoryExhausted,
    /// A body that is too long.
    BodyTooLarge,
    /// A body that says it is not JSON.
    UnsupportedMediaType,
    /// A host that this server does not answer for.
    MisdirectedRequest,
    /// JSON that is not a trade.
    InvalidTrade,
    /// JSON that is not a page view.
    InvalidPageView,
    /// A key that another request has.
    IdempotencyKeyReused,
    /// A line of an upload in whose place an earlier attempt has stored another.
    LineDiffers,
    /// A line of an upload that an earlier attempt has passed by.
    LineOutOfOrder,
    /// Our mistake.
    Internal,
    /// Too much at once.
    Overloaded,
    /// No database.
    DatabaseUnavailable,
    /// Stopping.
    ShuttingDown,
    /// A request that took too long.
    TimedOut,
    /// An append whose beginning alone is stored.
    PartlyStored,
    /// It is not known whether an append was stored.
    OutcomeUnknown,
    /// A line of an upload that ended before it.
    NotStored,
    /// A streamed answer, asked for in HTTP/1.0.
    HttpVersionNotSupported,
}

/// What the table says of a kind.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The last part of its `type`.
    pub slug: &'static str,
    /// The status it is sent with.
    pub status: StatusCode,
    /// The same words every time.
    pub title: &'static str,
    /// What it means and what a client may do, for the documentation.
    pub about: &'static str,
    /// Seconds after which asking again makes sense. Only where nothing was stored.
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
                "A parameter of the path or the query is unknown, repeated, or not of its form. `errors` names each.",
                None,
            ),
            Self::MalformedJson => (
                "malformed-json",
                StatusCode::BAD_REQUEST,
                "Malformed JSON",
                "The body is not JSON (RFC 8259) in UTF-8. `detail` says where.",
                None,
            ),
            Self::NotFound => {
                ("not-found", StatusCode::NOT_FOUND, "Not found", "Nothing is served at this address.", None)
            }
            Self::PageNotFound => (
                "page-not-found",
                StatusCode::NOT_FOUND,
                "No such page",
                "The history has no page of this number, or not yet.",
                None,
            ),
            Self::TradeNotFound => (
                "trade-not-found",
                StatusCode::NOT_FOUND,
                "No such trade",
                "The history has no trade of this sequence number, or not yet.",
                None,
            ),
            Self::BucketNotFound => (
                "bucket-not-found",
                StatusCode::NOT_FOUND,
                "No such bucket",
                "Nothing was counted for this page in this minute, or not yet, or it was kept for long enough; nor was the minute preallocated.",
                None,
            ),
            Self::MethodNotAllowed => (
                "method-not-allowed",
                StatusCode::METHOD_NOT_ALLOWED,
                "Method not allowed",
                "The header `Allow` names the methods of this address.",
                None,
            ),
            Self::NotAcceptable => (
                "not-acceptable",
                StatusCode::NOT_ACCEPTABLE,
                "Not acceptable",
                "`Accept` excludes `application/json` (of an export, both `application/x-ndjson` and `text/csv`), or `Accept-Encoding` excludes every way in which it is sent. Nothing was done.",
                None,
            ),
            Self::BodyTimeout => (
                "body-timeout",
                StatusCode::REQUEST_TIMEOUT,
                "Body too slow",
                "The body did not arrive in time, or that of an upload came too slowly. Nothing was stored.",
                None,
            ),
            Self::HistoryExhausted => (
                "history-exhausted",
                StatusCode::CONFLICT,
                "History exhausted",
                "The history's next bucket would begin later than a bucket can, in November 2286: its last one begins right before, or the server's clock is wrong. Asking again does not help until that is mended.",
                None,
            ),
            Self::BodyTooLarge => (
                "body-too-large",
                StatusCode::PAYLOAD_TOO_LARGE,
                "Body too large",
                "The body is longer than this server takes, or holds page views of more pages and seconds than may wait to be counted. `detail` says what the limit is. Nothing was stored.",
                None,
            ),
            Self::UnsupportedMediaType => (
                "unsupported-media-type",
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "Unsupported media type",
                "The body must be `application/json`, or where many trades are sent `application/x-ndjson`, in UTF-8, not compressed, and its `Content-Type` must say so.",
                None,
            ),
            Self::MisdirectedRequest => (
                "misdirected-request",
                StatusCode::MISDIRECTED_REQUEST,
                "Misdirected request",
                "The request names no host, or more than one, or one that this server does not answer for. A server that listens on this machine alone answers for `localhost`, `127.0.0.1`, `[::1]` and its `--allowed-hosts`. Nothing was done.",
                None,
            ),
            Self::InvalidTrade => (
                "invalid-trade",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid trade",
                "The body is JSON, but not a trade, or not an array of 1 to 1,000 trades. `errors` names each fault by a JSON Pointer (RFC 6901), at most 100 of them; `errorsOmitted` counts the rest. Nothing was stored.",
                None,
            ),
            Self::InvalidPageView => (
                "invalid-page-view",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Invalid page view",
                "The body is JSON, but not a page view, not an array of 1 to 1,000 of them, or not an hour to preallocate. `errors` names each fault by a JSON Pointer (RFC 6901), where a page view is a line also by the `line`, counted from 1, at most 100 of them; `errorsOmitted` counts the rest. Nothing was counted.",
                None,
            ),
            Self::IdempotencyKeyReused => (
                "idempotency-key-reused",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Idempotency key reused",
                "An earlier request to this history had the same `Idempotency-Key` and other trades. This one stored nothing: a new request needs a new key.",
                None,
            ),
            Self::LineDiffers => (
                "line-differs",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Line differs",
                "A line of an upload: an earlier upload with the same `Idempotency-Key` has stored another trade in its place, which stays.",
                None,
            ),
            Self::LineOutOfOrder => (
                "line-out-of-order",
                StatusCode::UNPROCESSABLE_ENTITY,
                "Line out of order",
                "A line of an upload: an earlier upload with the same `Idempotency-Key` has not stored it, but later lines, behind which it would stand. It is not stored: send it with another key, or none.",
                None,
            ),
            Self::Internal => (
                "internal",
                StatusCode::INTERNAL_SERVER_ERROR,
                "Internal error",
                "A mistake of the server's. Its log, under the same request id, says more.",
                None,
            ),
            Self::Overloaded => (
                "overloaded",
                UNAVAILABLE,
                "Overloaded",
                "Too many requests at once. Nothing was stored; ask again after `Retry-After` seconds.",
                Some(1),
            ),
            Self::DatabaseUnavailable => (
                "database-unavailable",
                UNAVAILABLE,
                "Database unavailable",
                "The database does not answer. Nothing was stored; ask again after `Retry-After` seconds.",
                Some(2),
            ),
            Self::ShuttingDown => (
                "shutting-down",
                UNAVAILABLE,
                "Shutting down",
                "This instance is stopping. Nothing was stored; ask again after `Retry-After` seconds.",
                Some(2),
            ),
            Self::TimedOut => (
                "timed-out",
                UNAVAILABLE,
                "Timed out",
                "The request took longer than a request may. Nobody has said whether an append is stored then: read the end of the history before sending it again. Nor whether page views are counted.",
                None,
            ),
            Self::PartlyStored => (
                "partly-stored",
                UNAVAILABLE,
                "Partly stored",
                "The first trades of the request are stored, in `ranges`; those in `notStoredItems` (items of the array, counted from 0) are not, and may be sent again. Of an upload, `notStoredLines` are not. Of page views, `counted` says how many are counted; those of `notCountedItems` are not, and may be sent again.",
                None,
            ),
            Self::NotStored => (
                "not-stored",
                UNAVAILABLE,
                "Not stored",
                "A line of an upload that ended early. The last line of the answer says why; this one may be sent again.",
                None,
            ),
            Self::HttpVersionNotSupported => (
                "http-version-not-supported",
                StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                "HTTP version not supported",
                "Exports, and outcomes of uploads line by line, are streamed. They need HTTP/1.1 or later, because in HTTP/1.0 an answer that breaks off looks whole. A proxy on the way may be what speaks HTTP/1.0: nginx needs `proxy_http_version 1.1`. Nothing was done.",
                None,
            ),
            Self::OutcomeUnknown => (
                "outcome-unknown",
                UNAVAILABLE,
                "Outcome unknown",
                "The first trades of the request are stored, in `ranges`. Of those in `unknownItems` (items of the array, counted from 0) the database has not said whether they are: read the end of the history before sending them again. Those in `notStoredItems` are not stored. Of an upload the same is said of `unknownLines` and `notStoredLines`, counted from 1. Of page views, `counted` says how many are counted, those of `notCountedItems` are not, and `unknown` may be: they would be counted twice if they were sent again and are counted already. A preallocation may be asked for again.",
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

    /// Whether the answer to a request, by itself, says that the request stored nothing.
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

    /// The kind of an error that the framework made without a word.
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
