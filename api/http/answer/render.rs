//! Gives every error a problem body, and every long answer room in memory.

use std::any::Any;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};

use super::logged;
use super::memory::{Account, OWN_WITHOUT_PERMIT, WithPermit};
use super::request_id::RequestId;
use crate::problem::{Problem, ProblemKind};

/// Gives every error a problem body: our problems, panics, and errors of the framework, which are empty or
/// text. Answers without `Cache-Control` get `no-cache`. An answer for which there is no memory becomes a
/// problem, too.
pub(crate) fn rendered(
    mut response: Response,
    uri: &Uri,
    id: &RequestId,
    account: &Account,
    is_safe: bool,
) -> Response {
    render(&mut response, uri, id);
    // After the body of a problem is written: it counts like any other.
    if !has_room(&mut response, account, is_safe) {
        let words = "The memory for answers is full of answers that clients have not taken.";
        response = Problem::new(ProblemKind::Overloaded, words).into_response();
        render(&mut response, uri, id);
    }
    let kept = response.headers_mut().entry(header::CACHE_CONTROL);
    kept.or_insert(HeaderValue::from_static("no-cache"));
    response
}

/// Takes room for an answer, whose extension it becomes; returns whether there was any. An answer that says
/// what a request has done always has room.
fn has_room(response: &mut Response, account: &Account, is_safe: bool) -> bool {
    let length = response.body().size_hint().exact().map(|length| length as usize);
    let own = response.extensions().get().map_or(OWN_WITHOUT_PERMIT, WithPermit::own);
    if length.is_some_and(|length| length <= own) {
        return true;
    }
    let room = if is_safe { account.room(own, length) } else { Some(account.overdraw(own, length)) };
    let Some(room) = room else { return false };
    response.extensions_mut().insert(Arc::new(room));
    true
}

fn render(response: &mut Response, uri: &Uri, id: &RequestId) {
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => problem.logged(),
        None => match ProblemKind::of_status(response.status()) {
            Some(kind) => Problem::new(kind, kind.spec().about),
            None => return,
        },
    };
    problem.render(response, &[("instance", logged::path(uri.path())), ("requestId", id.as_str())]);
}

/// A panic of ours as a 500, with the panic in the log.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Response {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = words.unwrap_or("without a message"), "a handler panicked");
    Problem::new(ProblemKind::Internal, "The server's log has the details under this request id.")
        .into_response()
}
