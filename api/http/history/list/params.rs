//! Parameters of a listing: a page, a window, or a window of a span of time.

use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::domain::{
    Cursor, DateRange, Invalid, Limit, MAX_SAFE_INTEGER, Order, PageNumber, Position, Seq, Window,
};
use crate::http::params::{Params, Reader, dates, in_query};
use crate::http::schemas::{date_time, ordinal, whole};
use crate::store::history::Engine;

/// What a listing shows.
pub struct ListParams {
    /// Repeated in links only if the client gave it.
    pub order: Option<Order>,
    pub selection: Selection,
}

/// The items that a listing shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// A page; `None` is the first one in the order.
    Page(Option<PageNumber>),
    /// A window; with a `Seq`, as of the moment when the history ended with that item.
    Window(Window, Option<Seq>),
    /// A window of the items of a span of time.
    Dates(DateRange, Window),
}

impl Params for ListParams {
    fn read(reader: &mut Reader<'_>, engine: &Engine) -> Option<Self> {
        let page_size = engine.definition().page_size;
        reader.excludes("page", &["after", "before", "limit", "from", "to", "asOf"]);
        reader.excludes("before", &["after"]);
        if reader.gives("asOf")
            && !reader.gives("page")
            && !reader.excludes("asOf", &["from", "to"])
            && !reader.gives("after")
            && !reader.gives("before")
        {
            reader.refuse("asOf", "must be given together with `after` or `before`");
        }
        let page = reader.query("page", PageNumber::parse);
        let after = reader.query("after", Position::parse);
        let before = reader.query("before", Seq::parse);
        let limit = reader.query("limit", Limit::parse);
        let as_of = reader.query("asOf", Seq::parse);
        let dates = dates(reader);
        let order = reader.query("order", |text| match text {
            "asc" => Ok(Order::Ascending),
            "desc" => Ok(Order::Descending),
            _ => Err(Invalid::new("must be \"asc\" or \"desc\"")),
        });
        let cursor = match (after, before, order) {
            (Some(position), ..) => Cursor::After(position),
            (_, Some(seq), _) => Cursor::Before(Position::before(seq)),
            (.., Some(Order::Descending)) => Cursor::End,
            _ => Cursor::After(Position::BEGINNING),
        };
        let window = Window { cursor, limit: limit.unwrap_or(Limit::of_page(page_size)) };
        let selection = match dates {
            Some(dates) => Selection::Dates(dates, window),
            None if after.is_none() && before.is_none() && limit.is_none() => Selection::Page(page),
            None => Selection::Window(window, as_of),
        };
        Some(Self { order, selection })
    }

    fn documented() -> Vec<Parameter> {
        let order = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["asc", "desc"]))
            .default(Some("asc".into()));
        vec![
            in_query(
                "page",
                "Permanent number of the page, the same in either order. Default: page 1, or with `order=desc` the last \
                 page. Of the other parameters, only `order` may be given with it.",
                ordinal(),
            ),
            in_query(
                "after",
                "The nearest {manyItems} after this sequence number; 0 is the beginning of the history. After the last {item} \
                 the answer has no items, which is not an error.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "before",
                "The nearest {manyItems} before this sequence number. Not together with `after`.",
                ordinal(),
            ),
            in_query(
                "limit",
                "Most {manyItems} in the window. Without `after` and `before`, the window is at the beginning of `order`: the \
                 oldest {manyItems}, or the newest. Default for windows: {defaultLimit}.",
                whole(1, u64::from(Limit::MAX)),
            ),
            in_query(
                "from",
                "Only {manyItems} dated at this moment or later: RFC 3339 with an offset. The {manyItems} are still in order \
                 of `seq`, and the answer has no totals.",
                date_time(),
            ),
            in_query(
                "asOf",
                "Reads the history as it was when this was its last sequence number; the links `next` and `prev` of a \
                 window set it. If all {manyItems} of the window are on pages that were full then, the answer has the totals \
                 of then, and never changes. Otherwise, or if the history has no such {item}, `asOf` is ignored. Only \
                 together with `after` or `before`, not with `from` or `to`.",
                ordinal(),
            ),
            in_query(
                "to",
                "Only {manyItems} dated before this moment, which must not be before `from`.",
                date_time(),
            ),
            in_query(
                "order",
                "`asc`: oldest first. `desc`: newest first. It applies to the items and to the links.",
                order,
            ),
        ]
    }
}
