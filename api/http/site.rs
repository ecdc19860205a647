//! What a person sees in a browser: a first page, the problems, the document, Swagger UI. All from
//! files inside the binary.

use std::fmt::Write;

use axum::Router;
use axum::http::header;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

use super::Api;
use super::problem::{Kind, Problem};

const HOME: &str = include_str!("../../web/index.html");
const PROBLEMS: &str = include_str!("../../web/problems.html");

pub(super) fn router() -> Router<Api> {
    // Rendered once: neither changes while the process lives.
    let document = super::document();
    let problems = PROBLEMS.replace("<!-- problems -->", &problem_table());
    // The validator is a service elsewhere.
    let swagger = SwaggerUi::new("/docs").config(Config::from("/openapi.json").validator_url("none"));
    Router::new()
        .route("/", get(|| async { Html(HOME) }))
        .route("/problems", get(move || async move { Html(problems) }))
        .route(
            "/openapi.json",
            get(move || async move { ([(header::CONTENT_TYPE, "application/json")], document) }),
        )
        .merge(swagger)
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
