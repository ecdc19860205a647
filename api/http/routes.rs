//! The map of the API: one expression mounts a route *and* documents it. The routes of a history are templates, which its
//! definition fills ([`Names`]).

use std::sync::Arc;

use axum::routing::MethodRouter;
use axum::{Extension, Router};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

use super::api::Api;
use super::history::{append, export, item, list, page, upload};
use super::middleware::admission::{Admission, Policy};
use super::names::Names;
use super::owners::HistoriesOf;
use super::page_views::{count, preallocate, reads};
use super::params::HistoryOf;
use super::{owners, probes};
use crate::store::Store;
use crate::store::history::Engine;

/// Routes of one address, with their documentation.
pub type Routes = UtoipaMethodRouter<Arc<Api>>;

/// The routes of one history.
pub fn of_history() -> Vec<(Routes, Policy)> {
    vec![
        (routes!(append::append, list::list), Policy::JsonOrUpload),
        (routes!(upload::append_many), Policy::JsonOrUpload),
        (routes!(export::export), Policy::Rows),
        (routes!(page::page), Policy::Json),
        (routes!(item::one), Policy::Json),
    ]
}

/// The routes of the owners of one or more histories.
pub fn of_owners() -> Vec<(Routes, Policy)> {
    vec![(routes!(owners::list), Policy::Json), (routes!(owners::summary), Policy::Json)]
}

/// The routes of page views.
pub fn of_page_views() -> Vec<(Routes, Policy)> {
    vec![
        (routes!(count::count, reads::series), Policy::Json),
        (routes!(reads::bucket), Policy::Json),
        (routes!(reads::top), Policy::Json),
        (routes!(preallocate::preallocate), Policy::Json),
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
    let mut router = Router::new();
    let mut mount =
        |routes: Routes, policy, path: &dyn Fn(&str) -> String, with: &dyn Fn(Method) -> Method| {
            let (_, paths, methods) = admission.around(routes, policy);
            let address = paths.paths.keys().next().expect("each route has an address");
            router = std::mem::take(&mut router).route(&path(address), with(methods));
        };
    let engines = store.histories();
    for engine in engines {
        let names = Names::of(engine.definition());
        for (routes, policy) in of_history() {
            let history = || Extension(HistoryOf(engine.clone()));
            mount(routes, policy, &|path| names.fill(path), &|methods| methods.layer(history()));
        }
    }
    for (index, first) in engines.iter().enumerate() {
        let owners = &first.definition().owner.collection;
        let same = |engine: &&Engine| engine.definition().owner.collection == *owners;
        if engines[..index].iter().any(|engine| same(&engine)) {
            continue;
        }
        let of_owner: Arc<[_]> = engines.iter().filter(same).cloned().collect();
        let names = Names::of(first.definition());
        for (routes, policy) in of_owners() {
            let histories = || Extension(HistoriesOf(Arc::clone(&of_owner)));
            mount(routes, policy, &|path| names.fill(path), &|methods| methods.layer(histories()));
        }
    }
    for (routes, policy) in of_page_views() {
        mount(routes, policy, &str::to_owned, &|methods| methods);
    }
    router
}

type Method = MethodRouter<Arc<Api>>;
