//! A running server, and the beginning of an upload to it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use pagebucket_http::http_client::{cause, client, whole};
use pagebucket_http::{PROBLEM_JSON, ProblemKind};
use pagebucket_model::domain::{IdempotencyKey, Invalid};
use pagebucket_streams::ingest::End;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Body, Client, Response, StatusCode, Url};
use serde_json::Value;
use tokio::sync::mpsc;

const MEDIA_TYPE: &str = "application/x-ndjson";

/// Longest time that a server may ask an import to wait before it tries again.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Longest answer of a server that takes no upload that is read, in bytes.
const LONGEST_REFUSAL: usize = 1024 * 1024;

/// The address of a server, as the value of a flag.
///
/// # Errors
/// It is none.
pub(crate) fn address(text: &str) -> Result<Url, Invalid> {
    let url = Url::parse(text).ok().filter(|url| {
        let extra = url.query().is_some() || url.fragment().is_some();
        let user = !url.username().is_empty() || url.password().is_some();
        matches!(url.scheme(), "http" | "https") && !extra && !user
    });
    url.ok_or_else(|| Invalid::new("must be an address such as https://example.org or http://127.0.0.1:8080"))
}

/// Whether the server is on this machine, by its address.
pub(crate) fn is_local(server: &Url) -> bool {
    let host = server.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// A token or a key. It is a secret, so it is never shown.
///
/// Any text is one: an error of clap would repeat it.
#[derive(Clone, derive_more::Debug, derive_more::From)]
#[debug("Token(..)")]
pub(crate) struct Token(String);

impl Token {
    /// The header that presents it.
    ///
    /// # Errors
    /// It has other characters than visible ones of ASCII.
    pub(crate) fn header(&self) -> Result<HeaderValue, Invalid> {
        let visible = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_graphic());
        let header = visible.then(|| HeaderValue::try_from(format!("Bearer {}", self.0)).ok()).flatten();
        let rule = || Invalid::new("--token must be visible ASCII characters, without spaces");
        let mut header = header.ok_or_else(rule)?;
        header.set_sensitive(true);
        Ok(header)
    }
}

/// A client that presents this token to the server, if there is one. Each upload has a connection of its own.
/// No proxy sees a token that is sent to this machine by http.
///
/// # Errors
/// It cannot be made: how the import ends.
pub(crate) fn uploader(server: &Url, token: Option<HeaderValue>) -> Result<Client, End> {
    let direct = token.is_some() && server.scheme() == "http" && is_local(server);
    let headers = token.map(|token| (AUTHORIZATION, token)).into_iter().collect();
    let made = client(|builder| {
        let builder = builder.pool_max_idle_per_host(0).default_headers(headers);
        if direct { builder.no_proxy() } else { builder }
    });
    made.map_err(|error| End::Server(error.to_string()))
}

/// The address of the uploads of a history.
pub(crate) fn uploads(server: &Url, history: &str) -> Url {
    let mut url = server.clone();
    url.set_path(&format!("{}/v1/{history}/upload.ndjson", url.path().trim_end_matches('/')));
    url
}

/// Why there are no more outcomes.
pub(crate) struct Broken {
    /// For the user.
    pub(crate) words: String,
    /// Whether rows without an outcome are certainly not stored.
    pub(crate) known: bool,
    /// Whether another upload may succeed.
    pub(crate) passing: bool,
    /// Whether something at the address has answered.
    pub(crate) answered: bool,
    /// How long the server asks to wait.
    pub(crate) wait: Duration,
}

impl Broken {
    /// The server has ended an upload with this problem, and every outcome has been sent.
    pub(crate) fn ended(problem: &Value) -> Self {
        let Some(kind) = kind(problem) else {
            return Self::off("the answer ends with a line that is not a pagebucket server's".to_owned());
        };
        let words = format!("the server says: {}", words(problem));
        Self { known: true, passing: passing(kind.spec().status), ..Self::off(words) }
    }

    /// The answer has stopped before its end.
    pub(crate) fn off(words: String) -> Self {
        Self { words, known: false, passing: true, answered: true, wait: Duration::ZERO }
    }

    /// An answer without outcomes. A problem of a server says whether the request stored anything. Any other
    /// answer may come from a proxy after rows went through it, and says nothing about them.
    async fn refused(answer: Response) -> Self {
        let (status, wait) = (answer.status(), wait(answer.headers()));
        let mut problem = Value::Null;
        if is(answer.headers(), PROBLEM_JSON) {
            // Nothing of a body that is too long, cut or not JSON.
            let body = whole(answer, LONGEST_REFUSAL).await.ok().flatten();
            problem = body.and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
        }
        let kind = kind(&problem).filter(|kind| kind.spec().status == status);
        let words = match kind {
            Some(_) => format!("the server answers {status}: {}{}", words(&problem), advice(status)),
            None => format!("the answer is {status}, and does not come from a pagebucket server"),
        };
        let known = kind.is_some_and(|kind| kind.spec().nothing_stored);
        Self { known, passing: passing(status), wait, ..Self::off(words) }
    }
}

/// The kind of a problem, if it is one of a pagebucket server.
pub(crate) fn kind(problem: &Value) -> Option<ProblemKind> {
    problem["type"].as_str().and_then(ProblemKind::of_type)
}

/// Whether a body is of this media type.
fn is(headers: &HeaderMap, media_type: &str) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case(media_type))
}

/// Whether the same request may get another answer later.
fn passing(status: StatusCode) -> bool {
    status.is_server_error() || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
}

/// What the user may do about an answer.
fn advice(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "; a token is given with --token or PAGEBUCKET_TOKEN",
        StatusCode::FORBIDDEN => "; an import needs a token with the scope `append`, for all owners",
        _ => "",
    }
}

/// How long the server asks to wait.
fn wait(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0)).min(LONGEST_WAIT)
}

/// Begins an upload to this address, and waits for the head of its answer.
pub(crate) async fn begin(
    client: &Client,
    url: Url,
    key: Option<&IdempotencyKey>,
    mut lines: mpsc::Receiver<Bytes>,
) -> Result<Response, Broken> {
    let server = url.origin().ascii_serialization();
    let lines = stream::poll_fn(move |context| lines.poll_recv(context));
    let body = StreamBody::new(lines.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))));
    let mut request =
        client.post(url).header(CONTENT_TYPE, MEDIA_TYPE).header(ACCEPT, MEDIA_TYPE).body(Body::wrap(body));
    if let Some(key) = key {
        request = request.header("idempotency-key", key.as_str());
    }
    let answer = request.send().await.map_err(|error| {
        let words = format!("{server} does not answer: {}", cause(&error));
        Broken { known: error.is_connect() || error.is_builder(), answered: false, ..Broken::off(words) }
    })?;
    if answer.status() == StatusCode::OK && is(answer.headers(), MEDIA_TYPE) {
        return Ok(answer);
    }
    Err(Broken::refused(answer).await)
}

/// What a problem says, in one sentence.
pub(crate) fn words(problem: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_end_matches('.').to_owned();
    let error = |error: &Value| format!("{} {}", text(&error["pointer"]), text(&error["detail"]));
    let errors: Vec<_> = problem["errors"].as_array().into_iter().flatten().map(error).collect();
    if errors.is_empty() { text(&problem["detail"]) } else { errors.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::from("sesame".to_owned());
        let header = token.header().unwrap();
        assert_eq!(header, "Bearer sesame");
        assert!(!format!("{token:?} {header:?}").contains("sesame"));
        for text in ["", "open sesame", "sesame\n", "s\u{e9}same"] {
            assert!(Token::from(text.to_owned()).header().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_server_is_an_address() {
        for (text, uploads) in [
            ("http://[::1]:8080/behind/", "http://[::1]:8080/behind/v1/trades/upload.ndjson"),
            ("https://example.org", "https://example.org/v1/trades/upload.ndjson"),
        ] {
            assert_eq!(super::uploads(&address(text).unwrap(), "trades").as_str(), uploads);
        }
        for text in [
            "example.org:8080",
            "ftp://example.org",
            "http://u:p@example.org",
            "http://example.org/?a",
            "http://example.org/#a",
            "http://",
            "",
        ] {
            let Invalid(sentence) = address(text).unwrap_err();
            assert!(sentence.contains("such as"), "{text}: {sentence}");
        }
    }
}
