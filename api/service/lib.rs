//! One running service: the API of a store and its server, as plain settings say.
//!
//! | Module | What it knows |
//! |---|---|
//! | [`config`] | the settings, and what they are by default |
//! | [`service`] | the API and its server, bound and served |
//! | [`housekeeping`] | what a service does beside its requests |
//! | [`exposition`] | the metrics of the process |

mod config;
mod exposition;
mod housekeeping;
mod service;

pub use config::{ApiConfig, ForwardedHeader, Rate, ServiceConfig};
pub use exposition::measure;
pub use service::{ServeError, Service};
