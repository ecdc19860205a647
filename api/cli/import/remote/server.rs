//! A running server, and the beginning of an upload to it.

use std::convert::Infallible;
use std::str::FromStr;

use axum::body::Bytes;
use axum::http::{HeaderMap, Request, Response, StatusCode, Uri, header};
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming as Answer};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::domain::IdempotencyKey;
use crate::http::{PROBLEM_JSON, ProblemKind};

const MEDIA_TYPE: &str = "application/x-ndjson";

/// The longest answer of a server that takes no upload.
const LONGEST_REFUSAL: usize = 1024 * 1024;

/// Where a server is.
#[derive(Debug, Clone)]
pub(in crate::cli::import) struct Server {
    host: String,
    port: u16,
    /// Without a slash at its end.
    path: String,
}

impl FromStr for Server {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be an address such as http://127.0.0.1:8080".to_owned();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err("must begin with http://: pagebucket speaks no TLS; behind a server that does, send to pagebucket itself, or import to the database".to_owned()),
            _ => return Err(wrong()),
        }
        if uri.query().is_some() || uri.authority().is_none_or(|authority| authority.as_str().contains('@')) {
            return Err(wrong());
        }
        let host = uri.host().ok_or_else(wrong)?.to_owned();
        let path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { host, port: uri.port_u16().unwrap_or(80), path })
    }
}

/// Why there are no more outcomes.
pub(super) struct Broken {
    /// For the user.
    pub(super) words: String,
    /// Whether rows without an outcome are surely not stored.
    pub(super) known: bool,
    /// Whether it may be otherwise in a while.
    pub(super) passing: bool,
    /// Whether something at the address has answered.
    pub(super) answered: bool,
}

impl Broken {
    /// The server has ended an upload, with this problem, and said all there is to say.
    pub(super) fn ended(problem: &Value) -> Self {
        let Some(kind) = kind(problem) else {
            return Self::off("the answer ends with a line that is not a server's".to_owned());
        };
        Self {
            words: format!("the server says: {}", words(problem)),
            known: true,
            passing: passing(kind.spec().status),
            answered: true,
        }
    }

    /// It has not said all.
    pub(super) fn off(words: String) -> Self {
        Self { words, known: false, passing: true, answered: true }
    }

    /// An answer without outcomes. A problem of the server's says whether the request stored nothing. Anything else may
    /// come from a proxy after rows went through it, and says nothing of them.
    async fn refused(answer: Response<Answer>) -> Self {
        let status = answer.status();
        let mut problem = Value::Null;
        if is(answer.headers(), PROBLEM_JSON) {
            let body = Limited::new(answer.into_body(), LONGEST_REFUSAL).collect().await;
            let body = body.map(|body| body.to_bytes()).unwrap_or_default();
            problem = serde_json::from_slice(&body).unwrap_or_default();
        }
        let kind = kind(&problem).filter(|kind| kind.spec().status == status);
        let words = match kind {
            Some(_) => format!("the server answers {status}: {}", words(&problem)),
            None => format!("the answer is {status}, and not a pagebucket server's"),
        };
        let known = kind.is_some_and(ProblemKind::says_nothing_was_stored);
        Self { words, known, passing: passing(status), answered: true }
    }
}

/// The kind of a problem, if it is one of a server's.
pub(super) fn kind(problem: &Value) -> Option<ProblemKind> {
    problem["type"].as_str().and_then(ProblemKind::of_type)
}

/// Whether a body is of this media type.
fn is(headers: &HeaderMap, media_type: &str) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}

/// Whether who asks again may get another answer.
fn passing(status: StatusCode) -> bool {
    status.is_server_error() || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

/// Begins an upload, and waits for the head of its answer.
pub(super) async fn begin(
    server: &Server,
    key: Option<&IdempotencyKey>,
    lines: mpsc::Receiver<Bytes>,
) -> Result<Answer, Broken> {
    let Server { host, port, path } = server;
    let failed = |error: &dyn std::fmt::Display| Broken {
        words: format!("http://{host}:{port} does not answer: {error}"),
        known: true,
        passing: true,
        answered: false,
    };
    let address = (host.trim_matches(['[', ']']), *port);
    let stream = TcpStream::connect(address).await.map_err(|error| failed(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
    // Its end is that of the answer.
    tokio::spawn(connection);
    let lines = stream::unfold(lines, async |mut lines| Some((lines.recv().await?, lines)));
    let body = StreamBody::new(lines.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))));
    let mut request = Request::post(format!("{path}/v1/trades"))
        .header(header::HOST, format!("{host}:{port}"))
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .header(header::ACCEPT, MEDIA_TYPE);
    if let Some(key) = key {
        request = request.header("idempotency-key", key.as_str());
    }
    let request = request.body(Box::pin(body)).map_err(|error| failed(&error))?;
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(|error| Broken { known: false, ..failed(&error) })?;
    if answer.status() == StatusCode::OK && is(answer.headers(), MEDIA_TYPE) {
        return Ok(answer.into_body());
    }
    Err(Broken::refused(answer).await)
}

/// What a problem says, in one sentence.
pub(super) fn words(problem: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_end_matches('.').to_owned();
    let errors = problem["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let errors: Vec<_> = errors
        .iter()
        .map(|error| format!("{} {}", text(&error["pointer"]), text(&error["detail"])))
        .collect();
    if errors.is_empty() { text(&problem["detail"]) } else { errors.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_address() {
        let server: Server = "http://[::1]:8080/behind/".parse().unwrap();
        assert_eq!((&server.host[..], server.port, &server.path[..]), ("[::1]", 8080, "/behind"));
        assert_eq!("http://example.org".parse::<Server>().unwrap().port, 80);
        for (text, part) in [
            ("https://example.org", "no TLS"),
            ("example.org:8080", "such as"),
            ("ftp://example.org", "such as"),
            ("http://u:p@example.org", "such as"),
            ("http://example.org/?a", "such as"),
            ("", "such as"),
        ] {
            let sentence = text.parse::<Server>().unwrap_err();
            assert!(sentence.contains(part), "{text}: {sentence}");
        }
    }
}
