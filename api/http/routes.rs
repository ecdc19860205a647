//! The map of the API: one expression mounts a route *and* documents it.

use std::sync::Arc;

use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::api::Api;
use super::history::{append, export, item, list, page, upload};
use super::middleware::admission::Policy;
use super::page_views::{count, preallocate, reads};
use super::{customers, openapi, probes};

/// Routes of one address, with their documentation.
type Routes = UtoipaMethodRouter<Arc<Api>>;

/// The routes under `/v1`, with their documentation. `admit` puts the admission layer around each.
pub fn v1(admit: impl Fn(Routes, Policy) -> Routes) -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::with_openapi(openapi::preamble())
        .routes(admit(routes!(append::append, list::list), Policy::JsonOrUpload))
        .routes(admit(routes!(upload::append_many), Policy::JsonOrUpload))
        .routes(admit(routes!(export::export), Policy::Rows))
        .routes(admit(routes!(page::page), Policy::Json))
        .routes(admit(routes!(item::one), Policy::Json))
        .routes(admit(routes!(customers::list), Policy::Json))
        .routes(admit(routes!(customers::summary), Policy::Json))
        .routes(admit(routes!(count::count, reads::series), Policy::Json))
        .routes(admit(routes!(reads::bucket), Policy::Json))
        .routes(admit(routes!(reads::top), Policy::Json))
        .routes(admit(routes!(preallocate::preallocate), Policy::Json))
}

/// The routes for operators, with their documentation.
pub fn probes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::default()
        .routes(routes!(probes::livez))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::metrics))
}

/// The OpenAPI document as JSON text, indented, with a line end.
pub fn document() -> String {
    let (_, document) = v1(|routes, _| routes).merge(probes()).split_for_parts();
    let mut text = document.to_pretty_json().expect("every key of the document is text");
    text.push('\n');
    text
}
