//! Pages for people: a home page, the problems, the OpenAPI document, Swagger UI, an icon, and the JSON Schema of
//! definitions. All are files inside the binary, and are sent plain or as gzip. Each is compressed once: Swagger UI by the
//! build, the others by the first request.

use std::io::Read;
use std::sync::{Arc, LazyLock, OnceLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Extension, Json, Router};
use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder};
use pagebucket_model::definition::{Definition, Definitions, JSON_SCHEMA};
use pagebucket_model::domain::Scope;
use serde_json::json;
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::Config;

use super::caching::etag::{EntityTag, IfNoneMatch};
use super::middleware::accept;
use super::middleware::compression::Whole;
use super::middleware::gate::{Gate, METADATA};
use super::openapi::{self, Features, Filler, Version};
use super::problem::{Problem, ProblemKind, Spec};
use super::state::Api;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The files of Swagger UI that its page, `web/docs.html`, loads.
const SWAGGER_UI: [(&str, &str, &str); 4] = [
    ("/docs/index.css", "index.css", CSS),
    ("/docs/swagger-ui.css", "swagger-ui.css", CSS),
    ("/docs/swagger-ui-bundle.js", "swagger-ui-bundle.js", JAVASCRIPT),
    ("/docs/swagger-ui-standalone-preset.js", "swagger-ui-standalone-preset.js", JAVASCRIPT),
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

/// Makes a file that depends on what the histories are, and on what the server does.
type MakeFile = fn(&Definitions, Features) -> Arc<File>;

/// A route for each file.
pub fn router(definitions: &Definitions, gate: &Gate) -> Router<Arc<Api>> {
    let features = Features::of(gate);
    // Those of the histories are made when they are first asked for: few clients do, and a start waits for nothing.
    let of_histories: [(&'static str, MakeFile); 3] = [
        ("/", |definitions, _| File::new("/", HTML, home_page(definitions).into(), false)),
        ("/openapi.json", |definitions, features| {
            document("/openapi.json", definitions, Version::V3_1, features)
        }),
        ("/openapi-3.0.json", |definitions, features| {
            document("/openapi-3.0.json", definitions, Version::V3_0, features)
        }),
    ];
    let to_docs = Router::new().route("/docs", get(async || Redirect::to("/docs/")));
    of_histories.into_iter().fold(to_docs.merge(served(&FILES)), |router, (path, make)| {
        let made = Arc::new((definitions.clone(), OnceLock::<Arc<File>>::new()));
        let answer = async move |headers: HeaderMap| {
            let (definitions, file) = &*made;
            file.get_or_init(|| make(definitions, features)).answer(&headers)
        };
        router.route(path, get(answer))
    })
}

fn document(
    path: &'static str,
    definitions: &Definitions,
    version: Version,
    features: Features,
) -> Arc<File> {
    let document = openapi::document_of(definitions, version, features);
    File::new(path, "application/json", document.into(), false)
}

/// The icon of all pages. It needs no token: a browser asks for it beside every page, and sends none.
pub fn icons() -> Router<Arc<Api>> {
    served(&*ICONS)
}

/// A route for each of these files.
fn served(files: &[Arc<File>]) -> Router<Arc<Api>> {
    files.iter().cloned().fold(Router::new(), |router, file| {
        router.route(file.path, get(async move |headers: HeaderMap| file.answer(&headers)))
    })
}

/// The metadata of this server as a resource of OAuth (RFC 9728), if it accepts tokens.
pub fn metadata(gate: &Gate) -> Router<Arc<Api>> {
    let Some(jwt) = gate.jwt() else {
        return Router::new();
    };
    let metadata = Json(json!({
        "resource": jwt.settings.audience,
        "authorization_servers": [jwt.settings.issuer],
        "scopes_supported": Scope::ALL.map(|scope| scope.to_string()),
        "bearer_methods_supported": ["header"],
        "resource_name": "pagebucket",
    }));
    let answer = async move || metadata.clone();
    // Of a resource with a path, the metadata are below the well-known address (RFC 9728, 3.1).
    let path =
        jwt.settings.audience.parse::<Uri>().map(|audience| audience.path().trim_end_matches('/').to_owned());
    let path = path.ok().filter(|path| !path.is_empty() && !path.contains(['{', '}', ':', '*']));
    let router = Router::new().route(METADATA, get(answer.clone()));
    path.into_iter()
        .fold(router, |router, path| router.route(&format!("{METADATA}{path}"), get(answer.clone())))
}

/// The files that are the same on every server.
static FILES: LazyLock<Vec<Arc<File>>> = LazyLock::new(|| {
    let own = [
        File::new("/site.css", CSS, include_str!("web/site.css").into(), false),
        File::new("/home.js", JAVASCRIPT, include_str!("web/home.js").into(), false),
        File::new("/problems", HTML, problem_page().into(), false),
        File::new("/definition.schema.json", "application/schema+json", JSON_SCHEMA.into(), false),
        File::new("/docs/", HTML, include_str!("web/docs.html").into(), false),
        File::new("/docs/docs.js", JAVASCRIPT, include_str!("web/docs.js").into(), false),
    ];
    // For its initializer, which `docs.js` replaces.
    let config = Arc::new(Config::default());
    let swagger_ui = SWAGGER_UI.into_iter().map(|(path, name, media_type)| {
        let file = utoipa_swagger_ui::serve(name, Arc::clone(&config)).ok().flatten();
        let file = file.expect("one of the files that this program is built with");
        File::new(path, media_type, Bytes::from_owner(file.bytes), file.gzpipped)
    });
    own.into_iter().chain(swagger_ui).collect()
});

/// The icon as a drawing, to which the pages lead, and where browsers look that know no page.
static ICONS: LazyLock<[Arc<File>; 2]> = LazyLock::new(|| {
    let (drawing, bitmap) = (include_str!("web/icon.svg"), include_bytes!("../../web/favicon.ico"));
    [
        File::new("/icon.svg", "image/svg+xml", drawing.into(), false),
        File::new("/favicon.ico", "image/vnd.microsoft.icon", Bytes::from_static(bitmap), false),
    ]
});

/// A file that the binary holds plain or as gzip. The other form is made by the first request for it, and kept.
struct File {
    path: &'static str,
    media_type: &'static str,
    /// The tag of the plain form; that of the compressed form is the same, weak.
    tag: EntityTag,
    embedded: Bytes,
    /// Whether `embedded` is the compressed form.
    is_gzip: bool,
    other: OnceLock<Bytes>,
}

impl File {
    fn new(path: &'static str, media_type: &'static str, embedded: Bytes, is_gzip: bool) -> Arc<Self> {
        let digest = Sha256::digest(&embedded);
        let tag = EntityTag::new(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        Arc::new(Self { path, media_type, tag, embedded, is_gzip, other: OnceLock::new() })
    }

    /// The file in a form that the client accepts, or 304 if the client's copy is current.
    fn answer(&self, headers: &HeaderMap) -> Response {
        let response = match IfNoneMatch::of(headers).met_by(&self.tag) {
            Some(tag) => (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response(),
            None => {
                let gzip = accept::prefers_gzip(headers);
                let content_type = [(header::CONTENT_TYPE, self.media_type)];
                let coding = gzip.then_some([(header::CONTENT_ENCODING, "gzip")]);
                (content_type, [(header::ETAG, self.tag.header())], coding, self.bytes(gzip)).into_response()
            }
        };
        (HEADERS, Extension(Whole), response).into_response()
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

/// The answer at every other address.
pub async fn nothing_here() -> Problem {
    let detail = "Nothing is served at this address. The API begins at /v1, its documentation at /docs/.";
    Problem::new(ProblemKind::NotFound, detail)
}

/// Shows how to append to each history.
fn home_page(definitions: &Definitions) -> String {
    let how = |definition: &Arc<Definition>| {
        let filler = Filler::of(definition);
        let example = filler.example("newItem").flatten().unwrap_or_default().to_string();
        let example = example.replace('\'', "'\\''").replace('&', "&amp;").replace('<', "&lt;");
        filler.names.with([("newItem", example)]).fill(include_str!("web/history.html"))
    };
    let histories: String = definitions.iter().map(how).collect();
    include_str!("web/index.html").replace("<!-- histories -->\n", &histories)
}

fn problem_page() -> String {
    let code = |(index, part): (usize, &str)| {
        if index % 2 == 1 { format!("<code>{part}</code>") } else { String::from(part) }
    };
    let section = |kind: &ProblemKind| {
        let Spec { slug, status, title, about, .. } = kind.spec();
        let (status, about) = (status.as_u16(), about.split('`').enumerate().map(code).collect::<String>());
        format!(
            "<section id=\"{slug}\"><h2>{title}</h2><p class=\"status\">{status} <code>{slug}</code></p><p>{about}</p></section>\n"
        )
    };
    let sections: String = ProblemKind::ALL.iter().map(section).collect();
    include_str!("web/problems.html").replace("<!-- problems -->", &sections)
}
