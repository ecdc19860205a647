//! Keyed requests whose searches are far behind a tail catch up beside the commits.
//!
//! A search is far behind if the catalog knew an old tail and another instance has written many items since.
//! Usually no other attempt has found the record of such a request: then `from` of the record is raised to the
//! tail, and nothing has to be read. Otherwise the whole history after `from` is searched.

use std::sync::Arc;

use super::connection::Connection;
use super::dedup::{Goal, Searches, confirm, keep_looked, scan};
use super::messages::Appends;
use super::request::Request;
use crate::domain::OwnerId;
use crate::store::group_commit::Handle;
use crate::store::{Deadline, Error};

/// Advances the searches of these requests of one owner to `last`, the total of a known tail. Then puts the
/// requests back at the front of the queue, in their order. Other requests are committed meanwhile.
pub(super) async fn catch_up(
    connection: Arc<Connection>,
    owner: OwnerId,
    mut requests: Vec<Request>,
    last: u64,
    committer: Handle<Appends>,
) {
    confirm_from(&connection, &owner, &mut requests, last).await;
    while requests.iter().any(|request| request.is_behind(last)) {
        for request in requests.extract_if(.., |request| request.deadline().passed()) {
            request.fail(0, Error::Unavailable("the search did not end in time".to_owned()).into());
        }
        let Some(deadline) = requests.iter().map(Request::deadline).max() else { return };
        if let Err(error) = search_on(&connection, &owner, &mut requests, last, deadline).await {
            return requests.into_iter().for_each(|request| request.fail(0, error.clone().into()));
        }
    }
    requests.into_iter().rev().for_each(|request| committer.put_back(request));
}

/// Raises `from` of these requests' records to `last`, if that is allowed. Their searches then begin there.
async fn confirm_from(connection: &Connection, owner: &OwnerId, requests: &mut [Request], last: u64) {
    let mut requests: Vec<_> =
        requests.iter_mut().filter_map(|request| Some((request.unseen_record()?, request))).collect();
    let Some(deadline) = requests.iter().map(|(_, request)| request.deadline()).max() else { return };
    let records = requests.iter().map(|(record, _)| *record);
    if confirm(connection, owner, records, last, deadline).await {
        let searches = requests.iter_mut().filter_map(|(_, request)| request.searching());
        searches.for_each(|(search, _)| search.known_through(last));
    }
}

/// Searches one more part of the history and stores in the records how far the searches have come.
async fn search_on(
    connection: &Connection,
    owner: &OwnerId,
    requests: &mut [Request],
    last: u64,
    deadline: Deadline,
) -> Result<(), Error> {
    let searches = requests.iter_mut().filter_map(Request::searching);
    let searches: Searches = searches.map(|(search, placed)| (search.clone(), placed.clone())).collect();
    let found = scan(&connection.source, owner, searches, Goal::Through(last), deadline).await?;
    let ids: Vec<_> =
        requests.iter().filter_map(|request| request.keyed.as_ref()).map(|keyed| keyed.id).collect();
    let looked = ids.into_iter().zip(&found.searches).map(|(id, (search, placed))| (id, search, placed));
    keep_looked(connection, owner, looked, deadline).await;
    for ((search, placed), found) in requests.iter_mut().filter_map(Request::searching).zip(found.searches) {
        (*search, *placed) = found;
    }
    Ok(())
}
