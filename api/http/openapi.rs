//! The OpenAPI document.
//!
//! Handlers are documented by templates, because a history has the names and the items of its definition.
//! [`Filler`] fills the templates once for each definition.

mod complete;
mod features;
mod filler;
mod security;
mod share;
#[cfg(test)]
mod tests;
mod version_3_0;
mod visit;

use std::collections::HashMap;

use pagebucket_model::definition::Definitions;
use pagebucket_model::item::list;
use serde_json::{Map, Value, json};
use utoipa_axum::router::OpenApiRouter;

use super::problem;
use super::routes::{RouteRow, of_histories, of_history, of_owners, of_page_views, probes, rows};
use complete::{complete, without_null};
pub(crate) use features::Features;
pub(crate) use filler::Filler;
use filler::merge;
use security::{complete_row, schemes};
use share::share;
use version_3_0::in_3_0;
use visit::each_response;

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
    let template =
        |rows: &mut dyn Iterator<Item = RouteRow>, tag, about| template(rows, tag, about, features);
    let history = "Append {manyItems}, and read histories by page, window or time.";
    let history = template(&mut rows(of_history()), "{Items}", history);
    let owners = template(&mut rows(of_owners()), "{Owners}", "Histories as a whole.");
    let mut document = preamble(definitions, features);
    for owner in definitions.owners() {
        let histories = || definitions.iter().filter(|definition| definition.owner == *owner);
        for definition in histories() {
            add(&mut document, Filler::of(definition).document(&history));
        }
        // Summaries of an owner have a member for each history.
        for definition in histories() {
            add(&mut document, Filler::of(definition).document(&owners));
        }
    }
    if let Some(first) = definitions.iter().next() {
        let several = template(&mut rows(of_histories()), "Live", "Several histories in one stream.");
        add(&mut document, Filler::of(first).of_all(definitions).document(&several));
    }
    let views = "Count page views, and read the counts.";
    add(&mut document, template(&mut rows(of_page_views()), "PageViews", views));
    add(&mut document, template(&mut probes().into_iter(), "Probes", "For operators of the service."));
    name_instances(&mut document);
    complete(&mut document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.sort_keys();
    }
    share(&mut document);
    document
}

/// Title, description and servers.
fn preamble(definitions: &Definitions, features: Features) -> Value {
    let histories: Vec<_> = definitions.iter().map(|definition| definition.item.noun().many()).collect();
    let description = format!(
        "Append-only histories of {} in MongoDB, in buckets, served as pages: a page is a bucket. \
         Every acknowledged item is stored exactly once. Any page of any history is one cheap read. Totals are \
         exact. Page views are counted in one bucket for each page and minute. Instants are RFC 3339 in UTC. \
         Errors are problems (RFC 9457), described at `/problems`.",
        list(&histories, "and")
    );
    let license = "MIT OR Apache-2.0";
    let mut components = json!({ "schemas": problem::schemas() });
    if features.authenticates() {
        components["securitySchemes"] = schemes(features);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "pagebucket",
            "description": description,
            "contact": { "name": "The pagebucket developers" },
            "license": { "name": license, "identifier": license },
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": "/", "description": "Where this document is served." }],
        "paths": {},
        "components": components,
        "tags": [],
    })
}

/// The document of these rows, whose operations have this tag.
fn template(
    rows: &mut dyn Iterator<Item = RouteRow>,
    tag: &str,
    description: &str,
    features: Features,
) -> Value {
    let routes = rows.map(|(mut routes, access)| {
        complete_row(&mut routes.1, tag, access, features);
        routes
    });
    let document = routes.fold(OpenApiRouter::default(), OpenApiRouter::routes).into_openapi();
    let mut document = serde_json::to_value(document).expect("every key of the document is text");
    without_null(&mut document);
    document["tags"] = json!([{ "name": tag, "description": description }]);
    document
}

/// Adds the tags, the paths and the schemas of `more`.
fn add(document: &mut Value, mut more: Value) {
    if let (Some(tags), Value::Array(more)) = (document["tags"].as_array_mut(), more["tags"].take()) {
        for tag in more {
            if tags.iter().all(|there| there["name"] != tag["name"]) {
                tags.push(tag);
            }
        }
    }
    for part in ["paths", "components"] {
        merge(&mut document[part], more[part].take());
    }
}

/// Fills the `instance` of the problems: the address of the first operation that answers with this one.
fn name_instances(document: &mut Value) {
    let mut named: HashMap<Value, Value> = HashMap::new();
    for (path, methods) in document["paths"].as_object_mut().into_iter().flatten() {
        for operation in methods.as_object_mut().into_iter().flat_map(Map::values_mut) {
            let mut address = path.clone();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                if let Some(name) = parameter["name"].as_str().filter(|_| parameter["in"] == "path") {
                    let example = match &parameter["example"] {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    address = address.replace(&format!("{{{name}}}"), &example);
                }
            }
            each_response(operation, &mut |_, response| {
                let fill = || {
                    let filled = response.to_string().replace("{instance}", &address);
                    serde_json::from_str(&filled).expect("an address needs no escapes in JSON")
                };
                *response = named.entry(response.clone()).or_insert_with(fill).clone();
            });
        }
    }
}
