//! The OpenAPI document.
//!
//! A function beside each handler documents it, with the names of a definition ([`Names`]), and so are
//! what it takes and shows. What holds for all of them is added to the whole document
//! ([`complete`](mod@complete)).

mod complete;
mod features;
mod security;
mod share;
#[cfg(test)]
mod tests;
mod version_3_0;

use std::collections::BTreeMap;

use pagebucket_model::definition::Definitions;
use pagebucket_model::item::list;
use serde_json::{Value, json};
use utoipa::openapi::Paths;

use super::problem;
use super::routes::{Route, of_histories, of_history, of_owners, of_page_views, probes};
use super::schemas::document::Documented;
use super::schemas::headers::rates;
use super::schemas::names::{Names, address};
use super::schemas::views::Schemas;
use complete::complete;
pub(crate) use features::Features;
use security::{complete_operation, schemes};
use share::share;
use version_3_0::in_3_0;

/// A version of the OpenAPI Specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// For generators that do not read 3.1.
    V3_0,
    /// The document itself.
    V3_1,
}

/// The OpenAPI document of all that a server with these histories may do, as JSON text, indented, with a line
/// end.
pub fn document(definitions: &Definitions, version: Version) -> String {
    document_of(definitions, version, Features::ALL)
}

/// The same of a server that does no more than this.
pub(crate) fn document_of(definitions: &Definitions, version: Version, features: Features) -> String {
    let document = of(definitions, features);
    let document = match version {
        Version::V3_0 => in_3_0(document),
        Version::V3_1 => document,
    };
    let mut text = serde_json::to_string_pretty(&document).expect("every key of the document is text");
    text.push('\n');
    text
}

fn of(definitions: &Definitions, features: Features) -> Value {
    let names: Vec<_> = definitions.iter().map(|definition| Names::of(definitions, definition)).collect();
    let first = names.first().expect("there is no list without a definition");
    let schemas = problem::schemas().into_iter().map(|(name, schema)| (name, json!(schema))).collect();
    let mut parts = DocumentParts { features, paths: Paths::new(), tags: Vec::new(), schemas };
    let history = |names: &Names<'_>| {
        format!("Append {}, and read histories by page, window or time.", names.many_items)
    };
    for owner in definitions.owners() {
        let histories = || names.iter().filter(|names| names.definition.owner == *owner);
        for names in histories() {
            parts.add(of_history(), (&names.items_type, &history(names)), names);
        }
        if let Some(names) = histories().next() {
            parts.add(of_owners(), (&names.owners_type, "Histories as a whole."), names);
        }
    }
    parts.add(of_histories(), ("Live", "Several histories in one stream."), first);
    parts.add(of_page_views(), ("PageViews", "Count page views, and read the counts."), first);
    parts.add(probes(), ("Probes", "For operators of the service."), first);
    for names in &names {
        // Views that refer to them have only their names.
        parts.schemas.extend(names.schemas.clone());
    }
    parts.schemas.sort_keys();
    let mut components = json!({ "schemas": parts.schemas });
    if features.authenticates() {
        components["securitySchemes"] = schemes(features);
    }
    if features.rate_limits {
        components["headers"] = json!(BTreeMap::from(rates()));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": info(definitions),
        "servers": [{ "url": "/", "description": "Where this document is served." }],
        "paths": parts.paths,
        "components": components,
        "tags": parts.tags,
    });
    share(&mut document);
    complete(&mut document);
    document
}

/// What the histories give to the document.
struct DocumentParts {
    features: Features,
    paths: Paths,
    tags: Vec<Value>,
    schemas: Schemas,
}

impl DocumentParts {
    /// Adds routes of one history or of its owners, with a tag of this name and description.
    fn add(&mut self, routes: Vec<Route>, (tag, about): (&str, &str), names: &Names<'_>) {
        // A history may have the name of a tag of ours.
        if self.tags.iter().all(|there| there["name"] != tag) {
            self.tags.push(json!({ "name": tag, "description": about }));
        }
        for route in routes.into_iter().filter(|route| (route.is_of)(names.definition)) {
            let Documented { mut operation, schemas } = (route.document)(names);
            self.schemas.extend(schemas);
            complete_operation(&mut operation, tag, route.access, self.features, names);
            let address = address(route.address, names.definition);
            self.paths.add_path_operation(address, vec![route.documented], operation);
        }
    }
}

/// What the document is about.
fn info(definitions: &Definitions) -> Value {
    let histories: Vec<_> = definitions.iter().map(|definition| definition.item.noun().many()).collect();
    let description = format!(
        "Append-only histories of {} in MongoDB, in buckets, served as pages: a page is a bucket. \
         Every acknowledged item is stored exactly once. Any page of any history is one cheap read. Totals are \
         exact. Page views are counted in one bucket for each page and minute. Instants are RFC 3339 in UTC. \
         Errors are problems (RFC 9457), described at `/problems`.",
        list(&histories, "and")
    );
    let license = "MIT OR Apache-2.0";
    json!({
        "title": "pagebucket",
        "description": description,
        "contact": { "name": "The pagebucket developers" },
        "license": { "name": license, "identifier": license },
        "version": env!("CARGO_PKG_VERSION"),
    })
}
