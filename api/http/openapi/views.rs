//! The schemas of what requests have and answers show. Their names and texts are those of a definition, and
//! so are some of their members.

use pagebucket_model::domain::Limit;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::visit::inside;
use crate::pages::item_view::StoredPage;
use crate::resources::erasure::ErasureView;
use crate::resources::history::append::AppendedView;
use crate::resources::history::list::ListingView;
use crate::resources::history::summary::SummaryPageView;
use crate::resources::history::summary::of_all::AllSummaryView;
use crate::resources::history::upload::{ManyUploadedView, OutcomeView, UploadedView};
use crate::resources::owners::{Owner, OwnerTotals, OwnersView, SummaryView, TotalsView};
use crate::resources::page_views::reads::{BucketView, SeriesView, TopView};
use crate::resources::page_views::writes::{PageViewInput, PreallocatedView, PreallocationInput};
use crate::resources::probes::Health;
use crate::schemas::names::Names;

/// Schemas by their names.
type Schemas = Map<String, Value>;

/// Those of one history.
pub(crate) fn of_history(names: &Names<'_>) -> Schemas {
    let mut all = Schemas::new();
    add::<AppendedView>(&mut all, names);
    add::<ListingView>(&mut all, names);
    add::<ManyUploadedView>(&mut all, names);
    add::<OutcomeView>(&mut all, names);
    add::<StoredPage>(&mut all, names);
    add::<SummaryView>(&mut all, names);
    add::<UploadedView>(&mut all, names);
    if names.definition.summaries.is_some() {
        add::<SummaryPageView>(&mut all, names);
        if names.definition.time_series.is_some() {
            add::<AllSummaryView>(&mut all, names);
        }
    }
    // The items themselves.
    all.extend(names.schemas.clone());
    bound_pages(&mut all, names);
    all
}

/// Those of the owners of one or more histories.
pub(crate) fn of_owners(names: &Names<'_>) -> Schemas {
    let mut all = Schemas::new();
    add::<ErasureView>(&mut all, names);
    add::<OwnersView>(&mut all, names);
    add::<TotalsView>(&mut all, names);
    all.insert(names.schema_name("Owner"), json!(Owner::schema(names)));
    all.insert(names.schema_name("OwnerTotals"), json!(OwnerTotals::schema(names)));
    all
}

/// Those of page views and probes.
pub(crate) fn of_no_history(names: &Names<'_>) -> Schemas {
    let mut all = Schemas::new();
    add::<BucketView>(&mut all, names);
    add::<Health>(&mut all, names);
    add::<PageViewInput>(&mut all, names);
    add::<PreallocatedView>(&mut all, names);
    add::<PreallocationInput>(&mut all, names);
    add::<SeriesView>(&mut all, names);
    add::<TopView>(&mut all, names);
    all.insert(
        "TextStream".to_owned(),
        json!({ "type": "string", "description": "Text without a bound of its length." }),
    );
    all
}

/// Adds the schema of a view, and those that it refers to.
fn add<T: ToSchema>(all: &mut Schemas, names: &Names<'_>) {
    let mut found = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut found);
    all.extend(found.into_iter().map(|(name, schema)| {
        let mut schema = names.filled(json!(schema));
        inside(&mut schema, &mut without_null);
        (names.schema_name(&name), joined(schema))
    }));
}

/// Removes `null`: a member that has no value is absent.
fn without_null(schema: &mut Value) {
    let null = json!({ "type": "null" });
    if let Some([kind, null]) = schema["type"].as_array().map(Vec::as_slice)
        && null == "null"
    {
        schema["type"] = kind.clone();
    }
    if let Some([shape, _]) =
        schema["oneOf"].as_array().filter(|shapes| shapes.contains(&null)).map(Vec::as_slice)
    {
        *schema = shape.clone();
    }
}

/// One object instead of those that a view is made of: a member that a definition names is an object of its
/// own, because no field of a struct can document it.
fn joined(mut schema: Value) -> Value {
    let parts = schema.as_object_mut().and_then(|schema| schema.shift_remove("allOf"));
    for part in parts.as_ref().and_then(Value::as_array).into_iter().flatten() {
        schema["type"] = json!("object");
        for required in part["required"].as_array().into_iter().flatten() {
            match &mut schema["required"] {
                Value::Array(all) => all.push(required.clone()),
                none => *none = json!([required]),
            }
        }
        for (name, property) in part["properties"].as_object().into_iter().flatten() {
            schema["properties"][name] = property.clone();
        }
    }
    schema
}

/// Writes the page size into the schemas of pages and listings.
fn bound_pages(schemas: &mut Schemas, names: &Names<'_>) {
    let (title, size) = (&names.item_type, names.definition.page_size.get());
    for (schema, property, keyword, most) in [
        ("Page", "count", "maximum", size),
        ("Page", "items", "maxItems", size),
        ("Listing", "items", "maxItems", size.max(Limit::MAX.into())),
    ] {
        let schema = schemas.get_mut(&format!("{title}{schema}"));
        if let Some(property) = schema.and_then(|schema| schema["properties"].get_mut(property)) {
            property[keyword] = json!(most);
        }
    }
}
