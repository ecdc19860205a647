//! Pages for people: the explorer or a home page, the problems, the OpenAPI document, Swagger UI, an icon;
//! the catalogue of histories, and the JSON Schema of definitions. All are files inside the binary, and are
//! sent plain or as gzip. Each is compressed once: Swagger UI and what the explorer loads by the build, the
//! others by the first request.

mod catalog;
mod explorer;
mod file;

use std::sync::{Arc, LazyLock, OnceLock};

use axum::body::Bytes;
use axum::http::{HeaderMap, Uri};
use axum::response::Redirect;
use axum::routing::get;
use axum::{Json, Router};
use pagebucket_model::definition::{Definition, Definitions, JSON_SCHEMA};
use pagebucket_model::domain::Scope;
use serde_json::{Value, json};
use utoipa_swagger_ui::Config;

use super::admission::gate::{Gate, METADATA};
use super::openapi::{self, Features, Version};
use super::problem::{Problem, ProblemKind, Spec};
use super::schemas::names::Names;
use super::state::Api;

use file::{CSS, File, HTML, JAVASCRIPT};

/// The files of Swagger UI that its page, `web/docs.html`, loads.
const SWAGGER_UI: [(&str, &str, &str); 3] = [
    ("/docs/index.css", "index.css", CSS),
    ("/docs/swagger-ui.css", "swagger-ui.css", CSS),
    ("/docs/swagger-ui-bundle.js", "swagger-ui-bundle.js", JAVASCRIPT),
];

/// Makes a file that depends on what the histories are, and on what the server does.
type MakeFile = fn(&Definitions, Features) -> Arc<File>;

/// A route for each file that tells of the server. Without the explorer `/` is one of them.
pub(crate) fn router(api: &Api) -> Router<Arc<Api>> {
    let definitions = api.store.definitions();
    let features = Features::of(&api.gate, api.clients.rates.is_some());
    let home: (&'static str, MakeFile) =
        ("/", |definitions, _| File::new("/", HTML, home_page(definitions).into(), false));
    // Those of the histories are made when they are first asked for: few clients do, and a start waits for
    // nothing.
    let documents: [(&'static str, MakeFile); 3] = [
        ("/histories.json", catalog::of_all),
        ("/openapi.json", |definitions, features| {
            document("/openapi.json", definitions, Version::V3_1, features)
        }),
        ("/openapi-3.0.json", |definitions, features| {
            document("/openapi-3.0.json", definitions, Version::V3_0, features)
        }),
    ];
    let of_histories = documents.into_iter().chain((!api.explorer).then_some(home));
    let to_docs = Router::new().route("/docs", get(async || Redirect::to("/docs/")));
    let each = definitions.iter().fold(to_docs.merge(served(&FILES)), |router, definition| {
        let made = Arc::new((Arc::clone(definition), OnceLock::<Arc<File>>::new()));
        let answer = async move |headers: HeaderMap| {
            let (definition, file) = &*made;
            file.get_or_init(|| catalog::of_one(definition)).answer(&headers)
        };
        router.route(&catalog::address(definition), get(answer))
    });
    of_histories.fold(each, |router, (path, make)| {
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
pub(crate) fn icons() -> Router<Arc<Api>> {
    served(&*ICONS)
}

/// The explorer. It needs no token either: a browser sends none with an address. It is the same on every
/// server, and asks for a token itself. Its page may ask the issuer for one, if its users sign in there.
pub(crate) fn explorer(gate: &Gate) -> Router<Arc<Api>> {
    let jwt = gate.jwt().filter(|jwt| jwt.explorer_client.is_some());
    served(&explorer::files(jwt.and_then(|jwt| origin_of(&jwt.settings.issuer)).as_deref()))
}

/// The origin of an http or https address.
pub fn origin_of(address: &str) -> Option<String> {
    let address: Uri = address.parse().ok()?;
    let (scheme, authority) = (address.scheme_str()?, address.authority()?);
    // Without a user, whom the policy of a page must not name.
    let place = authority.as_str().rsplit('@').next()?;
    ["http", "https"].contains(&scheme).then(|| format!("{scheme}://{place}"))
}

/// A route for each of these files.
fn served(files: &[Arc<File>]) -> Router<Arc<Api>> {
    files.iter().cloned().fold(Router::new(), |router, file| {
        router.route(file.path, get(async move |headers: HeaderMap| file.answer(&headers)))
    })
}

/// The metadata of this server as a resource of OAuth (RFC 9728), if it accepts tokens.
pub(crate) fn metadata(gate: &Gate) -> Router<Arc<Api>> {
    let Some(jwt) = gate.jwt() else {
        return Router::new();
    };
    let mut metadata = json!({
        "resource": jwt.settings.audience,
        "authorization_servers": [jwt.settings.issuer],
        "scopes_supported": Scope::ALL.map(|scope| scope.to_string()),
        "bearer_methods_supported": ["header"],
        "resource_name": "pagebucket",
    });
    if let Some(client) = &jwt.explorer_client {
        metadata["explorer_client_id"] = json!(client.id);
        metadata["explorer_scopes"] = json!(client.scopes);
    }
    let metadata = Json(metadata);
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
        File::new("/docs/docs.css", CSS, include_str!("web/docs.css").into(), false),
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

/// The answer at every other address.
pub(crate) async fn nothing_here() -> Problem {
    let detail = "Nothing is served at this address. The API begins at /v1, its documentation at /docs/.";
    Problem::new(ProblemKind::NotFound, detail)
}

/// Shows how to append to each history.
fn home_page(definitions: &Definitions) -> String {
    let how = |definition: &Arc<Definition>| {
        let names = Names::of(definitions, definition);
        let example = names.examples.new_item.as_ref().map(Value::to_string).unwrap_or_default();
        let example = example.replace('\'', "'\\''").replace('&', "&amp;").replace('<', "&lt;");
        names.fill(include_str!("web/history.html")).replace("{newItem}", &example)
    };
    let histories: String = definitions.iter().map(how).collect();
    include_str!("web/home.html").replace("<!-- histories -->\n", &histories)
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
