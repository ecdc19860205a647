//! Pages for people: a home page, the problems, the OpenAPI document, Swagger UI. All are files inside the binary, and
//! are sent plain or as gzip. Each is compressed once: Swagger UI by the build, the others by the first request.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read;
use std::sync::{Arc, LazyLock, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::Config;

use super::api::Api;
use super::cache::etag::{EntityTag, IfNoneMatch};
use super::middleware::accept;
use super::middleware::compression::Whole;
use super::openapi;
use super::problem::{Kind, Problem};
use crate::definition::{Definition, Definitions};

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of Swagger UI that its page loads.
const SWAGGER_UI: [(&str, &str, &str); 8] = [
    ("/docs/", "index.html", HTML),
    ("/docs/index.css", "index.css", CSS),
    ("/docs/swagger-ui.css", "swagger-ui.css", CSS),
    ("/docs/swagger-ui-bundle.js", "swagger-ui-bundle.js", JAVASCRIPT),
    ("/docs/swagger-ui-standalone-preset.js", "swagger-ui-standalone-preset.js", JAVASCRIPT),
    ("/docs/swagger-initializer.js", "swagger-initializer.js", JAVASCRIPT),
    ("/docs/favicon-16x16.png", "favicon-16x16.png", "image/png"),
    ("/docs/favicon-32x32.png", "favicon-32x32.png", "image/png"),
];

/// What a page may load and do: scripts, styles, images and answers of this server, and nothing else. Two exceptions,
/// both for Swagger UI; neither lets a script run:
///
/// - The hash in `style-src` is of the one `<style>` that it writes, for its logo.
/// - `data:` in `img-src`: its style sheet holds its icons.
///
/// The browser test shows what another version of Swagger UI would need.
const POLICY: &str = "default-src 'none'; script-src 'self'; \
                      style-src 'self' 'sha256-RL3ie0nH+Lzz2YNqQN83mnU0J1ot4QL7b99vMdIX99w='; \
                      img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of every answer of this file. Another layer adds `nosniff` to all answers.
const HEADERS: [(HeaderName, HeaderValue); 3] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::VARY, HeaderValue::from_static("accept-encoding")),
];

/// A route for each file.
pub fn router(definitions: &Definitions) -> Router<Arc<Api>> {
    let to_docs = get(async || Redirect::to("/docs/"));
    let router = Router::new().route("/docs", to_docs);
    let router = FILES.iter().fold(router, |router, file| {
        router.route(file.path, get(async move |headers: HeaderMap| file.answer(&headers)))
    });
    let of_histories = [
        ("/", HTML, home_page(definitions)),
        ("/openapi.json", "application/json", openapi::document(definitions)),
    ];
    of_histories.into_iter().fold(router, |router, (path, media_type, text)| {
        let file = Arc::new(File::new(path, media_type, text.into(), false));
        router.route(path, get(async move |headers: HeaderMap| file.answer(&headers)))
    })
}

/// The files that are the same on every server.
static FILES: LazyLock<Vec<File>> = LazyLock::new(|| {
    let own = [
        ("/site.css", CSS, include_str!("../../web/site.css").into()),
        ("/home.js", JAVASCRIPT, include_str!("../../web/home.js").into()),
        ("/problems", HTML, problem_page().into()),
    ];
    let own = own.into_iter().map(|(path, media_type, bytes)| File::new(path, media_type, bytes, false));
    // The validator would be an external service.
    let config = Arc::new(Config::from("/openapi.json").validator_url("none"));
    let swagger_ui = SWAGGER_UI.into_iter().map(|(path, name, media_type)| {
        let file = utoipa_swagger_ui::serve(name, Arc::clone(&config)).ok().flatten();
        let file = file.expect("one of the files that this program is built with");
        let bytes = match file.bytes {
            Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            Cow::Owned(bytes) => bytes.into(),
        };
        File::new(path, media_type, bytes, file.gzpipped)
    });
    own.chain(swagger_ui).collect()
});

/// A file that the binary holds plain or as gzip. The other form is made by the first request for it, and kept.
struct File {
    path: &'static str,
    media_type: &'static str,
    /// The tag of the plain form; that of the compressed form is the same, weak.
    tag: EntityTag,
    embedded: Bytes,
    embedded_is_gzip: bool,
    other: OnceLock<Bytes>,
}

impl File {
    fn new(path: &'static str, media_type: &'static str, embedded: Bytes, embedded_is_gzip: bool) -> Self {
        let digest = Sha256::digest(&embedded);
        let tag = EntityTag::new(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        Self { path, media_type, tag, embedded, embedded_is_gzip, other: OnceLock::new() }
    }

    /// The file in a form that the client accepts, or 304 if the client's copy is current.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let mut response = match IfNoneMatch::of(headers).met_by(&self.tag) {
            Some(tag) => (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response(),
            None => {
                let gzip = accept::prefers_gzip(headers);
                let content_type = HeaderValue::from_static(self.media_type);
                let head = [(header::CONTENT_TYPE, content_type), (header::ETAG, self.tag.header())];
                let mut response = (head, self.bytes(gzip)).into_response();
                if gzip {
                    let gzip = HeaderValue::from_static("gzip");
                    response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
                }
                response
            }
        };
        response.headers_mut().extend(HEADERS);
        response.extensions_mut().insert(Whole);
        response
    }

    fn bytes(&self, compressed: bool) -> Bytes {
        if compressed == self.embedded_is_gzip {
            return self.embedded.clone();
        }
        let whole = |mut bytes: Box<dyn Read + '_>| {
            let mut all = Vec::new();
            bytes.read_to_end(&mut all).expect("bytes in memory, compressed by us or by the build");
            Bytes::from(all)
        };
        let embedded = &self.embedded[..];
        let recoded = || match compressed {
            true => whole(Box::new(GzEncoder::new(embedded, Compression::best()))),
            false => whole(Box::new(GzDecoder::new(embedded))),
        };
        self.other.get_or_init(recoded).clone()
    }
}

/// The answer at every other address.
pub async fn nothing_here() -> impl IntoResponse {
    Problem::new(
        Kind::NotFound,
        "Nothing is served at this address. The API begins at /v1, its documentation at /docs/.",
    )
}

/// Shows how to append to each history.
fn home_page(definitions: &Definitions) -> String {
    let how = |definition: &Arc<Definition>| {
        let example = openapi::new_item(definition).unwrap_or_default().to_string().replace('\'', "'\\''");
        let example = example.replace('&', "&amp;").replace('<', "&lt;");
        openapi::names(definition).with([("newItem", example)]).fill(include_str!("../../web/history.html"))
    };
    let histories: String = definitions.iter().map(how).collect();
    include_str!("../../web/index.html").replace("<!-- histories -->\n", &histories)
}

fn problem_page() -> String {
    let mut rows = String::new();
    for kind in Kind::ALL {
        let spec = kind.spec();
        let about = spec.about.split('`').enumerate().fold(String::new(), |mut html, (index, part)| {
            let tags = if index % 2 == 1 { ("<code>", "</code>") } else { ("", "") };
            // Writing to a String cannot fail.
            let _ = write!(html, "{}{part}{}", tags.0, tags.1);
            html
        });
        let _ = writeln!(
            rows,
            "<section id=\"{slug}\"><h2>{title}</h2><p class=\"status\">{status} <code>{slug}</code></p><p>{about}</p></section>",
            slug = spec.slug,
            title = spec.title,
            status = spec.status.as_u16(),
        );
    }
    include_str!("../../web/problems.html").replace("<!-- problems -->", &rows)
}
