//! The names that a definition may use.

/// Histories and collections of owners.
pub(crate) const ROUTE: &str = "^[a-z][a-z0-9-]{0,47}$";

/// Titles.
pub(crate) const TITLE: &str = "^[A-Z][A-Za-z0-9]{0,63}$";

/// Fields of owners.
pub(crate) const FIELD: &str = "^[a-z][A-Za-z0-9]{0,63}$";

/// Names that the server uses itself: collections of the database, first parts of routes, and what its own
/// operations list (`listTopPages`).
pub(crate) const OUR_ROUTES: [&str; 7] =
    ["adoptions", "histories", "live", "migrations", "page-views", "system", "top-pages"];

/// What a bucket, a listing, a summary, an outcome or a line of an export has beside the owner.
pub(crate) const OUR_FIELDS: [&str; 35] = [
    "by",
    "count",
    "date",
    "erased",
    "first",
    "firstPage",
    "firstSeq",
    "full",
    "history",
    "items",
    "last",
    "lastSeq",
    "line",
    "links",
    "openable",
    "opened",
    "order",
    "page",
    "points",
    "problem",
    "problems",
    "problemsOmitted",
    "ranges",
    "rangesOmitted",
    "refused",
    "second",
    "seq",
    "since",
    "status",
    "stored",
    "sweepAfter",
    "swept",
    "totalItems",
    "totalPages",
    "tz",
];

/// The parameters of a listing, which no filter may have as its name.
pub const OF_LISTINGS: [&str; 9] =
    ["after", "asOf", "before", "from", "limit", "offset", "order", "to", "wait"];

/// The parameters that summaries have beside those of listings. No filter has such a name if there are
/// summaries.
pub(crate) const OF_SUMMARIES: [&str; 4] = ["by", "fill", "group", "tz"];

/// Names that no item may have on its first level, beside the owner's field and all that begins with `_`.
pub(crate) const RESERVED: [&str; 2] = ["page", "seq"];

/// Schemas of the OpenAPI document that belong to no history, and what its own operations get (`getMetrics`).
pub(crate) const OUR_SCHEMAS: [&str; 26] = [
    "ByteStream",
    "ErasureStatus",
    "Health",
    "HistoryTotals",
    "IndexRange",
    "LineFault",
    "LineProblem",
    "LineRange",
    "Links",
    "Metrics",
    "PageViewBucket",
    "PageViewInput",
    "PageViewPoint",
    "PageViewSeries",
    "PageViewTotal",
    "PageViews",
    "Preallocation",
    "PreallocationInput",
    "Problem",
    "ProblemError",
    "ProblemOfLine",
    "SeqRange",
    "SeriesFault",
    "TextStream",
    "TopPages",
    "UploadSummary",
];

/// The schemas that a history with this title has in the OpenAPI document, and `NewTrade`: so a client in Go
/// calls what makes a `Trade`, and a type of that name does not compile there.
pub(crate) fn schemas_of_title(title: &str) -> [String; 17] {
    [
        title.to_owned(),
        format!("New{title}"),
        format!("{title}Input"),
        format!("{title}LineInput"),
        format!("Placed{title}"),
        format!("{title}Page"),
        format!("{title}Listing"),
        format!("{title}LineOutcome"),
        format!("{title}Summary"),
        format!("{title}Series"),
        format!("{title}SeriesOfAll"),
        format!("{title}SeriesPoint"),
        format!("{title}SeriesGroup"),
        format!("{title}SeriesValues"),
        format!("Exported{title}"),
        format!("Appended{title}s"),
        format!("Uploaded{title}s"),
    ]
}

/// The operations of a history in the OpenAPI document whose names another history could make, too: an upload
/// to `trades-of-customers` is called as one of `trades` for many `customers`, and an append to `trade-batch`
/// as [`append_of_batch`].
pub(crate) fn operations(history: &str, owners: &str) -> [String; 5] {
    let (one, many) = (format!("upload{}", camel_case(history)), camel_case(owners));
    let of = |uploads: &str| [uploads.to_owned(), format!("{uploads}WithOutcomes")];
    let ([one, one_with], [many, many_with]) = (of(&one), of(&format!("{one}Of{many}")));
    [format!("append{}", camel_case(history)), one, one_with, many, many_with]
}

/// The operation of a history with this title that appends an array.
pub(crate) fn append_of_batch(title: &str) -> String {
    format!("append{title}Batch")
}

/// The schemas that owners have in the OpenAPI document, by the owner in upper camel case.
pub(crate) fn schemas_of_owner(owner: &str) -> [String; 4] {
    [owner.to_owned(), format!("{owner}Erasure"), format!("{owner}Listing"), format!("{owner}Totals")]
}

/// A history or a collection of owners as part of a name in the OpenAPI document: `chat-rooms` as
/// `ChatRooms`.
pub fn camel_case(route: &str) -> String {
    route.split('-').map(capitalised).collect()
}

/// The text with a capital at its beginning.
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
