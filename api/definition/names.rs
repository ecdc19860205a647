//! The names that a definition may use.

/// Histories and collections of owners: `[a-z][a-z0-9-]{0,47}`.
pub(super) fn is_route(name: &str) -> bool {
    (1..=48).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Titles, `[A-Z][A-Za-z0-9]*`, of at most 64 characters.
pub(super) fn is_title(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) && is_camel_case(name)
}

/// Fields of owners, `[a-z][A-Za-z0-9]*`, of at most 64 characters.
pub(super) fn is_field(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase()) && is_camel_case(name)
}

fn is_camel_case(name: &str) -> bool {
    name.len() <= 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Names that the server uses itself: collections of the database, first parts of routes, and what its own operations list
/// (`listTopPages`).
pub(super) const OUR_ROUTES: [&str; 5] = ["histories", "migrations", "page-views", "system", "top-pages"];

/// What a bucket, a listing, an outcome or a line of an export has beside the owner.
pub(super) const OUR_FIELDS: [&str; 18] = [
    "count",
    "date",
    "first",
    "firstSeq",
    "full",
    "history",
    "items",
    "last",
    "lastSeq",
    "line",
    "links",
    "order",
    "page",
    "problem",
    "ranges",
    "seq",
    "totalItems",
    "totalPages",
];

/// Names that no item may have on its first level, beside the owner's field and all that begins with `_`.
pub(super) const RESERVED: [&str; 2] = ["page", "seq"];

/// Schemas of the OpenAPI document that belong to no history, and what its own operations get (`getMetrics`).
const OUR_SCHEMAS: [&str; 21] = [
    "Health",
    "HistoryTotals",
    "LineCounts",
    "LineFault",
    "LineProblem",
    "Links",
    "ManyUploaded",
    "Metrics",
    "NewPageView",
    "NewPageViews",
    "NewPreallocation",
    "PageTotal",
    "PageViewBucket",
    "PageViewPoint",
    "PageViewSeries",
    "PageViews",
    "Preallocated",
    "Problem",
    "ProblemOfLine",
    "SeqRange",
    "TopPages",
];

/// Whether a schema of the OpenAPI document has this name that belongs to no history.
pub(super) fn is_our_schema(name: &str) -> bool {
    OUR_SCHEMAS.contains(&name)
}

/// The schemas that a history with this title has in the OpenAPI document.
pub(super) fn schemas_of_title(title: &str) -> [String; 12] {
    [
        title.to_owned(),
        format!("New{title}"),
        format!("New{title}s"),
        format!("New{title}Line"),
        format!("Placed{title}"),
        format!("{title}Page"),
        format!("{title}Listing"),
        format!("{title}LineOutcome"),
        format!("{title}Summary"),
        format!("Exported{title}"),
        format!("Appended{title}s"),
        format!("Uploaded{title}s"),
    ]
}

/// The schemas that owners have in the OpenAPI document, by the owner in upper camel case.
pub(super) fn schemas_of_owner(owner: &str) -> [String; 3] {
    [owner.to_owned(), format!("{owner}Listing"), format!("{owner}Totals")]
}

/// A history or a collection of owners as part of a name in the OpenAPI document: `chat-rooms` as `ChatRooms`.
pub fn camel_case(route: &str) -> String {
    route.split('-').map(capitalised).collect()
}

/// The text with a capital at its beginning.
pub fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
