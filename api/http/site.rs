//! What a person sees in a browser: a first page, the problems, the document, Swagger UI. All from
//! files inside the binary.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use sha2::{Digest, Sha256};
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::Api;
use super::etag::{EntityTag, IfNoneMatch};
use super::problem::{Kind, Problem};

const HOME: &str = include_str!("../../web/index.html");
const PROBLEMS: &str = include_str!("../../web/problems.html");

/// On an answer that is sent as it is, as all from here are. Compressing Swagger UI's 1.5 MB anew for everybody who asks
/// would keep a core busy for each; a tag keeps it from being sent twice instead.
#[derive(Clone, Copy)]
pub(super) struct Whole;

/// Whether an answer may be compressed.
pub(super) fn may_be_compressed(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<Whole>().is_none()
}

pub(super) fn router() -> Router<Arc<Api>> {
    // Rendered once: neither changes while the process lives.
    let document = Bytes::from(super::document());
    let problems = Bytes::from(PROBLEMS.replace("<!-- problems -->", &problem_table()));
    // The validator is a service elsewhere.
    let config = Config::from("/openapi.json").validator_url("none");
    let tag = tag(&[HOME.as_bytes(), &document, &problems], &config);
    let swagger = SwaggerUi::new("/docs").config(config);
    Router::new()
        .route("/", get(|| async { Html(HOME) }))
        .route("/problems", get(move || async move { Html(problems) }))
        .route(
            "/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
        )
        .merge(swagger)
        .layer(middleware::from_fn_with_state(tag, only_if_changed))
}

/// One for all that is served here, made of all that it is made of.
fn tag(pages: &[&[u8]], swagger: &Config<'static>) -> EntityTag {
    /// The files that come with `utoipa-swagger-ui`, which change only with its version.
    static SWAGGER: OnceLock<Sha256> = OnceLock::new();
    let digest = SWAGGER.get_or_init(|| {
        let config = Arc::new(swagger.clone());
        ["index.html", "swagger-initializer.js", "swagger-ui-bundle.js", "swagger-ui.css"]
            .into_iter()
            .filter_map(|name| utoipa_swagger_ui::serve(name, Arc::clone(&config)).ok().flatten())
            .fold(Sha256::new(), |digest, file| digest.chain_update(&file.bytes))
    });
    let digest = pages.iter().fold(digest.clone(), |digest, page| digest.chain_update(page)).finalize();
    let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    EntityTag::new(hex)
}

/// Answers 304 to whoever has it already.
async fn only_if_changed(State(tag): State<EntityTag>, request: Request, next: Next) -> Response {
    let known = IfNoneMatch::of(request.headers()).met_by(&tag);
    let mut response = next.run(request).await;
    if response.status() != StatusCode::OK {
        return response;
    }
    if known.is_some() {
        response = StatusCode::NOT_MODIFIED.into_response();
    }
    response.headers_mut().insert(header::ETAG, tag.header());
    response.extensions_mut().insert(Whole);
    response
}

pub(super) async fn nothing_here() -> impl IntoResponse {
    Problem::new(
        Kind::NotFound,
        "Nothing is served at this address. The API begins at /v1, its documentation at /docs/.",
    )
}

fn problem_table() -> String {
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
    rows
}
