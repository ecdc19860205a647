//! What is in the place of traces in a program without the feature `otlp`.

use std::future::{Ready, ready};

use clap::Args;
use pagebucket_http::Traces;
use pagebucket_model::domain::Invalid;
use tracing_subscriber::layer::Identity;

/// There are no flags.
#[derive(Args, Debug, Clone)]
pub(crate) struct NoTraceArgs {}

pub(crate) use NoTraceArgs as TraceArgs;

pub(super) fn layer(_: &TraceArgs) -> Result<Option<Identity>, Invalid> {
    Ok(None)
}

pub(crate) fn of_requests(_: &TraceArgs) -> Option<Traces> {
    None
}

pub(crate) fn end() -> Ready<()> {
    ready(())
}
