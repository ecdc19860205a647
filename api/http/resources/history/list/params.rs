//! Parameters of a listing: a page, a window at a cursor or at an offset, or a window of a span of time or of
//! given values.

use axum::http::Method;
use pagebucket_engine::Engine;
use pagebucket_engine::internal::MOST_EXAMINED;
use pagebucket_model::domain::{
    Cursor, DateRange, Invalid, Limit, MAX_SAFE_INTEGER, Order, PageNumber, Position, Seq, SeqRange, Totals,
    Wait, Window,
};
use serde_json::json;
use utoipa::openapi::path::Parameter;

use super::filters::{Filter, filters, filters_documented};
use super::offset_range::{OffsetRange, requested};
use crate::admission::address::WAIT;
use crate::request::params::{ParameterReader, Params, dates, in_header, in_query};
use crate::resources::links::MOST_FILTER_BYTES;
use crate::schemas::names::Names;
use crate::schemas::{self, date_time, ordinal, schema, whole};

/// What a listing shows.
pub(crate) struct ListParams {
    /// Repeated in links only if the client gave it.
    pub order: Option<Order>,
    pub selection: Selection,
    /// What items must have.
    pub filters: Vec<Filter>,
    /// What it waits for first.
    pub poll: Option<Poll>,
}

/// What a window waits for before it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Poll {
    /// An item after this position.
    pub after: Position,
    /// Not for longer.
    pub wait: Wait,
}

/// What is asked for begins with an item that the history no longer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartsRetired;

/// The items that a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// A page; `None` is the first one in the order.
    Page(Option<PageNumber>),
    /// A window; with a `Seq`, as of the moment when the history ended with that item.
    Window(Window, Option<Seq>),
    /// The same at an offset in the order.
    Rows(OffsetRange, Option<Seq>),
    /// A window of the items of a span of time, of those with the given values, or of both.
    Search(Option<DateRange>, Window),
}

/// The order in which a history is read.
pub(crate) fn order(text: &str) -> Result<Order, Invalid> {
    match text {
        "asc" => Ok(Order::Ascending),
        "desc" => Ok(Order::Descending),
        _ => Err(Invalid::new("must be \"asc\" or \"desc\"")),
    }
}

impl Params for ListParams {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let definition = engine.definition();
        let filter_names = || definition.filters.iter().map(String::as_str);
        let of_windows = ["after", "before", "limit", "from", "to", "asOf", "offset"];
        reader.excludes("page", of_windows.into_iter().chain(filter_names()));
        reader.excludes("before", ["after"]);
        if !reader.gives("page") {
            reader.excludes("offset", ["after", "before", "from", "to"].into_iter().chain(filter_names()));
        }
        let range = requested(reader.parts);
        if range.is_some() {
            let others = ["page", "offset", "limit", "after", "before", "from", "to"];
            reader.refuse_beside("Range", others.into_iter().chain(filter_names()));
        }
        if reader.gives("asOf")
            && range.is_none()
            && !["page", "offset"].iter().any(|name| reader.gives(name))
            && !reader.excludes("asOf", ["from", "to"].into_iter().chain(filter_names()))
            && !["after", "before"].iter().any(|name| reader.gives(name))
        {
            reader.refuse("asOf", "must be given together with `after`, `before` or `offset`");
        }
        if reader.gives(WAIT) {
            refuse_waiting(reader, filter_names());
        }
        let range = range.and_then(|range| reader.keep("Range", range));
        let page = reader.query("page", PageNumber::parse);
        let after = reader.query("after", Position::parse);
        let before = reader.query("before", Seq::parse);
        let offset = reader.query("offset", Position::parse);
        let limit = reader.query("limit", Limit::parse);
        let as_of = reader.query("asOf", Seq::parse);
        let wait = reader.query(WAIT, Wait::parse);
        let dates = dates(reader);
        let filters = filters(reader, definition);
        let order = reader.query("order", order);
        let cursor = match (after, before, order) {
            (Some(position), ..) => Cursor::After(position),
            (_, Some(seq), _) => Cursor::Before(Position::before(seq)),
            (.., Some(Order::Descending)) => Cursor::End,
            _ => Cursor::After(Position::BEGINNING),
        };
        let window = Window { cursor, limit: limit.unwrap_or(Limit::of_page(definition.page_size)) };
        let rows = |offset: Position| OffsetRange { offset: offset.get(), limit: window.limit, part: false };
        let selection = match range.or(offset.map(rows)) {
            _ if dates.is_some() || !filters.is_empty() => Selection::Search(dates, window),
            Some(rows) => Selection::Rows(rows, as_of),
            None if after.is_none() && before.is_none() && limit.is_none() => Selection::Page(page),
            None => Selection::Window(window, as_of),
        };
        let poll = after.zip(wait).map(|(after, wait)| Poll { after, wait });
        Some(Self { order, selection, filters, poll })
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { definition, item, many_items, .. } = names;
        let default_limit = Limit::of_page(definition.page_size).get();
        // No pattern and no greatest length: other values are ignored.
        let range = json!({ "type": "string", "examples": ["items=0-9"] });
        let mut all = vec![
            in_query(
                "page",
                "Permanent number of the page, the same in either order. Default: the first page that is there, or with `order=desc` the last \
                 page. Only `order` may be combined with it.",
                ordinal(),
            ),
            in_query(
                "after",
                format!(
                    "The nearest {many_items} after this sequence number; 0 is the beginning: the first {item} that is there. After the \
                 last {item} the answer has no items, which is not an error."
                ),
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "before",
                format!("The nearest {many_items} before this sequence number. Not together with `after`."),
                ordinal(),
            ),
            in_query(
                "offset",
                format!(
                    "How many {many_items} to skip in `order`. At or beyond the end the answer has no items, which is not an \
                 error. Not together with `after`, `before`, `from` or `to`."
                ),
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "limit",
                format!(
                    "Maximum number of {many_items} in the window. Without a cursor or an `offset`, the window is at the beginning of `order`: \
                 the oldest {many_items}, or the newest. Default for windows: {default_limit}."
                ),
                whole(1, u64::from(Limit::MAX)),
            ),
            in_query(
                "from",
                format!(
                    "Only {many_items} dated at this moment or later: RFC 3339 with an offset. The {many_items} are still in order \
                 of `seq`, and the answer has no totals."
                ),
                date_time(),
            ),
            in_query(
                "asOf",
                format!(
                    "Reads the history as it was when this was its last sequence number, and so its `totalItems`; the links \
                 `next` and `prev` of a window set it. Such an answer never changes. If the history has no such {item} yet, \
                 `asOf` is ignored. Only together with `after`, `before`, `offset` or the header `Range`, not with `from` or \
                 `to`."
                ),
                ordinal(),
            ),
            in_query(
                "to",
                format!("Only {many_items} dated before this moment, which must not be before `from`."),
                date_time(),
            ),
            in_query(
                "order",
                "`asc`: oldest first. `desc`: newest first. It applies to the items and to the links.",
                schemas::order().default(Some("asc".into())),
            ),
            in_query(
                WAIT,
                format!(
                    "Waits up to this number of seconds until the window has a {item}, and is then answered at once, without one if none came: \
                 a long poll. Only together with `after`; `limit` and `order` may be combined with it. Not in a HEAD request."
                ),
                whole(1, Wait::MAX.into()),
            ),
            in_header(
                "Range",
                format!(
                    "`items=0-9` is another way to ask for `offset=0&limit=10`, answered with 206. One range of 1 to 100 \
                 {many_items}, with both ends; only in a GET, and not together with parameters that select something \
                 else. Other units are ignored, and so is the header together with `If-Range`."
                ),
                schema(range),
            ),
        ];
        let about = format!(
            "They are still in order of `seq`, and the answer has no totals. A request examines at most {MOST_EXAMINED} pages, \
             with `from` or `to` only such as may hold {many_items} of that span: the answer may have fewer {many_items} than \
             `limit`, or none, and a link to the next. All filters of a request together have at most {MOST_FILTER_BYTES} bytes. \
             Not together with `page`, `offset` or `asOf`."
        );
        all.extend(filters_documented(names, &definition.filters, &about));
        all
    }
}

/// Refuses `wait` where nothing can be waited for: only what is appended after a position comes later.
fn refuse_waiting<'n>(reader: &mut ParameterReader<'_>, filter_names: impl Iterator<Item = &'n str>) {
    let others = ["page", "before", "offset", "from", "to", "asOf"];
    if reader.refuse_beside(WAIT, others.into_iter().chain(filter_names)) {
        return;
    }
    if !reader.gives("after") {
        reader.refuse(WAIT, "must be given together with `after`");
    } else if reader.parts.method == Method::HEAD {
        reader.refuse(WAIT, "must not be given in a HEAD request");
    }
}

impl Selection {
    /// The last item of the moment that is asked for.
    pub(crate) fn as_of(self) -> Option<Seq> {
        match self {
            Self::Window(_, as_of) | Self::Rows(_, as_of) => as_of,
            Self::Page(_) | Self::Search(..) => None,
        }
    }

    /// The part of the listing that the header `Range` asks for.
    pub(crate) fn part(self) -> Option<OffsetRange> {
        match self {
            Self::Rows(rows, _) => Some(rows).filter(|rows| rows.part),
            _ => None,
        }
    }

    /// The same of a history that begins with `first`: what begins at the beginning begins there.
    #[must_use]
    pub(crate) fn beginning_at(self, first: Seq, order: Order, totals: Totals) -> Self {
        if first == Seq::FIRST {
            return self;
        }
        let beginning = |window: Window| match window.cursor {
            Cursor::After(Position::BEGINNING) => {
                Window { cursor: Cursor::After(Position::before(first)), ..window }
            }
            _ => window,
        };
        match self {
            Self::Window(window, as_of) => Self::Window(beginning(window), as_of),
            Self::Search(dates, window) => Self::Search(dates, beginning(window)),
            Self::Page(None) => {
                let first = totals.page_size().page_of(first);
                let last = totals.last_page().filter(|_| order == Order::Descending);
                Self::Page(last.max(Some(first)))
            }
            Self::Page(Some(_)) | Self::Rows(..) => self,
        }
    }

    /// Those of [`Selection::seqs`] that a history has that begins with `first`. What is shown begins with an
    /// item that is there, and ends early where the history begins.
    ///
    /// # Errors
    /// It begins with an item that the history no longer has.
    pub(crate) fn kept(
        self,
        order: Order,
        totals: Totals,
        first: Seq,
    ) -> Result<Option<SeqRange>, StartsRetired> {
        let range = self.seqs(order, totals);
        if first == Seq::FIRST {
            return Ok(range);
        }
        let is_last = |seq: Seq| totals.last_seq() == Some(seq);
        let ended_before = self.as_of().is_some_and(|last| last < first && is_last(last));
        let begins_before = range.is_some_and(|range| match self.is_backwards(order) {
            // A history that is empty since it was reopened still has an end.
            true => range.last < first && !is_last(range.last),
            false => range.first < first,
        });
        if ended_before || begins_before {
            return Err(StartsRetired);
        }
        let clipped = range.map(|range| SeqRange { first: range.first.max(first), ..range });
        Ok(clipped.filter(|range| range.first <= range.last))
    }

    /// Whether what is shown begins with its newest item.
    fn is_backwards(self, order: Order) -> bool {
        match self {
            Self::Page(_) => false,
            Self::Rows(..) => order == Order::Descending,
            Self::Window(window, _) | Self::Search(_, window) => {
                matches!(window.cursor, Cursor::Before(_) | Cursor::End)
            }
        }
    }

    /// The items that are shown of a history with these totals, before they are chosen by date or value.
    pub(crate) fn seqs(self, order: Order, totals: Totals) -> Option<SeqRange> {
        let window = match self {
            Self::Page(_) => return totals.on_page(self.page(order, totals)?),
            Self::Window(window, _) | Self::Search(_, window) => window,
            Self::Rows(OffsetRange { offset, limit, .. }, _) => {
                Window { cursor: Cursor::at_offset(offset, order, totals), limit }
            }
        };
        window.span(totals).seqs()
    }

    /// The number of the page that is shown; `None` for a window.
    pub(crate) fn page(self, order: Order, totals: Totals) -> Option<PageNumber> {
        let Self::Page(number) = self else { return None };
        let last = totals.last_page().filter(|_| order == Order::Descending);
        number.or(last).or(Some(PageNumber::FIRST))
    }
}
