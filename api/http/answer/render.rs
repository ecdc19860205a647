//! Gives every error a problem body, and every long answer room in memory.

use std::any::Any;
use std::sync::Arc;

use axum::body::HttpBody;
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};

use super::logged;
use super::memory::{Account, OWN_WITHOUT_PERMIT, WithPermit};
use super::notes::AnswerNotes;
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

/// Takes room for an answer, and notes it there; returns whether there was any. An answer that says
/// what a request has done always has room.
fn has_room(response: &mut Response, account: &Account, is_safe: bool) -> bool {
    let length = response.body().size_hint().exact().map(|length| length as usize);
    let notes = AnswerNotes::of_mut(response.extensions_mut());
    let own = notes.permit.as_ref().map_or(OWN_WITHOUT_PERMIT, WithPermit::own);
    if length.is_some_and(|length| length <= own) {
        return true;
    }
    let room = if is_safe { account.room(own, length) } else { Some(account.overdraw(own, length)) };
    let Some(room) = room else { return false };
    notes.memory = Some(Arc::new(room));
    true
}

/// The layer that renders a problem knows its request, and writes its body.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut answer = self.kind().spec().status.into_response();
        AnswerNotes::of_mut(answer.extensions_mut()).problem = Some(self);
        answer
    }
}

fn render(response: &mut Response, uri: &Uri, id: &RequestId) {
    let status = response.status();
    let notes = AnswerNotes::of_mut(response.extensions_mut());
    let problem = match notes.problem.take() {
        Some(problem) => problem.logged(),
        None => match ProblemKind::of_status(status) {
            Some(kind) => Problem::new(kind, kind.spec().about),
            None => return,
        },
    };
    notes.problem_kind = Some(problem.kind());
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

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;
    use crate::problem::MEDIA_TYPE;

    #[test]
    fn a_problem_gets_its_body_where_its_request_is_known() {
        let answer = Problem::new(ProblemKind::Overloaded, "Too much at once.").into_response();
        assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
        let id = RequestId::default();
        let answer = rendered(answer, &Uri::from_static("/v1/live?watch=x"), &id, &Account::default(), true);
        let problem = Problem::new(ProblemKind::Overloaded, "Too much at once.");
        let body = problem.body(&[("instance", "/v1/live"), ("requestId", id.as_str())]).to_string();
        assert_eq!(answer.body().size_hint().exact(), Some(body.len() as u64));
        assert_eq!(answer.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
        assert!(answer.headers().contains_key(header::RETRY_AFTER));
    }
}
