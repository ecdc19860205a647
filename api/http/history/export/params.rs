//! Parameters of an export.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::domain::{CustomerId, DateRange, Invalid, MAX_SAFE_INTEGER, Position};
use crate::export::Format;
use crate::http::params::{Reader, customer_parameter, dates, given, in_query};
use crate::http::problem::Problem;
use crate::http::schemas::{date_time, whole};

/// `/customers/{customerId}/trades/export?…`
pub struct ExportParams {
    pub customer: CustomerId,
    /// Takes precedence over `Accept`.
    pub format: Option<Format>,
    pub after: Position,
    pub dates: Option<DateRange>,
}

impl<S: Send + Sync> FromRequestParts<S> for ExportParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let customer = reader.path("customerId");
        let format = reader.query("format", |text| match text {
            "ndjson" => Ok(Format::Ndjson),
            "csv" => Ok(Format::Csv),
            _ => Err(Invalid("must be \"ndjson\" or \"csv\"".to_owned())),
        });
        let after = reader.query("after", Position::from_str);
        let dates = dates(&mut reader);
        reader.finish()?;
        let after = after.unwrap_or(Position::BEGINNING);
        Ok(Self { customer: given(customer), format, after, dates })
    }
}

impl IntoParams for ExportParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let format = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["ndjson", "csv"]));
        vec![
            customer_parameter(),
            in_query("format", "The format of the answer. It overrides `Accept`.", format),
            in_query(
                "after",
                "Only trades after this sequence number; 0 is the beginning. To continue an export that failed, give the \
                 `seq` of its last complete row.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "from",
                "Only trades dated at this moment or later: RFC 3339 with an offset.",
                date_time(),
            ),
            in_query(
                "to",
                "Only trades dated before this moment, which must not be before `from`.",
                date_time(),
            ),
        ]
    }
}
