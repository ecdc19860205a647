//! The OpenAPI document.
//!
//! Handlers are documented by templates, because a history has the names and the items of its definition. [`Filler`] fills
//! the templates once for each definition.

mod filler;
mod items;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::tag::{Tag, TagBuilder};
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, ServerBuilder};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use super::middleware::admission::Policy;
use super::names::Names;
use super::problem::Problem;
use super::routes::{Routes, of_history, of_owners, of_page_views, probes};
use crate::definition::{Definition, Definitions};
use filler::{Filler, merge};
use items::Items;

/// The OpenAPI document of a server with these histories, as JSON text, indented, with a line end.
pub fn document(definitions: &Definitions) -> String {
    let (history, owners) = (
        template(
            of_history(),
            [tag("{Items}", "Append {manyItems}, and read histories by page, window or time.")],
        ),
        template(of_owners(), [tag("{Owners}", "Histories as a whole.")]),
    );
    let mut document = value(preamble(definitions));
    let mut known = Vec::new();
    for definition in definitions.iter() {
        let owner = &definition.owner.collection;
        if known.contains(&owner) {
            continue;
        }
        known.push(owner);
        let histories = || definitions.iter().filter(|other| other.owner.collection == *owner);
        for definition in histories() {
            add(&mut document, Filler::of(definition).document(&history));
        }
        // Summaries of an owner have a member for each history.
        for definition in histories() {
            add(&mut document, Filler::of(definition).document(&owners));
        }
    }
    add(&mut document, template(of_page_views(), [tag("Views", "Count page views, and read the counts.")]));
    let mut probes = value(probes().into_openapi());
    probes["tags"] = json!([tag("Probes", "For operators of the service.")]);
    add(&mut document, probes);
    name_instances(&mut document);
    if let Some(Value::Object(schemas)) = document.pointer_mut("/components/schemas") {
        schemas.sort_keys();
    }
    let mut text = serde_json::to_string_pretty(&document).expect("every key of the document is text");
    text.push('\n');
    text
}

/// What the definition puts into templates.
pub fn names(definition: &Definition) -> Names {
    Names::of(definition).with(Items::of(definition).texts())
}

/// An item that a client may send, without a date if it need not have one. `None` if none could be made.
pub fn new_item(definition: &Definition) -> Option<Value> {
    Items::of(definition).example("newItem")?
}

/// Title, description and servers.
fn preamble(definitions: &Definitions) -> OpenApi {
    let license =
        LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let histories: Vec<_> = definitions.iter().map(|definition| definition.item.noun().many()).collect();
    let histories = match histories.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        one => one.concat(),
    };
    let info = InfoBuilder::new()
        .title("pagebucket")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!(
            "Append-only histories of {histories} in MongoDB, in buckets, served as pages: a page is a bucket. \
             Every acknowledged item is stored exactly once. Any page of any history is one cheap read. Totals are \
             exact. Page views are counted in one bucket for each page and minute. Instants are RFC 3339 in UTC. \
             Errors are problems (RFC 9457), described at `/problems`."
        )))
        .contact(Some(ContactBuilder::new().name(Some("The pagebucket developers")).build()))
        .license(Some(license))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new()
            .url("/")
            .description(Some("Where this document is served."))
            .build()]))
        // Explicitly empty: there is no authentication.
        .security(Some([]))
        .tags(Some::<[Tag; 0]>([]))
        .components(Some(ComponentsBuilder::new().schema(Problem::name(), Problem::schema()).build()))
        .build()
}

fn tag(name: &str, description: &str) -> Tag {
    TagBuilder::new().name(name).description(Some(description)).build()
}

fn template(routes: Vec<(Routes, Policy)>, tags: [Tag; 1]) -> Value {
    let routes = routes.into_iter().map(|(routes, _)| routes);
    let mut document = routes.fold(OpenApiRouter::default(), OpenApiRouter::routes).into_openapi();
    document.tags = Some(tags.into());
    value(document)
}

fn value(document: OpenApi) -> Value {
    serde_json::to_value(document).expect("every key of the document is text")
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

/// Fills the `instance` of the problems of each operation: its own address.
fn name_instances(document: &mut Value) {
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
            let filled = operation.to_string().replace("{instance}", &address);
            *operation = serde_json::from_str(&filled).expect("an address needs no escapes in JSON");
        }
    }
}
