//! A page by its number, and an item by its sequence number.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use pagebucket_model::domain::{OwnerId, PageNumber, Seq};
use serde_json::json;

use crate::admission::accept::JSON;
use crate::answer::notes::ItemCount;
use crate::caching::control::Caching;
use crate::caching::reading::Reading;
use crate::pages::item_schemas::PlacedItem;
use crate::pages::item_view::StoredPage;
use crate::problem::ProblemKind::{self, Erased, ItemNotFound, PageNotFound, Retired};
use crate::problem::{COMMON, Problem, problems};
use crate::request::params::{Address, Params};
use crate::schemas::document::{Documented, RouteDocument};
use crate::schemas::headers;
use crate::schemas::names::Names;
use crate::state::Api;

pub(crate) fn document(names: &Names<'_>) -> Documented {
    let Names { definition, owner_field, item_type, examples, .. } = names;
    let size = definition.page_size.get();
    let example = examples.stored_item.as_ref().map(|item| {
        json!({
            (owner_field): examples.owner, "page": 1, "full": false, "firstSeq": 1, "count": 1, "items": [item]
        })
    });
    RouteDocument::of(
        names,
        format!("get{item_type}Page"),
        "Read a page as it is stored",
        "Returns the bucket itself, without totals or links. A page that is `full` never changes and may \
        be kept forever, as `Cache-Control` says.",
    )
    .parameters(<(OwnerId, PageNumber)>::documented(names))
    .reads_tagged("The page.")
    .header(headers::etag("Never changes if the page is full."))
    .header(headers::cache_control("`immutable` if the page is full, otherwise `no-cache`."))
    .shows::<StoredPage>(JSON, example)
    .bounds::<StoredPage>("count", "maximum", size)
    .bounds::<StoredPage>("items", "maxItems", size)
    .problems(problems(names, &[COMMON, &[PageNotFound, Retired, Erased]]))
}

pub(crate) async fn page(
    State(api): State<Arc<Api>>,
    Address { engine, params: (owner, page) }: Address<(OwnerId, PageNumber)>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    // A client with the tag of a full page has seen it full: no look-up is needed.
    let caching = |epoch| Caching::of_full(epoch, engine.definition(), &owner, page);
    if let Some(unchanged) = reading.named(&engine, caching) {
        return Ok(unchanged);
    }
    let found = api.pages.page(engine.reads(), &owner, page, &mut reading).await?;
    let missing = || Problem::new(ProblemKind::PageNotFound, "The history has no such page.");
    let page = found.ok_or_else(missing)?;
    Ok(reading.answer(&page.caching, json(page.json.clone(), page.count())))
}

pub(crate) fn document_of_item(names: &Names<'_>) -> Documented {
    let Names { item_type, item, examples, .. } = names;
    RouteDocument::of(
        names,
        format!("get{item_type}"),
        format!("Read one {item}"),
        format!("Returns the {item} with this sequence number, which is its permanent address."),
    )
    .parameters(<(OwnerId, Seq)>::documented(names))
    .reads_tagged(format!("The {item}."))
    .header(headers::etag(format!("Never changes if the {item} is on a full page.")))
    .header(headers::cache_control(format!(
        "`immutable` if the {item} is on a full page, otherwise `no-cache`."
    )))
    .shows::<PlacedItem>(JSON, examples.placed_item.clone())
    .problems(problems(names, &[COMMON, &[ItemNotFound, Retired, Erased]]))
}

pub(crate) async fn item(
    State(api): State<Arc<Api>>,
    Address { engine, params: (owner, seq) }: Address<(OwnerId, Seq)>,
    mut reading: Reading,
) -> Result<Response, Problem> {
    let definition = engine.definition();
    let number = definition.page_size.page_of(seq);
    let caching = |epoch| Caching::of_full(epoch, definition, &owner, number);
    if let Some(unchanged) = reading.named(&engine, caching) {
        return Ok(unchanged);
    }
    let page = api.pages.page(engine.reads(), &owner, number, &mut reading).await?;
    let Some((page, item)) = page.as_ref().and_then(|page| Some((page, page.item(seq)?))) else {
        let detail = format!("The history has no such {}.", definition.item.noun().one());
        return Err(Problem::new(ProblemKind::ItemNotFound, detail));
    };
    let placed = [format!("{{\"page\":{number},").as_bytes(), &item[1..]].concat();
    Ok(reading.answer(&page.caching, json(placed.into(), 1)))
}

/// An answer of JSON with this number of items.
pub(crate) fn json(bytes: Bytes, items: usize) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], ItemCount::of(items), bytes)
}
