//! The map of the API: one expression mounts a route *and* documents it, and its row says who may use it. The routes of a
//! history are templates, which its definition fills ([`Names`]).

pub mod names;

use std::sync::Arc;

use axum::{Extension, Router};
use pagebucket_engine::{Engine, Store};
use pagebucket_model::domain::Scope::{Admin, Append, List, Metrics, Read, Views};
use utoipa::openapi::Paths;
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use super::auth::access::Access::{self, Everyone, OfAllOwners, OfOwner, With};
use super::middleware::admission::{Admission, Policy};
use super::middleware::gate::{Gate, Guard};
use super::request::body::{CSV, JSON, NDJSON};
use super::resources::history::{append, export, list, page, upload};
use super::resources::page_views::{reads, writes};
use super::resources::{erasure, owners, probes};
use super::state::Api;
use names::Names;

/// Routes of one address, with their documentation.
pub type Routes = UtoipaMethodRouter<Arc<Api>>;

/// A row of the table: routes of one address, what they answer, and who may use them.
pub type Row = (Routes, Policy, Access);

/// The routes of one history.
pub fn of_history() -> Vec<Row> {
    vec![
        (routes!(append::append), Policy::Json, OfOwner(Append)),
        (routes!(list::list), Policy::Json, OfOwner(Read)),
        (routes!(upload::of_one), Policy::Upload(JSON), OfOwner(Append)),
        (routes!(upload::of_one_with_outcomes), Policy::Upload(NDJSON), OfOwner(Append)),
        (routes!(upload::of_many), Policy::Upload(JSON), OfAllOwners(Append)),
        (routes!(upload::of_many_with_outcomes), Policy::Upload(NDJSON), OfAllOwners(Append)),
        (routes!(export::ndjson), Policy::Rows(NDJSON), OfOwner(Read)),
        (routes!(export::csv), Policy::Rows(CSV), OfOwner(Read)),
        (routes!(page::page), Policy::Json, OfOwner(Read)),
        (routes!(page::item), Policy::Json, OfOwner(Read)),
    ]
}

/// The routes of the owners of one or more histories.
pub fn of_owners() -> Vec<Row> {
    vec![
        (routes!(owners::list), Policy::Json, OfAllOwners(List)),
        (routes!(owners::summary), Policy::Json, OfOwner(Read)),
        (routes!(erasure::erase), Policy::Json, OfOwner(Admin)),
    ]
}

/// The routes of page views.
pub fn of_page_views() -> Vec<Row> {
    vec![
        (routes!(writes::count, reads::series), Policy::Json, With(Views)),
        (routes!(writes::upload), Policy::Json, With(Views)),
        (routes!(reads::bucket), Policy::Json, With(Views)),
        (routes!(reads::top), Policy::Json, With(Views)),
        (routes!(writes::preallocate), Policy::Json, With(Admin)),
    ]
}

/// The routes for operators. They are not behind the admission layer: their policy means nothing.
pub fn probes() -> Vec<Row> {
    vec![
        (routes!(probes::livez), Policy::Json, Everyone),
        (routes!(probes::readyz), Policy::Json, Everyone),
        (routes!(probes::metrics), Policy::Json, With(Metrics)),
    ]
}

/// The routes for operators, each behind this gate.
pub fn operators(gate: &Gate) -> Router<Arc<Api>> {
    probes().into_iter().fold(Router::new(), |router, ((_, paths, methods), _, access)| {
        let open = access == With(Metrics) && gate.open.metrics;
        let guard = Guard::layer(gate, if open { Everyone } else { access });
        router.route(address(&paths), methods.layer(guard))
    })
}

/// The routes under `/v1`, each behind the admission layer.
pub fn v1(store: &Store, admission: &Admission) -> Router<Arc<Api>> {
    let mounted = |rows: Vec<Row>, engine: Option<&Engine>| {
        let names = engine.map(|engine| Names::of(engine.definition()));
        rows.into_iter().fold(Router::new(), |router, ((_, paths, methods), policy, access)| {
            let address = address(&paths);
            let address = names.as_ref().map_or_else(|| address.to_owned(), |names| names.fill(address));
            router.route(&address, methods.layer(admission.layer(policy, access, engine)))
        })
    };
    store.definitions().owners().into_iter().fold(mounted(of_page_views(), None), |router, owner| {
        let engines = store.histories().iter().filter(|engine| engine.definition().owner == *owner);
        let engines: Arc<[Engine]> = engines.cloned().collect();
        let owners = mounted(of_owners(), engines.first()).layer(Extension(Arc::clone(&engines)));
        let histories = engines.iter().map(|engine| mounted(of_history(), Some(engine)));
        histories.fold(router.merge(owners), Router::merge)
    })
}

/// The address of a row.
pub fn address(paths: &Paths) -> &str {
    paths.paths.keys().next().expect("each row has an address")
}
