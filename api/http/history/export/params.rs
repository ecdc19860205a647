//! Parameters of an export.

use std::str::FromStr;

use utoipa::openapi::path::Parameter;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};

use crate::domain::{DateRange, Invalid, MAX_SAFE_INTEGER, Position};
use crate::export::{Format, Writer};
use crate::http::params::{Params, Reader, dates, in_query};
use crate::http::schemas::{date_time, whole};
use crate::store::history::Engine;

/// What an export has, and how.
pub struct ExportParams {
    /// Takes precedence over `Accept`.
    pub format: Option<Format>,
    pub after: Position,
    pub dates: Option<DateRange>,
}

impl Params for ExportParams {
    fn read(reader: &mut Reader<'_>, engine: &Engine) -> Option<Self> {
        let tabular = Writer::new(engine.definition(), Format::Csv).is_some();
        let format = reader.query("format", |text| match text {
            "ndjson" => Ok(Format::Ndjson),
            "csv" if tabular => Ok(Format::Csv),
            _ if !tabular => Err(Invalid("must be \"ndjson\": the items are no rows of a table".to_owned())),
            _ => Err(Invalid("must be \"ndjson\" or \"csv\"".to_owned())),
        });
        let after = reader.query("after", Position::from_str);
        let dates = dates(reader);
        let after = after.unwrap_or(Position::BEGINNING);
        Some(Self { format, after, dates })
    }

    fn documented() -> Vec<Parameter> {
        let format = ObjectBuilder::new()
            .schema_type(SchemaType::new(Type::String))
            .enum_values(Some(["ndjson", "csv"]));
        vec![
            in_query("format", "The format of the answer. It overrides `Accept`.", format),
            in_query(
                "after",
                "Only {manyItems} after this sequence number; 0 is the beginning. To continue an export that failed, give the \
                 `seq` of its last complete row.",
                whole(0, MAX_SAFE_INTEGER),
            ),
            in_query(
                "from",
                "Only {manyItems} dated at this moment or later: RFC 3339 with an offset.",
                date_time(),
            ),
            in_query(
                "to",
                "Only {manyItems} dated before this moment, which must not be before `from`.",
                date_time(),
            ),
        ]
    }
}
