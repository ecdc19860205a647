//! A file inside the binary, and how it is sent.

use std::io::Read;
use std::sync::{Arc, OnceLock};

use axum::Extension;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use sha2::{Digest, Sha256};

use crate::admission::accept;
use crate::answer::notes::AnswerNotes;
use crate::caching::control::EntityTag;
use crate::caching::etag::IfNoneMatch;

pub(crate) const HTML: &str = "text/html; charset=utf-8";
pub(crate) const CSS: &str = "text/css; charset=utf-8";
pub(crate) const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
pub(crate) const PLAIN_TEXT: &str = "text/plain; charset=utf-8";

/// What a page may load and do: scripts, styles, images and answers of this server, and nothing else. One
/// exception is for Swagger UI, and lets no script run: `data:` in `img-src`, because its style sheet holds
/// its icons.
///
/// The browser test shows what another version of Swagger UI would need.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer with a file. Another layer adds `nosniff` to all answers.
const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// Of a file whose path changes with its content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// A file that the binary holds plain or as gzip. The other form is made by the first request for it, and
/// kept.
pub(crate) struct File {
    /// Where it is served.
    pub path: &'static str,
    media_type: &'static str,
    /// The tag of the plain form; that of the compressed form is the same, weak.
    tag: EntityTag,
    embedded: Bytes,
    /// Whether `embedded` is the compressed form.
    is_gzip: bool,
    other: OnceLock<Bytes>,
    policy: HeaderValue,
    /// Whether caches may keep it without asking again: its path changes with its content.
    is_immutable: bool,
}

impl File {
    /// A file that clients ask for again each time.
    pub(crate) fn new(
        path: &'static str,
        media_type: &'static str,
        embedded: Bytes,
        is_gzip: bool,
    ) -> Arc<Self> {
        Arc::new(Self::of(path, media_type, embedded, is_gzip))
    }

    /// A file whose path changes with its content, compressed: caches keep it.
    pub(crate) fn immutable(path: &'static str, media_type: &'static str, gzip: Bytes) -> Arc<Self> {
        Arc::new(Self { is_immutable: true, ..Self::of(path, media_type, gzip, true) })
    }

    /// A page that may ask another origin as well.
    pub(crate) fn page(path: &'static str, text: Bytes, asks: Option<&str>) -> Arc<Self> {
        let page = Self::of(path, HTML, text, false);
        let policy =
            asks.map(|origin| POLICY.replace("connect-src 'self'", &format!("connect-src 'self' {origin}")));
        let policy = policy.and_then(|policy| HeaderValue::try_from(policy).ok());
        Arc::new(Self { policy: policy.unwrap_or(page.policy.clone()), ..page })
    }

    fn of(path: &'static str, media_type: &'static str, embedded: Bytes, is_gzip: bool) -> Self {
        let digest = Sha256::digest(&embedded);
        let tag = EntityTag::new(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let policy = HeaderValue::from_static(POLICY);
        Self { path, media_type, tag, embedded, is_gzip, other: OnceLock::new(), policy, is_immutable: false }
    }

    /// The file in a form that the client accepts, or 304 if the client's copy is current.
    pub(crate) fn answer(&self, headers: &HeaderMap) -> Response {
        let response = match IfNoneMatch::of(headers).met_by(&self.tag) {
            Some(tag) => (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response(),
            None => {
                let gzip = accept::prefers_gzip(headers);
                let content_type = [(header::CONTENT_TYPE, self.media_type)];
                let coding = gzip.then_some([(header::CONTENT_ENCODING, "gzip")]);
                (content_type, [(header::ETAG, self.tag.header())], coding, self.bytes(gzip)).into_response()
            }
        };
        let kept = self.is_immutable.then_some([(header::CACHE_CONTROL, IMMUTABLE)]);
        let policy = [(header::CONTENT_SECURITY_POLICY, self.policy.clone())];
        let notes = AnswerNotes { whole: true, ..AnswerNotes::default() };
        (HEADERS, policy, kept, Extension(notes), response).into_response()
    }

    fn bytes(&self, gzip: bool) -> Bytes {
        if gzip == self.is_gzip {
            return self.embedded.clone();
        }
        let recoded = || {
            let (mut recoded, embedded) = (Vec::new(), &self.embedded[..]);
            let read = match gzip {
                true => GzEncoder::new(embedded, Compression::best()).read_to_end(&mut recoded),
                false => GzDecoder::new(embedded).read_to_end(&mut recoded),
            };
            read.expect("bytes in memory, compressed by us or by the build");
            recoded.into()
        };
        self.other.get_or_init(recoded).clone()
    }
}
