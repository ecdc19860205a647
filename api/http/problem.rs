//! Every error that a client sees: `application/problem+json` (RFC 9457), from one table.
//!
//! A handler returns a [`Problem`]. [`crate::answer::render`] writes its body at the edge, where the address
//! and the id of the request are known, and also gives bodies to the framework's own errors. A problem has
//! what the client reads and what the log gets. It is logged once, at the edge.

mod cause;
mod content;
mod database;
mod documented;
mod kind;
mod summary;

pub(crate) use cause::LoggedCause;
pub use content::MEDIA_TYPE;
pub(crate) use content::{ParameterFault, Problem};
pub(crate) use database::why_not_stored;
pub(crate) use documented::{BODY, COMMON, problems, responses, schemas};
pub use kind::ProblemKind;
pub(crate) use kind::Spec;
