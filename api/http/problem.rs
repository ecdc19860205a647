//! Every error that a client sees: `application/problem+json` (RFC 9457), from one table.
//!
//! A handler returns a [`Problem`]. [`crate::middleware`] writes its body at the edge, where the request's address and id are
//! known, and also gives bodies to the framework's own errors. A problem carries both what the client reads and what
//! the log gets. It is logged once, where it is rendered.

mod content;
mod database;
mod documented;
mod kind;
mod summary;

pub use content::{MEDIA_TYPE, ParameterFault, Problem};
pub use database::{log_cause, why_not_stored};
pub use documented::{
    AppendProblems, BucketProblems, CountProblems, ErasureProblems, ExportProblems, ItemProblems,
    ListProblems, ManyUploadsProblems, OutcomesProblems, PageProblems, PreallocationProblems, ProbeProblems,
    ReadProblems, ReadyProblems, SummaryProblems, UploadProblems, responses, schemas,
};
pub use kind::{ProblemKind, Spec};
