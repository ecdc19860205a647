//! The JSON of an upload's answers, and its documentation.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::domain::{CustomerId, Fault, Seq};
use crate::http::history::append::view::RangeView;
use crate::http::problem::ProblemSchema;
use crate::http::schemas::ordinal;
use crate::ingest::Lines;

/// What an upload to one history has stored, when all of its lines have come to an end.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Uploaded)]
pub struct UploadedView {
    #[schema(schema_with = ordinal)]
    pub customer_id: CustomerId,
    /// Where the trades are that are stored, in order of the lines: one range, unless others have appended
    /// meanwhile. At most 1,000.
    pub ranges: Vec<RangeView>,
    /// How many more ranges there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, required = false)]
    pub ranges_omitted: Option<u64>,
    #[serde(flatten)]
    pub counts: CountsView,
}

/// What an upload to many histories has stored, when all of its lines have come to an end.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ManyUploaded)]
pub struct ManyUploadedView {
    /// How many customers have any of the trades that are stored.
    #[schema(minimum = 0, maximum = 10_000)]
    pub customers: usize,
    /// Whether there are more, which were not told apart.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub more_customers: bool,
    #[serde(flatten)]
    pub counts: CountsView,
}

/// What became of an upload's lines.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LineCounts)]
pub struct CountsView {
    /// Lines that are stored.
    #[schema(minimum = 0)]
    pub stored: u64,
    /// Lines that are not, for a reason of their own.
    #[schema(minimum = 0)]
    pub refused: u64,
    /// What is wrong with the first 100 of these.
    #[schema(max_items = 100)]
    pub problems: Vec<LineProblemView>,
    /// How many more of these there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, required = false)]
    pub problems_omitted: Option<u64>,
}

/// What is wrong with one line.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LineProblem)]
pub struct LineProblemView {
    /// Counted from 1, blank lines included.
    #[schema(minimum = 1)]
    pub line: u64,
    #[schema(max_items = 10)]
    pub errors: Vec<FaultView>,
    /// How many more faults it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, required = false)]
    pub errors_omitted: Option<usize>,
}

/// One thing that is wrong with a line.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LineFault)]
pub struct FaultView {
    /// JSON Pointer (RFC 6901) into the line; empty for the whole of it.
    pub pointer: String,
    pub detail: String,
}

impl From<Fault> for FaultView {
    fn from(Fault { pointer, detail, line: _ }: Fault) -> Self {
        Self { pointer, detail }
    }
}

/// Lines, both included.
#[derive(Debug, Serialize)]
pub(super) struct LinesView {
    first: u64,
    /// Absent where it is the last of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
}

impl From<Lines> for LinesView {
    fn from(Lines { first, last }: Lines) -> Self {
        Self { first, last }
    }
}

/// What became of one line, or of all that follow.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LineOutcome)]
pub struct OutcomeView {
    /// Counted from 1, blank lines included. Absent in a last line that says why no more follow.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, required = false)]
    pub line: Option<u64>,
    /// Where each line says whose trade it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ordinal, required = false)]
    pub customer_id: Option<CustomerId>,
    /// The trade's address, where it is stored, durably.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ordinal, required = false)]
    pub seq: Option<Seq>,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = ProblemOfLine, required = false)]
    pub problem: Option<Value>,
}

/// A problem without the address and the id of the request, which are those of the whole.
pub struct ProblemOfLine;

impl utoipa::PartialSchema for ProblemOfLine {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        let mut schema = ProblemSchema::schema();
        if let utoipa::openapi::RefOr::T(utoipa::openapi::Schema::Object(object)) = &mut schema {
            object.required.retain(|name| name != "instance" && name != "requestId");
        }
        schema
    }
}

impl ToSchema for ProblemOfLine {}
