//! The map of the API: one row mounts a route *and* documents it, and says who may use it. The addresses of a
//! history are templates, which its definition fills ([`address`]).

pub(crate) mod fast_path;

use std::iter;
use std::sync::Arc;

use axum::Router;
use axum::middleware::map_response;
use axum::routing::{MethodFilter, MethodRouter, on};
use pagebucket_engine::{Engine, Store};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::Scope::{Admin, Append, List, Metrics, Read, Views};
use utoipa::openapi::HttpMethod;

use super::admission::accept::{CSV, JSON, NDJSON};
use super::admission::clients::Clients;
use super::admission::gate::Access::{self, Erasing, Everyone, OfAllOwners, OfOwner, OfWatched, With};
use super::admission::gate::Gate;
use super::admission::guard::Guard;
use super::admission::layer::{Admission, Policy};
use super::answer::{log, measures};
use super::resources::history::live::{self, several};
use super::resources::history::{append, export, list, page, summary, upload};
use super::resources::page_views::{reads, writes};
use super::resources::{erasure, owners, probes};
use super::schemas::document::Documented;
use super::schemas::names::{Names, address};
use super::state::Api;
use fast_path::PageRoute;

/// A route: who may use it, its documentation, and whether the histories of a definition have it.
pub(crate) struct Route {
    pub method: &'static str,
    /// The method in the OpenAPI document.
    pub documented: HttpMethod,
    /// A template, which a definition fills.
    pub address: &'static str,
    handler: MethodRouter<Arc<Api>>,
    pub document: fn(&Names<'_>) -> Documented,
    pub access: Access,
    /// The histories of other definitions have a problem there, which says why.
    pub is_of: fn(&Definition) -> bool,
    policy: Policy,
}

/// A row of the table: method, address, handler, document; who may use it, and what it answers.
macro_rules! routes {
    ($($method:ident $address:literal $handler:path, $document:path; $access:expr, $policy:expr $(, if $is_of:path)?;)*) => {
        vec![$(Route {
            method: $method.0,
            documented: $method.2,
            address: $address,
            handler: on($method.1, $handler),
            document: $document,
            access: $access,
            is_of: [$($is_of,)? any].first().copied().unwrap_or(any),
            policy: $policy,
        }),*]
    };
}

/// A method: its name, and what axum and utoipa call it.
type Verb = (&'static str, MethodFilter, HttpMethod);

const GET: Verb = ("GET", MethodFilter::GET, HttpMethod::Get);
const POST: Verb = ("POST", MethodFilter::POST, HttpMethod::Post);
const DELETE: Verb = ("DELETE", MethodFilter::DELETE, HttpMethod::Delete);

fn any(_: &Definition) -> bool {
    true
}

fn rows_of_a_table(definition: &Definition) -> bool {
    definition.item.columns().is_ok()
}

fn summarised(definition: &Definition) -> bool {
    definition.summaries.is_some()
}

fn in_time_series(definition: &Definition) -> bool {
    definition.summaries.is_some() && definition.time_series.is_some()
}

/// The routes of one history.
pub(crate) fn of_history() -> Vec<Route> {
    routes! {
        POST "/v1/{owners}/{ownerId}/{items}" append::append, append::document; OfOwner(Append), Policy::Json;
        POST "/v1/{owners}/{ownerId}/{items}/batch" append::append_batch, append::document_of_batch; OfOwner(Append), Policy::Json;
        GET "/v1/{owners}/{ownerId}/{items}" list::list, list::document; OfOwner(Read), Policy::Listing;
        POST "/v1/{owners}/{ownerId}/{items}/upload" upload::of_one, upload::document; OfOwner(Append), Policy::Upload(JSON);
        POST "/v1/{owners}/{ownerId}/{items}/upload.ndjson" upload::of_one_with_outcomes, upload::document_with_outcomes; OfOwner(Append), Policy::Upload(NDJSON);
        POST "/v1/{items}/upload" upload::of_many, upload::document_of_many; OfAllOwners(Append), Policy::Upload(JSON);
        POST "/v1/{items}/upload.ndjson" upload::of_many_with_outcomes, upload::document_of_many_with_outcomes; OfAllOwners(Append), Policy::Upload(NDJSON);
        GET "/v1/{owners}/{ownerId}/{items}/export.ndjson" export::ndjson, export::document_of_ndjson; OfOwner(Read), Policy::Rows(NDJSON);
        GET "/v1/{owners}/{ownerId}/{items}/export.csv" export::csv, export::document_of_csv; OfOwner(Read), Policy::Rows(CSV), if rows_of_a_table;
        GET "/v1/{owners}/{ownerId}/{items}/live" live::live, live::document; OfOwner(Read), Policy::Live;
        GET "/v1/{items}/live" live::owners::owners, live::owners::document; OfAllOwners(List), Policy::Live;
        GET "/v1/{owners}/{ownerId}/{items}/summary" summary::summary, summary::document; OfOwner(Read), Policy::Json, if summarised;
        GET "/v1/{items}/summary" summary::of_all::of_all, summary::of_all::document; OfAllOwners(List), Policy::Json, if in_time_series;
        GET "/v1/{owners}/{ownerId}/{items}/pages/{page}" page::page, page::document; OfOwner(Read), Policy::Json;
        GET "/v1/{owners}/{ownerId}/{items}/{seq}" page::item, page::document_of_item; OfOwner(Read), Policy::Json;
    }
}

/// The routes of the owners of one or more histories.
pub(crate) fn of_owners() -> Vec<Route> {
    routes! {
        GET "/v1/{owners}" owners::list, owners::document; OfAllOwners(List), Policy::Json;
        GET "/v1/{owners}/{ownerId}" owners::summary, owners::document_of_one; OfOwner(Read), Policy::Json;
        DELETE "/v1/{owners}/{ownerId}" erasure::erase, erasure::document; Erasing, Policy::Json;
    }
}

/// The routes of several histories, of whatever definitions.
pub(crate) fn of_histories() -> Vec<Route> {
    routes! {
        GET "/v1/live" several::several, several::document; OfWatched(Read), Policy::Live;
    }
}

/// The routes of page views.
pub(crate) fn of_page_views() -> Vec<Route> {
    routes! {
        GET "/v1/page-views" reads::series, reads::document_of_series; With(Views), Policy::Json;
        POST "/v1/page-views" writes::count, writes::document_of_count; With(Views), Policy::Json;
        POST "/v1/page-views/batch" writes::count_batch, writes::document_of_batch; With(Views), Policy::Json;
        POST "/v1/page-views/upload" writes::upload, writes::document_of_upload; With(Views), Policy::Json;
        GET "/v1/page-views/buckets" reads::bucket, reads::document_of_bucket; With(Views), Policy::Json;
        GET "/v1/page-views/top" reads::top, reads::document_of_top; With(Views), Policy::Json;
        POST "/v1/page-views/preallocations" writes::preallocate, writes::document_of_preallocation; With(Admin), Policy::Json;
    }
}

/// The routes for operators. They are not behind the admission layer, which is for those under `/v1`.
pub(crate) fn probes() -> Vec<Route> {
    routes! {
        GET "/livez" probes::livez, probes::document_of_livez; Everyone, Policy::Json;
        GET "/readyz" probes::readyz, probes::document_of_readyz; Everyone, Policy::Json;
        GET "/metrics" probes::metrics, probes::document_of_metrics; With(Metrics), Policy::Json;
    }
}

/// The routes for operators, each behind this gate.
pub(crate) fn operators(gate: &Gate, clients: &Clients) -> Router<Arc<Api>> {
    probes().into_iter().fold(Router::new(), |router, route| {
        let guard = Guard::layer(gate, clients, gate.open.access(route.access));
        measures::begin(iter::once(route.method), route.address);
        router.route(route.address, route.handler.layer((map_response(log::of_probe), guard)))
    })
}

/// The routes of pages as they are stored, for the fast path.
pub(crate) fn pages(store: &Store, admission: &Arc<Admission>) -> Vec<PageRoute> {
    let of_engine = |engine: &Engine| {
        let row = of_history().into_iter().find(|route| route.address.ends_with("/pages/{page}"))?;
        let admission = admission.of_route(row.policy, row.access, Some(&[engine.clone()].into()));
        Some(PageRoute::new(&address(row.address, engine.definition()), engine.clone(), admission))
    };
    store.histories().iter().filter_map(of_engine).collect()
}

/// The routes under `/v1`, each behind the admission layer.
pub(crate) fn v1(store: &Store, admission: &Arc<Admission>) -> Router<Arc<Api>> {
    let mounted = |routes: Vec<Route>, histories: Option<&Arc<[Engine]>>| {
        let definition = histories.and_then(|histories| Some(histories.first()?.definition()));
        routes.into_iter().fold(Router::new(), |router, route| {
            let at = definition.map_or_else(|| route.address.to_owned(), |of| address(route.address, of));
            measures::begin(iter::once(route.method), &at);
            router.route(&at, route.handler.layer(admission.layer(route.policy, route.access, histories)))
        })
    };
    let all = mounted(of_page_views(), None).merge(mounted(of_histories(), Some(&store.histories().into())));
    store.definitions().owners().into_iter().fold(all, |router, owner| {
        let engines = store.histories().iter().filter(|engine| engine.definition().owner == *owner);
        let engines: Arc<[Engine]> = engines.cloned().collect();
        let owners = mounted(of_owners(), Some(&engines));
        let histories = engines.iter().map(|engine| mounted(of_history(), Some(&[engine.clone()].into())));
        histories.fold(router.merge(owners), Router::merge)
    })
}
