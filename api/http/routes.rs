//! The map of the API: one expression mounts a route *and* documents it. The routes of a history are templates, which its
//! definition fills ([`Names`]).

use std::sync::Arc;

use axum::{Extension, Router};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::api::Api;
use super::body::{CSV, JSON, NDJSON};
use super::history::{append, export, list, page, upload};
use super::middleware::admission::{Admission, Policy};
use super::names::Names;
use super::page_views::{reads, writes};
use super::{owners, probes};
use crate::store::Store;
use crate::store::history::Engine;

/// Routes of one address, with their documentation.
pub type Routes = UtoipaMethodRouter<Arc<Api>>;

/// The routes of one history.
pub fn of_history() -> Vec<(Routes, Policy)> {
    vec![
        (routes!(append::append, list::list), Policy::Json),
        (routes!(upload::of_one), Policy::Upload(JSON)),
        (routes!(upload::of_one_with_outcomes), Policy::Upload(NDJSON)),
        (routes!(upload::of_many), Policy::Upload(JSON)),
        (routes!(upload::of_many_with_outcomes), Policy::Upload(NDJSON)),
        (routes!(export::ndjson), Policy::Rows(NDJSON)),
        (routes!(export::csv), Policy::Rows(CSV)),
        (routes!(page::page), Policy::Json),
        (routes!(page::item), Policy::Json),
    ]
}

/// The routes of the owners of one or more histories.
pub fn of_owners() -> Vec<(Routes, Policy)> {
    vec![(routes!(owners::list), Policy::Json), (routes!(owners::summary), Policy::Json)]
}

/// The routes of page views.
pub fn of_page_views() -> Vec<(Routes, Policy)> {
    vec![
        (routes!(writes::count, reads::series), Policy::Json),
        (routes!(writes::upload), Policy::Json),
        (routes!(reads::bucket), Policy::Json),
        (routes!(reads::top), Policy::Json),
        (routes!(writes::preallocate), Policy::Json),
    ]
}

/// The routes for operators, with their documentation.
pub fn probes() -> OpenApiRouter<Arc<Api>> {
    OpenApiRouter::default()
        .routes(routes!(probes::livez))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::metrics))
}

/// The routes under `/v1`, each behind the admission layer.
pub fn v1(store: &Store, admission: &Admission) -> Router<Arc<Api>> {
    let mounted = |routes: Vec<(Routes, Policy)>, engine: Option<&Engine>| {
        let names = engine.map(|engine| Names::of(engine.definition()));
        routes.into_iter().fold(Router::new(), |router, ((_, paths, methods), policy)| {
            let address = paths.paths.keys().next().expect("each route has an address");
            let address = names.as_ref().map_or_else(|| address.clone(), |names| names.fill(address));
            router.route(&address, methods.layer(admission.layer(policy, engine)))
        })
    };
    let mut router = mounted(of_page_views(), None);
    let mut of_owner: Vec<Vec<Engine>> = Vec::new();
    for engine in store.histories() {
        router = router.merge(mounted(of_history(), Some(engine)));
        let collection = |engine: &Engine| engine.definition().owner.collection.clone();
        match of_owner.iter_mut().find(|known| collection(&known[0]) == collection(engine)) {
            Some(known) => known.push(engine.clone()),
            None => of_owner.push(vec![engine.clone()]),
        }
    }
    of_owner.into_iter().fold(router, |router, engines| {
        let owners = mounted(of_owners(), Some(&engines[0]));
        router.merge(owners.layer(Extension::<Arc<[_]>>(engines.into())))
    })
}
