//! The documentation of an append's body, which `domain::parse_drafts` parses.

use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::http::schemas::{new_date, ordinal, price, side, ticker};

/// Most trades in one request, uploads aside.
pub const MOST_TRADES: usize = 1000;

/// A trade as a client sends it.
pub struct NewTrade;

impl ToSchema for NewTrade {}

impl PartialSchema for NewTrade {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("A trade to append."))
            .property("type", side())
            .property("ticker", ticker())
            .property("qty", ordinal())
            .property("price", price())
            .property("date", new_date())
            .required("type")
            .required("ticker")
            .required("qty")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .examples([json!({ "type": "buy", "ticker": "MDB", "qty": 419, "price": "15.54", "date": "2004-01-09T00:00:00.000Z" })])
            .into()
    }
}

/// A trade with its customer, as a client sends it in an upload to many histories.
pub struct NewTradeLine;

impl ToSchema for NewTradeLine {}

impl PartialSchema for NewTradeLine {
    fn schema() -> RefOr<Schema> {
        let mut schema = NewTrade::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.description =
                Some("A trade to append, and its customer: one line of an upload.".to_owned());
            object.properties.insert("customerId".to_owned(), ordinal());
            object.required.push("customerId".to_owned());
            object.examples = vec![
                json!({ "customerId": 7, "type": "buy", "ticker": "MDB", "qty": 419, "price": "15.54" }),
            ];
        }
        schema
    }
}

/// One trade, or an array of 1 to 1,000.
pub struct NewTrades;

impl ToSchema for NewTrades {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NewTrade::name().into(), NewTrade::schema()));
    }
}

impl PartialSchema for NewTrades {
    fn schema() -> RefOr<Schema> {
        let trade = || Ref::from_schema_name(NewTrade::name());
        OneOfBuilder::new()
            .description(Some("One trade, or an array of 1 to 1,000, appended in their order."))
            .item(trade())
            .item(ArrayBuilder::new().items(trade()).min_items(Some(1)).max_items(Some(MOST_TRADES)))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TradeDraft;

    #[test]
    fn every_field_of_a_trade_is_documented() {
        let schema = serde_json::to_value(NewTrade::schema()).unwrap();
        let mut documented: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        let mut fields = TradeDraft::FIELDS.to_vec();
        documented.sort();
        fields.sort();
        assert_eq!(documented, fields);
    }
}
