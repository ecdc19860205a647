//! The JSON of an upload's answers, and its documentation.

use pagebucket_model::domain::{Fault, Faults, OwnerMember, Seq};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema};

use crate::problem::{self, Problem, ProblemKind};
use crate::resources::history::append::RangeView;
use crate::schemas::{owner_id, owner_member};

/// Summary of an upload to one history, in which every line is stored or refused.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UploadedItems)]
pub(crate) struct UploadedView {
    #[serde(flatten)]
    #[schema(schema_with = owner_member)]
    pub owner: OwnerMember,
    /// Sequence numbers of the stored {manyItems}, in order of the lines: one range, unless others appended
    /// meanwhile. At most 1,000 ranges.
    #[schema(max_items = 1000)]
    pub ranges: Vec<RangeView>,
    /// Number of further ranges.
    #[schema(minimum = 1, required = false)]
    pub ranges_omitted: Option<u64>,
    #[serde(flatten)]
    #[schema(inline)]
    pub counts: CountsView,
}

/// Summary of an upload to many histories, in which every line is stored or refused.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = UploadSummary)]
pub(crate) struct ManyUploadedView {
    /// Number of owners with at least one stored item.
    #[schema(minimum = 0, maximum = 10_000)]
    pub owners: usize,
    /// Whether there are more owners, which were not counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub more_owners: bool,
    #[serde(flatten)]
    #[schema(inline)]
    pub counts: CountsView,
}

/// Outcomes of an upload's lines.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CountsView {
    /// Number of stored lines.
    #[schema(minimum = 0)]
    pub stored: u64,
    /// Number of lines that are refused, each for a fault of its own.
    #[schema(minimum = 0)]
    pub refused: u64,
    /// Faults of the first refused lines, at most 100 lines.
    #[schema(max_items = 100)]
    pub problems: Vec<LineProblemView>,
    /// Number of further refused lines.
    #[schema(minimum = 1, required = false)]
    pub problems_omitted: Option<u64>,
}

/// Faults of one line.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = LineProblem, examples(json!({ "line": 3, "errors": [{ "pointer": "", "detail": "must not be empty" }] })))]
pub(crate) struct LineProblemView {
    /// Line number, counted from 1, blank lines included.
    #[schema(minimum = 1)]
    pub line: u64,
    #[schema(max_items = 10)]
    pub errors: Vec<FaultView>,
    /// Number of further faults.
    #[schema(minimum = 1, required = false)]
    pub errors_omitted: Option<usize>,
}

impl LineProblemView {
    /// The faults of a line.
    pub(crate) fn new(line: u64, faults: &Faults) -> Self {
        let view = |Fault { pointer, rule, line: _ }: &Fault| FaultView {
            pointer: pointer.clone(),
            detail: rule.to_string(),
        };
        let errors = faults.kept().iter().map(view).collect();
        Self { line, errors, errors_omitted: Some(faults.omitted()).filter(|&omitted| omitted > 0) }
    }
}

/// One fault of a line.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LineFault)]
pub(crate) struct FaultView {
    /// JSON Pointer (RFC 6901) into the line; empty for the whole line.
    #[schema(max_length = 131_072)]
    pub pointer: String,
    /// What is wrong.
    #[schema(max_length = 65_536)]
    pub detail: String,
}

/// Outcome of one line, or of all lines that follow.
#[serde_with::skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ItemLineOutcome)]
pub(crate) struct OutcomeView {
    /// Line number, counted from 1, blank lines included. Absent in a last outcome that says why the upload
    /// ended early.
    #[schema(minimum = 1, required = false)]
    pub line: Option<u64>,
    /// Only in an upload to many histories.
    #[serde(flatten)]
    #[schema(schema_with = maybe_owner)]
    pub owner: Option<OwnerMember>,
    /// Sequence number of the {item}, if it is stored durably.
    #[schema(value_type = Option<u64>, minimum = 1)]
    pub seq: Option<Seq>,
    /// Why the line is not stored, or may not be.
    #[schema(value_type = ProblemOfLine, required = false)]
    pub problem: Option<Value>,
}

/// The documentation of an owner that not every outcome has.
fn maybe_owner() -> RefOr<Schema> {
    ObjectBuilder::new().property("{ownerField}", owner_id()).into()
}

/// A problem without the address and the id of the request, which the whole answer shares.
pub(crate) struct ProblemOfLine;

impl utoipa::PartialSchema for ProblemOfLine {
    fn schema() -> RefOr<Schema> {
        let mut schema =
            problem::schemas().remove("Problem").expect("one of them is the schema of every problem");
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required.retain(|name| name != "instance" && name != "requestId");
            object.description = Some("Why a line is not stored: an error (RFC 9457).".to_owned());
            object.examples.push(
                Problem::new(ProblemKind::LineDiffers, ProblemKind::LineDiffers.spec().about).in_line(),
            );
        }
        schema
    }
}

impl ToSchema for ProblemOfLine {}
