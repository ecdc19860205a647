//! The OpenAPI document says what the API does, and the API does what the document says.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use pagebucket_http::{Gate, OpenParts, Version, document};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::OwnerType;
use pagebucket_service::Rate;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::harness::tokens::{EVERYTHING, Issuer, claims, gate, now, owners_claim};
use crate::harness::{Service, Setup, TOTAL, shared, skip, trade, trade_at};

const EXAMPLES: &str = "examples/histories";

/// Far longer than a tool takes, also on a busy machine, and shorter than a test may: it ends one that hangs.
const LONGEST_RUN: Duration = Duration::from_secs(600);

fn in_checkout(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The document of each version, and its name on a server.
const VERSIONS: [(&str, Version); 2] = [("openapi.json", Version::V3_1), ("openapi-3.0.json", Version::V3_0)];

/// The documents in `openapi/` are of all that a server may do. A served one says nothing of what its server
/// does not do.
#[tokio::test(flavor = "multi_thread")]
async fn served_documents_say_what_their_server_does() {
    let allowing = Setup::on(shared().await);
    let mut closed = Setup::on(shared().await);
    closed.gate = Gate::unguarded();
    let mut limited = Setup::on(shared().await);
    let units = NonZeroU32::new(1_000_000).unwrap();
    limited.config.api.rate = Some(Rate { units, per: Duration::from_secs(1), burst: None });
    let (limited, _) = guarded(limited, &["customers"]).await;
    for (service, authenticates, erasing) in [
        (&allowing.start().await, false, &[][..]),
        (&closed.start().await, false, &["erasing-off"]),
        (&limited, true, &["forbidden"]),
    ] {
        for (name, _) in VERSIONS {
            let served = service.client.get(&format!("/{name}")).await;
            assert_eq!(served.header("content-type"), "application/json");
            let served = served.expect(200);
            let responses = &served["paths"]["/v1/customers/{customerId}"]["delete"]["responses"];
            let resolved = |status: &str| match responses[status]["$ref"].as_str() {
                Some(reference) => served.pointer(&reference[1..]).expect("a component").clone(),
                None => responses[status].clone(),
            };
            let refused = &resolved("403")["content"]["application/problem+json"]["examples"];
            let refused: Vec<_> =
                refused.as_object().into_iter().flatten().map(|(kind, _)| kind.clone()).collect();
            assert_eq!(refused, erasing, "{name}");
            for status in ["401", "429"] {
                assert_eq!(responses.get(status).is_some(), authenticates, "{name} {status}");
            }
            let schemes = served["components"].get("securitySchemes");
            assert_eq!(schemes.is_some(), authenticates, "{name}: {schemes:?}");
        }
    }
}

/// The documents of the histories that are built in, and of those of these directories, in a directory of
/// their own.
fn written_documents(histories: &[&str]) -> (Scratch, Vec<PathBuf>) {
    let directory = Scratch::new();
    let of = |path: &&str| Definitions::of_directory(&in_checkout(path)).expect("definitions");
    let all: Vec<_> = [Definitions::built_in()].into_iter().chain(histories.iter().map(of)).collect();
    let mut files = Vec::new();
    for (number, definitions) in all.iter().enumerate() {
        for (name, version) in VERSIONS {
            let file = directory.0.join(format!("{number}-{name}"));
            std::fs::write(&file, document(definitions, version)).expect("a file");
            files.push(file);
        }
    }
    (directory, files)
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_valid() {
    let Some(validator) = tool("OPENAPI_SPEC_VALIDATOR", "validation of the OpenAPI documents") else {
        return;
    };
    let (_directory, files) = written_documents(&[EXAMPLES, "tests/data/histories"]);
    let judged = run(Command::new(validator).args(files)).await;
    assert!(judged.status.success(), "{}", text(&judged));
}

/// Neither judge needs a network, and neither may use one.
#[tokio::test(flavor = "multi_thread")]
async fn redocly_and_spectral_find_nothing() {
    let Some(packages) = tool("OPENAPI_JUDGES", "redocly and spectral") else { return };
    let (_directory, files) = written_documents(&[EXAMPLES]);
    // Spectral takes 20 times as long as redocly: it sees each version and each list of histories once.
    let of_each = [&files[1], &files[2]];
    let judge = |name: &str, arguments: &[&str], files: &[&PathBuf]| {
        let mut command = Command::new(packages.join(".bin").join(name));
        command.args(arguments).args(files).current_dir(in_checkout("tests/judges"));
        command.env("NODE_PATH", &packages);
        command.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
        command
    };
    let mut redocly =
        judge("redocly", &["lint", "--config", "redocly.yaml"], &files.iter().collect::<Vec<_>>());
    let spectral = ["lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"];
    let mut spectral = judge("spectral", &spectral, &of_each);
    let (redocly, spectral) = tokio::join!(run(&mut redocly), run(&mut spectral));
    assert!(redocly.status.success(), "{}", text(&redocly));
    // One line for each document, so that each was judged.
    assert_eq!(text(&redocly).matches(": validated in ").count(), files.len(), "{}", text(&redocly));
    assert!(spectral.status.success(), "{}", text(&spectral));
    assert!(
        text(&spectral).contains("No results with a severity of 'hint' or higher found!"),
        "{}",
        text(&spectral)
    );
}

/// A service for clients with a token alone, and a token that allows everything for longer than a run takes.
async fn guarded(mut setup: Setup, collections: &[&str]) -> (Service, String) {
    let issuer = Issuer::start().await;
    let mut settings = issuer.settings();
    let claim = owners_claim("customers", OwnerType::String);
    settings.claims = collections.iter().map(|name| ((*name).into(), claim.clone())).collect();
    setup.gate = gate(settings, OpenParts { docs: true, metrics: false }).await;
    let mut service = setup.start().await;
    let mut claims = claims("schemathesis", EVERYTHING, json!("*"));
    claims["exp"] = json!(now() + 3600);
    let token = issuer.signer.sign(&claims);
    service.client = service.client.with_token(token.as_str());
    (service, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_passes() {
    let mut setup = Setup::on(shared().await);
    // A live stream ends when it has begun.
    setup.config.api.live_max_age = Duration::from_secs(0);
    let (service, token) = guarded(setup, &["customers"]).await;
    // What the configuration's dictionary and the document's examples name: a history with a full
    // page, a page that is not, and trades with and without a price.
    let mut trades: Vec<Value> = (1..=24).map(|n| trade_at(n, "2004-01-09T00:00:00Z")).collect();
    trades.push(json!({ "type": "buy", "ticker": "BRK.B", "qty": 1, "price": "15.50" }));
    service.client.append(7, &json!(trades)).await.expect(201);
    if !judge(&service, Some(&token), 28, 10).await {
        return;
    }
    let total = service.client.total(7).await;
    assert!(total > 25, "schemathesis appended nothing: {total}");
    service.client.append(7, &trade(1)).await.expect(201);
}

/// Without authentication, as most try it first: the document says nothing of tokens.
#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_passes_on_the_examples() {
    let mut setup = Setup::on(shared().await);
    setup.definitions = Some(in_checkout(EXAMPLES));
    setup.config.api.live_max_age = Duration::from_secs(0);
    let service = setup.start().await;
    let served = service.client.get("/openapi.json").await.expect(200);
    let histories = [
        ("/v1/accounts/123e4567-e89b-42d3-a456-426614174000", "executions", "ExecutionInput"),
        ("/v1/rooms/7f3a2c", "messages", "MessageInput"),
    ];
    for (owner, history, schema) in histories {
        let example = &served["components"]["schemas"][schema]["examples"][0];
        let items = vec![example; 60];
        service.client.post_text(&format!("{owner}/{history}"), json!(items).to_string()).await.expect(201);
    }
    // Fewer examples: what the definition does not change is judged above.
    if !judge(&service, None, 44, 4).await {
        return;
    }
    for (owner, history, _) in histories {
        let total = &service.client.get(owner).await.expect(200)[history][TOTAL];
        assert!(total.as_u64().is_some_and(|total| total > 60), "schemathesis appended nothing: {total}");
    }
}

/// Runs schemathesis, with this token if there is one, against the service, whose document has this many
/// operations, each with at most so many examples. Returns false where there is no schemathesis.
async fn judge(service: &Service, token: Option<&str>, operations: usize, examples: usize) -> bool {
    let Some(schemathesis) = tool("SCHEMATHESIS", "schemathesis") else { return false };
    // What the configuration names: a minute of a page.
    let views = json!({ "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 17 });
    let counted = service.client.post_text("/v1/page-views", views.to_string()).await;
    assert_eq!(counted.status, 204);
    // It writes its notes into the current directory.
    let directory = Scratch::new();
    let mut config = std::fs::read_to_string(in_checkout("tests/schemathesis.toml")).expect("a file");
    if let Some(token) = token {
        // The check `ignored_auth` sees what the service does without it.
        config.push_str(&format!("\n[auth.openapi.bearer]\nbearer = \"{token}\"\n"));
    }
    let config = config.replace("max-examples = 20", &format!("max-examples = {examples}"));
    std::fs::write(directory.0.join("schemathesis.toml"), config).expect("a file");
    let judged = run(Command::new(schemathesis)
        .current_dir(&directory.0)
        .env("SCHEMATHESIS_HOOKS", in_checkout("tests/schemathesis_checks.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .arg("--no-color")
        .args(["--config-file", "schemathesis.toml"])
        .args(["run", &service.client.url("/openapi.json")]))
    .await;
    let said = text(&judged);
    assert!(judged.status.success(), "{said}");
    // It must have judged something: no operation left out, and each that writes has written.
    assert!(said.contains(&format!("{operations} selected / {operations} total")), "{said}");
    let pages = service.database.collection::<Document>("page_views").distinct("page", doc! {}).await;
    let pages = pages.expect("an answer").len();
    assert!(pages > 1, "schemathesis counted nothing: {pages}");
    true
}

/// A tool that the environment names; where it names none, a line at the end says so.
fn tool(variable: &str, what: &str) -> Option<PathBuf> {
    let tool = std::env::var_os(variable).map(PathBuf::from);
    if tool.is_none() {
        skip(what, &format!("{variable} is not set; make test sets it"));
    }
    tool
}

async fn run(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LONGEST_RUN, command.output()).await;
    output.expect("an end in time").expect("the tool to start")
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    format!("{}\n{out}\n{err}", output.status)
}

/// A directory that ends with this value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("pagebucket-contract-{:x}", rand::random::<u64>()));
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the system's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
