//! The map of the API: one expression mounts a route *and* documents it, and its row says who may use it. The
//! routes of a history are templates, which its definition fills ([`Names`]).

pub(crate) mod names;

use std::sync::Arc;

use axum::Router;
use axum::middleware::map_response;
use pagebucket_engine::{Engine, Store};
use pagebucket_model::domain::Scope::{Admin, Append, List, Metrics, Read, Views};
use utoipa::openapi::Paths;
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use super::admission::accept::{CSV, JSON, NDJSON};
use super::admission::clients::Clients;
use super::admission::gate::Access::{self, Erasing, Everyone, OfAllOwners, OfOwner, OfWatched, With};
use super::admission::gate::Gate;
use super::admission::guard::Guard;
use super::admission::layer::{Admission, Policy};
use super::answer::{log, measures};
use super::resources::history::live::several;
use super::resources::history::{append, export, list, live, page, summary, upload};
use super::resources::page_views::{reads, writes};
use super::resources::{erasure, owners, probes};
use super::state::Api;
use names::Names;

/// Routes of one address, with their documentation.
pub(crate) type Routes = UtoipaMethodRouter<Arc<Api>>;

/// A row of the table: routes of one address, and who may use them.
pub(crate) type RouteRow = (Routes, Access);

/// Rows of the routes under `/v1`, each with what it answers.
pub(crate) type Admitted = Vec<(RouteRow, Policy)>;

/// The routes of one history.
pub(crate) fn of_history() -> Admitted {
    vec![
        ((routes!(append::append), OfOwner(Append)), Policy::Json),
        ((routes!(append::append_batch), OfOwner(Append)), Policy::Json),
        ((routes!(list::list), OfOwner(Read)), Policy::Listing),
        ((routes!(upload::of_one), OfOwner(Append)), Policy::Upload(JSON)),
        ((routes!(upload::of_one_with_outcomes), OfOwner(Append)), Policy::Upload(NDJSON)),
        ((routes!(upload::of_many), OfAllOwners(Append)), Policy::Upload(JSON)),
        ((routes!(upload::of_many_with_outcomes), OfAllOwners(Append)), Policy::Upload(NDJSON)),
        ((routes!(export::ndjson), OfOwner(Read)), Policy::Rows(NDJSON)),
        ((routes!(export::csv), OfOwner(Read)), Policy::Rows(CSV)),
        ((routes!(live::live), OfOwner(Read)), Policy::Live),
        ((routes!(live::owners::owners), OfAllOwners(List)), Policy::Live),
        ((routes!(summary::summary), OfOwner(Read)), Policy::Json),
        ((routes!(summary::of_all::of_all), OfAllOwners(List)), Policy::Json),
        ((routes!(page::page), OfOwner(Read)), Policy::Json),
        ((routes!(page::item), OfOwner(Read)), Policy::Json),
    ]
}

/// The routes of the owners of one or more histories.
pub(crate) fn of_owners() -> Admitted {
    vec![
        ((routes!(owners::list), OfAllOwners(List)), Policy::Json),
        ((routes!(owners::summary), OfOwner(Read)), Policy::Json),
        ((routes!(erasure::erase), Erasing), Policy::Json),
    ]
}

/// The routes of several histories, of whatever definitions.
pub(crate) fn of_histories() -> Admitted {
    vec![((routes!(several::several), OfWatched(Read)), Policy::Live)]
}

/// The routes of page views.
pub(crate) fn of_page_views() -> Admitted {
    vec![
        ((routes!(writes::count, reads::series), With(Views)), Policy::Json),
        ((routes!(writes::count_batch), With(Views)), Policy::Json),
        ((routes!(writes::upload), With(Views)), Policy::Json),
        ((routes!(reads::bucket), With(Views)), Policy::Json),
        ((routes!(reads::top), With(Views)), Policy::Json),
        ((routes!(writes::preallocate), With(Admin)), Policy::Json),
    ]
}

/// The routes for operators. They are not behind the admission layer.
pub(crate) fn probes() -> Vec<RouteRow> {
    vec![
        (routes!(probes::livez), Everyone),
        (routes!(probes::readyz), Everyone),
        (routes!(probes::metrics), With(Metrics)),
    ]
}

/// The routes for operators, each behind this gate.
pub(crate) fn operators(gate: &Gate, clients: &Clients) -> Router<Arc<Api>> {
    probes().into_iter().fold(Router::new(), |router, ((_, paths, methods), access)| {
        let guard = Guard::layer(gate, clients, gate.open.access(access));
        measures::begin(methods_of(&paths), address(&paths));
        router.route(address(&paths), methods.layer((map_response(log::of_probe), guard)))
    })
}

/// The routes under `/v1`, each behind the admission layer.
pub(crate) fn v1(store: &Store, admission: &Arc<Admission>) -> Router<Arc<Api>> {
    let mounted = |rows: Admitted, histories: Option<&Arc<[Engine]>>| {
        let first = histories.and_then(|histories| histories.first());
        let names = first.map(|engine| Names::of(engine.definition()));
        rows.into_iter().fold(Router::new(), |router, (((_, paths, methods), access), policy)| {
            let address = address(&paths);
            let address = names.as_ref().map_or_else(|| address.to_owned(), |names| names.fill(address));
            measures::begin(methods_of(&paths), &address);
            router.route(&address, methods.layer(admission.layer(policy, access, histories)))
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

/// The rows of these routes, without what they answer.
pub(crate) fn rows(routes: Admitted) -> impl Iterator<Item = RouteRow> {
    routes.into_iter().map(|(row, _)| row)
}

/// The methods of a row.
fn methods_of(paths: &Paths) -> impl Iterator<Item = &'static str> {
    let route = paths.paths.values().next().expect("each row has an address");
    let methods = [("GET", &route.get), ("POST", &route.post), ("DELETE", &route.delete)];
    methods.into_iter().filter(|(_, operation)| operation.is_some()).map(|(method, _)| method)
}

/// The address of a row.
pub(crate) fn address(paths: &Paths) -> &str {
    paths.paths.keys().next().expect("each row has an address")
}
