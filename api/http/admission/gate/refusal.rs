//! The answers of guarded routes: the refusal of a request, with its challenge (RFC 6750) and what its line
//! in the log says, and what all answers have.

use std::borrow::Cow;
use std::sync::Arc;

use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use pagebucket_model::domain::{Principal, Scope};
use pagebucket_model::metric::REFUSALS;

use crate::answer::notes::{AnswerNotes, RefusedFor};
use crate::auth::Refusal;
use crate::problem::{Problem, ProblemKind};

/// The address of the metadata of this server as a resource of OAuth (RFC 9728).
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource";

/// What a client can do that may not erase.
const ERASING_IS_OFF: &str = "This server does not authenticate its clients, so none of them may erase. Nothing was erased. \
                              Run `pagebucket erase`, or start the server with `--allow-erase` or with `--auth`.";

const AUTHORIZATION: HeaderValue = HeaderValue::from_static("authorization");

/// Why a request may not pass.
#[derive(Debug)]
pub(crate) enum Denial {
    /// It has no token.
    NoToken,
    /// Its token or key is not valid.
    Invalid(Cow<'static, str>, Option<Arc<str>>),
    /// The client does not have the scope.
    Scope(Scope),
    /// The client may not use these histories.
    Owner(Scope),
    /// The database or the issuer was asked, and failed; or too many tokens or keys of its address are
    /// verified.
    Failed(Problem),
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(words, name) => Self::Invalid(words, name),
            Refusal::Database(error) => Self::Failed(error.into()),
            Refusal::Issuer => Self::Failed(Problem::new(
                ProblemKind::Overloaded,
                "The issuer did not answer in time whether it has the token's key. Nothing was done.",
            )),
        }
    }
}

/// The refusal of a request.
#[derive(Debug)]
pub struct RefusedRequest {
    problem: Problem,
    /// What is wrong with its token or key (RFC 6750).
    challenge: Option<HeaderValue>,
    /// Its client, if that is known.
    principal: Option<Arc<Principal>>,
    /// What the log says, unless nothing was decided.
    reason: Option<RefusedFor>,
}

impl IntoResponse for RefusedRequest {
    fn into_response(self) -> Response {
        let mut answer = self.problem.into_response();
        if let Some(challenge) = self.challenge {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if let Some(reason) = self.reason {
            AnswerNotes::of_mut(answer.extensions_mut()).refused = Some(reason);
        }
        answer_to(self.principal, answer)
    }
}

/// The answer of a guarded route to this client, whom the log finds in it.
pub(crate) fn answer_to(principal: Option<Arc<Principal>>, mut answer: Response) -> Response {
    answer.headers_mut().append(header::VARY, AUTHORIZATION);
    AnswerNotes::of_mut(answer.extensions_mut()).principal = principal;
    answer
}

impl RefusedRequest {
    /// The refusal of an erasure, by a server whose clients are not authenticated.
    pub(crate) fn erasing_off() -> Self {
        Self::failed(Problem::new(ProblemKind::ErasingOff, ERASING_IS_OFF), None)
    }

    /// The refusal of a request about which nothing was decided.
    pub(crate) fn failed(problem: Problem, principal: Option<Arc<Principal>>) -> Self {
        Self { problem, challenge: None, principal, reason: None }
    }

    /// Refuses a request. `audience` is the name of this server in access tokens.
    pub(crate) fn of(denial: Denial, principal: Option<Arc<Principal>>, audience: Option<&str>) -> Self {
        let no_token = "The request has no token. It is sent as `Authorization: Bearer TOKEN`.";
        let mut name = principal.as_ref().map(|principal| Arc::clone(&principal.name));
        let (reason, problem, error) = match denial {
            Denial::NoToken => ("no_token", Problem::new(ProblemKind::Unauthorized, no_token), String::new()),
            Denial::Invalid(words, known) => {
                name = known;
                let error = format!(", error=\"invalid_token\", error_description=\"{words}\"");
                ("invalid_token", Problem::new(ProblemKind::Unauthorized, words), error)
            }
            Denial::Scope(scope) => {
                let words = format!("The token or key does not have the scope `{scope}`.");
                ("scope", Problem::new(ProblemKind::Forbidden, words), insufficient(scope))
            }
            Denial::Owner(scope) => {
                let words =
                    "The token or key does not allow access to these histories, whether they exist or not.";
                ("owner", Problem::new(ProblemKind::Forbidden, words), insufficient(scope))
            }
            Denial::Failed(problem) => return Self::failed(problem, principal),
        };
        metrics::counter!(REFUSALS, "reason" => reason).increment(1);
        let challenge = format!("Bearer realm=\"pagebucket\"{error}{}", metadata(audience));
        let challenge = HeaderValue::try_from(challenge).expect("words of ours, and an address");
        Self { problem, challenge: Some(challenge), principal, reason: Some(RefusedFor { reason, name }) }
    }
}

/// The parameter of a challenge that says where the metadata are, if this server knows its own address.
fn metadata(audience: Option<&str>) -> String {
    let address = audience.and_then(|audience| audience.parse::<Uri>().ok()).and_then(|audience| {
        let (scheme, authority) = (audience.scheme_str()?, audience.authority()?);
        let path = audience.path().trim_end_matches('/');
        ["http", "https"].contains(&scheme).then(|| format!("{scheme}://{authority}{METADATA}{path}"))
    });
    address.map_or_else(String::new, |address| format!(", resource_metadata=\"{address}\""))
}

fn insufficient(scope: Scope) -> String {
    format!(", error=\"insufficient_scope\", scope=\"{scope}\"")
}
