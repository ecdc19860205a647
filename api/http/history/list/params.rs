//! What a listing may be asked for: a page, a window, or a window of a span of time.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

use crate::domain::{
    Cursor, CustomerId, DateRange, Invalid, Limit, MAX_SAFE_INTEGER, Order, PageNumber, Position, Seq, Window,
};
use crate::http::params::{Reader, customer_parameter, dates, given, in_query};
use crate::http::problem::Problem;
use crate::http::schemas::{date_time, ordinal, whole};

/// `/customers/{customerId}/trades?…`
pub struct ListParams {
    pub customer: CustomerId,
    /// As given: links repeat it only then.
    pub order: Option<Order>,
    pub selection: Selection,
}

/// Which trades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Those of a page, or of the first in the order.
    Page(Option<PageNumber>),
    /// Those nearest a cursor, and with the totals of when the history ended with this trade, if that is
    /// asked for.
    Window(Window, Option<Seq>),
    /// Those of a span of time nearest a cursor.
    Dates(DateRange, Window),
}

impl<S: Send + Sync> FromRequestParts<S> for ListParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let customer = reader.path("customerId");
        if reader.gives("page")
            && let Some(other) =
                ["after", "before", "limit", "from", "to", "asOf"].iter().find(|name| reader.gives(name))
        {
            reader.refuse("page", format!("must not be given together with `{other}`"));
        }
        if reader.gives("after") && reader.gives("before") {
            reader.refuse("before", "must not be given together with `after`");
        }
        if reader.gives("asOf") && !reader.gives("page") {
            if let Some(date) = ["from", "to"].iter().find(|name| reader.gives(name)) {
                reader.refuse("asOf", format!("must not be given together with `{date}`"));
            } else if !reader.gives("after") && !reader.gives("before") {
                reader.refuse("asOf", "must be given together with `after` or `before`");
            }
        }
        let page = reader.query("page", PageNumber::from_str);
        let after = reader.query("after", Position::from_str);
        let before = reader.query("before", Seq::from_str);
        let limit = reader.query("limit", Limit::from_str);
        let as_of = reader.query("asOf", Seq::from_str);
        let dates = dates(&mut reader);
        let order = reader.query("order", |text| match text {
            "asc" => Ok(Order::Ascending),
            "desc" => Ok(Order::Descending),
            _ => Err(Invalid("must be \"asc\" or \"desc\"".to_owned())),
        });
        reader.finish()?;
        let cursor = match (after, before, order) {
            (Some(position), ..) => Cursor::After(position),
            (_, Some(seq), _) => Cursor::Before(Position::before(seq)),
            (.., Some(Order::Descending)) => Cursor::End,
            _ => Cursor::After(Position::BEGINNING),
        };
        let window = Window { cursor, limit: limit.unwrap_or_default() };
        let selection = match dates {
            Some(dates) => Selection::Dates(dates, window),
            None if after.is_none() && before.is_none() && limit.is_none() => Selection::Page(page),
            None => Selection::Window(window, as_of),
        };
        Ok(Self { customer: given(customer), order, selection })
    }
}

impl IntoParams for ListParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let order: Object = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["asc", "desc"]))
            .default(Some("asc".into()))
            .build();
        vec![
            customer_parameter(),
            in_query(
                "page",
                "Permanent ordinal of the page, whatever the order. Default: page 1, or with `order=desc` the last. \
                 Not together with any other but `order`.",
                ordinal(),
            ),
            in_query(
                "after",
                "The trades behind this sequence number, the nearest to it; 0 is the beginning. Beyond the end there \
                 are none, which is no error.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "before",
                "The trades before this sequence number, the nearest to it. Not together with `after`.",
                ordinal(),
            ),
            in_query(
                "limit",
                "How many trades at most. Alone it is a window where `order` begins: the oldest trades, or the newest. \
                 Default beside others: 10.",
                whole(1, u64::from(Limit::MAX)),
            ),
            in_query(
                "from",
                "Only trades of this moment or later: RFC 3339 with an offset. Trades are in order of `seq` all the \
                 same, and there are no totals.",
                date_time(),
            ),
            in_query(
                "asOf",
                "The beginning of the history that ends with this trade, as the links to the next and previous windows \
                 name it: with its totals, where all trades of the window lie on pages that are full up to there. \
                 Such an answer never changes. A window that reaches further is as if it were not given, and so is one \
                 beyond the end. Only together with `after` or `before`, not with `from` or `to`.",
                ordinal(),
            ),
            in_query("to", "Only trades before this moment, which must not be before `from`.", date_time()),
            in_query("order", "`asc`: oldest first. `desc`: newest first. It arranges what is shown.", order),
        ]
    }
}
