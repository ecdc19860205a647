//! Flags and their twins, and the commands that need no database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tokio::net::TcpListener;

use super::program::{Place, Serving, pagebucket, run};
use crate::harness::{Mongod, TRADES, eventually, test};

/// A flag, its environment twin and its default; empty where there is none.
type Flag = (&'static str, &'static str, &'static str);

const PAGES: &str = concat!(
    include_str!("../../../docs/reference/flags.md"),
    include_str!("../../../docs/how-to/authenticate.md")
);

const LOG: &[Flag] =
    &[("--log-format", "PAGEBUCKET_LOG_FORMAT", "pretty"), ("--log", "PAGEBUCKET_LOG", "info")];
const HISTORIES: &[Flag] = &[("--histories", "PAGEBUCKET_HISTORIES", "")];
const DATABASE: &[Flag] = &[
    ("--histories", "PAGEBUCKET_HISTORIES", ""),
    ("--mongodb-uri", "MONGODB_URI", ""),
    ("--database", "PAGEBUCKET_DATABASE", "pagebucket"),
    ("--data-dir", "PAGEBUCKET_DATA_DIR", "./data"),
    ("--mongod", "MONGOD", ""),
];
/// Of commands that store items.
const CAPACITY: &[Flag] = &[
    ("--pool-size", "PAGEBUCKET_POOL_SIZE", "64"),
    ("--max-queue-mib", "PAGEBUCKET_MAX_QUEUE_MIB", "32"),
    ("--catalog-size", "PAGEBUCKET_CATALOG_SIZE", "100000"),
];
const SERVER: &[Flag] = &[
    ("--listen", "PAGEBUCKET_LISTEN", "127.0.0.1:8080"),
    ("--tls-cert", "PAGEBUCKET_TLS_CERT", ""),
    ("--tls-key", "PAGEBUCKET_TLS_KEY", ""),
    ("--cors-origins", "PAGEBUCKET_CORS_ORIGINS", "localhost"),
    ("--allowed-hosts", "PAGEBUCKET_ALLOWED_HOSTS", ""),
    ("--no-explorer", "PAGEBUCKET_NO_EXPLORER", ""),
    ("--max-requests", "PAGEBUCKET_MAX_REQUESTS", "1024"),
    ("--max-connections", "PAGEBUCKET_MAX_CONNECTIONS", "4096"),
    ("--max-connections-per-address", "PAGEBUCKET_MAX_CONNECTIONS_PER_ADDRESS", "1024"),
    ("--max-body", "PAGEBUCKET_MAX_BODY", "1048576"),
    ("--page-cache", "PAGEBUCKET_PAGE_CACHE", "67108864"),
    ("--cache-public", "PAGEBUCKET_CACHE_PUBLIC", ""),
    ("--header-timeout", "PAGEBUCKET_HEADER_TIMEOUT", "30"),
    ("--body-timeout", "PAGEBUCKET_BODY_TIMEOUT", "10"),
    ("--write-timeout", "PAGEBUCKET_WRITE_TIMEOUT", "60"),
    ("--max-uploads", "PAGEBUCKET_MAX_UPLOADS", "64"),
    ("--max-exports", "PAGEBUCKET_MAX_EXPORTS", "64"),
    ("--max-live", "PAGEBUCKET_MAX_LIVE", "10000"),
    ("--live-max-age", "PAGEBUCKET_LIVE_MAX_AGE", "3600"),
    ("--max-scans", "PAGEBUCKET_MAX_SCANS", "8"),
    ("--rate-limit", "PAGEBUCKET_RATE_LIMIT", ""),
    ("--rate-burst", "PAGEBUCKET_RATE_BURST", ""),
    ("--trusted-proxies", "PAGEBUCKET_TRUSTED_PROXIES", ""),
    ("--forwarded-header", "PAGEBUCKET_FORWARDED_HEADER", "x-forwarded-for"),
    ("--retain-pages", "PAGEBUCKET_RETAIN_PAGES", ""),
    ("--retain-days", "PAGEBUCKET_RETAIN_DAYS", ""),
    ("--keep-summaries", "PAGEBUCKET_KEEP_SUMMARIES", ""),
    ("--drain-delay", "PAGEBUCKET_DRAIN_DELAY", "0"),
    ("--read-preference", "PAGEBUCKET_READ_PREFERENCE", "primary"),
    ("--no-migrate", "PAGEBUCKET_NO_MIGRATE", ""),
];
const AUTH: &[Flag] = &[
    ("--auth", "PAGEBUCKET_AUTH", ""),
    ("--allow-unauthenticated", "PAGEBUCKET_ALLOW_UNAUTHENTICATED", ""),
    ("--allow-erase", "PAGEBUCKET_ALLOW_ERASE", ""),
    ("--jwt-issuer", "PAGEBUCKET_JWT_ISSUER", ""),
    ("--jwt-audience", "PAGEBUCKET_JWT_AUDIENCE", ""),
    ("--jwks", "PAGEBUCKET_JWKS", ""),
    ("--jwt-types", "PAGEBUCKET_JWT_TYPES", "at+jwt"),
    ("--owners-claim", "PAGEBUCKET_OWNERS_CLAIM", ""),
    ("--explorer-oidc-client-id", "PAGEBUCKET_EXPLORER_OIDC_CLIENT_ID", ""),
    ("--explorer-oidc-scopes", "PAGEBUCKET_EXPLORER_OIDC_SCOPES", "openid,read,append,list,views"),
    ("--open", "PAGEBUCKET_OPEN", ""),
];
const MIGRATE: &[Flag] =
    &[("--check", "", ""), ("--renew-epoch", "", ""), ("--initiate", "", ""), ("--shard", "", "")];
/// Their defaults depend on the file, and are in words.
const IMPORT: &[Flag] = &[
    ("--format", "", ""),
    ("--history", "", ""),
    ("--owner", "", ""),
    ("--column", "", ""),
    ("--strict", "", ""),
    ("--from-line", "", "1"),
    ("--key", "", ""),
    ("--url", "", ""),
    ("--token", "PAGEBUCKET_TOKEN", ""),
    ("--plain-text-token", "", ""),
];
/// Their defaults depend on the source, and are in words.
const ADOPT: &[Flag] = &[
    ("--from", "PAGEBUCKET_ADOPT_FROM", ""),
    ("--from-database", "", ""),
    ("--collection", "", ""),
    ("--into", "", ""),
    ("--shape", "", ""),
    ("--map", "", ""),
    ("--ignore", "", ""),
    ("--order", "", ""),
    ("--name", "", ""),
    ("--rejects", "", ""),
    ("--from-rejects", "", ""),
    ("--dry-run", "", ""),
    ("--follow", "", ""),
    ("--check", "", ""),
    ("--read-preference", "", "primary"),
];
const EXPORT: &[Flag] = &[
    ("--history", "", ""),
    ("--owner", "", ""),
    ("--format", "", ""),
    ("--from", "", ""),
    ("--to", "", ""),
    ("--after", "", ""),
    ("--after-owner", "", ""),
    ("--fields", "", ""),
    ("--output", "", ""),
    ("--read-preference", "PAGEBUCKET_READ_PREFERENCE", "primary"),
];
const TAIL: &[Flag] = &[
    ("--history", "", ""),
    ("--owner", "", ""),
    ("--items", "", "10"),
    ("--after", "", ""),
    ("--follow", "", ""),
];
const KEYS: &[Flag] = &[("--key-retention", "PAGEBUCKET_KEY_RETENTION", "24")];
const VIEWS: &[Flag] = &[("--view-retention", "PAGEBUCKET_VIEW_RETENTION", "0")];
const ERASE: &[Flag] = &[("--owner", "", ""), ("--reopen", "", ""), ("--replay", "", "")];
const PREALLOCATE: &[Flag] = &[("--path", "", ""), ("--hour", "", ""), ("--hours", "", "1")];
const CREATE_KEY: &[Flag] = &[
    ("--name", "", ""),
    ("--scope", "", ""),
    ("--owners", "", ""),
    ("--expires-in", "", ""),
    ("--expires", "", ""),
];
const VERIFY: &[Flag] = &[
    ("--history", "", ""),
    ("--owner", "", ""),
    ("--series", "", ""),
    ("--repair", "", ""),
    ("--pages-per-second", "", "5000"),
];
const SERIES: &[Flag] = &[("--history", "", "")];
const OPENAPI: &[Flag] = &[("--spec", "", "3.1")];
const HEALTHCHECK: &[Flag] =
    &[("--listen", "PAGEBUCKET_LISTEN", "127.0.0.1:8080"), ("--tls-cert", "PAGEBUCKET_TLS_CERT", "")];

#[test]
async fn help_shows_every_flag() {
    for (command, flags) in [
        ("serve", vec![LOG, DATABASE, CAPACITY, SERVER, AUTH, KEYS, VIEWS]),
        ("migrate", vec![LOG, DATABASE, MIGRATE, KEYS, VIEWS]),
        ("import", vec![LOG, DATABASE, CAPACITY, IMPORT]),
        ("adopt", vec![LOG, DATABASE, CAPACITY, ADOPT]),
        ("export", vec![LOG, DATABASE, EXPORT]),
        ("tail", vec![LOG, DATABASE, TAIL]),
        ("verify", vec![LOG, DATABASE, VERIFY]),
        ("series rebuild", vec![LOG, DATABASE, SERIES]),
        ("series drop", vec![LOG, DATABASE, SERIES]),
        ("erase", vec![LOG, DATABASE, ERASE]),
        ("preallocate", vec![LOG, DATABASE, PREALLOCATE]),
        ("openapi", vec![LOG, HISTORIES, OPENAPI]),
        ("histories", vec![LOG, DATABASE]),
        ("keys", vec![LOG]),
        ("keys create", vec![LOG, DATABASE, CREATE_KEY]),
        ("keys list", vec![LOG, DATABASE]),
        ("keys revoke", vec![LOG, DATABASE]),
        ("healthcheck", vec![LOG, HEALTHCHECK]),
        ("completions", vec![LOG]),
        ("man", vec![LOG]),
    ] {
        let arguments: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let help = run(&mut pagebucket(&arguments)).await;
        assert_eq!((help.status, help.err.as_str()), (Some(0), ""), "{command}");
        let shown = entries(&help.out);
        let expected: BTreeSet<_> =
            flags.iter().copied().flatten().map(|(flag, ..)| *flag).chain(["--help"]).collect();
        assert_eq!(shown.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected, "{command}");
        for (flag, variable, default) in flags.into_iter().flatten() {
            let entry = &shown[*flag];
            let (variables, defaults) = (entry.contains("[env: "), entry.contains("[default: "));
            let has_variable = [format!("[env: {variable}=]"), format!("[env: {variable}]")];
            if variable.is_empty() {
                assert!(!variables, "{command} {entry}");
            } else {
                assert!(has_variable.iter().any(|text| entry.contains(text)), "{variable} in {entry}");
            }
            if !default.is_empty() {
                assert!(entry.contains(&format!("[default: {default}]")), "{default} in {entry}");
            } else if command != "import" {
                assert!(!defaults, "{command} {entry}");
            }
            assert!(entry.lines().count() > 1, "it says what it is for: {entry}");
            let documented = PAGES.contains(&format!("`{flag}`")) || PAGES.contains(&format!("`{flag} "));
            assert!(documented || command != "serve", "docs/reference/flags.md does not have {flag}");
        }
    }
    let help = run(&mut pagebucket(&["--help"])).await;
    assert_eq!(help.status, Some(0));
    for command in [
        "serve",
        "migrate",
        "import",
        "export",
        "tail",
        "verify",
        "erase",
        "preallocate",
        "openapi",
        "histories",
        "keys",
        "healthcheck",
        "completions",
        "man",
    ] {
        assert!(help.out.lines().any(|line| line.trim_start().starts_with(command)), "{}", help.out);
    }
    let version = run(&mut pagebucket(&["--version"])).await;
    assert_eq!(version.out, format!("pagebucket {}\n", env!("CARGO_PKG_VERSION")));
}

/// What `--help` says of each flag.
fn entries(help: &str) -> BTreeMap<String, String> {
    let mut entries = BTreeMap::new();
    let mut current = None;
    for line in help.lines() {
        let words = line.trim_start();
        // Below the deeper indentation of a description.
        if words.starts_with('-') && line.len() - words.len() < 10 {
            let flag = words.split([' ', ',']).find(|word| word.starts_with("--")).expect("a long flag");
            current = Some(flag.to_owned());
        }
        if let Some(flag) = &current {
            let entry: &mut String = entries.entry(flag.clone()).or_default();
            entry.push_str(line);
            entry.push('\n');
        }
    }
    entries
}

/// In a terminal of 80 columns, and where there is none.
#[test]
async fn short_help_fits() {
    for command in [
        "",
        "serve",
        "migrate",
        "import",
        "adopt",
        "export",
        "tail",
        "verify",
        "series",
        "series rebuild",
        "series drop",
        "erase",
        "preallocate",
        "openapi",
        "histories",
        "keys",
        "keys create",
        "keys list",
        "keys revoke",
        "healthcheck",
        "completions",
        "man",
    ] {
        for (columns, most) in [(Some("80"), 80), (None, 100)] {
            let arguments: Vec<_> = command.split_whitespace().chain(["-h"]).collect();
            let mut program = pagebucket(&arguments);
            columns.map(|columns| program.env("COLUMNS", columns));
            let help = run(&mut program).await;
            assert_eq!(help.status, Some(0), "{help:?}");
            let too_long: Vec<_> = help.out.lines().filter(|line| line.chars().count() > most).collect();
            assert_eq!(too_long, [""; 0], "{command} in {most} columns");
            // The first paragraph says what a flag is for; the others are for --help.
            for (flag, entry) in entries(&help.out) {
                let lines = entry.lines().take_while(|line| !line.is_empty()).count();
                assert!(lines < 5 && !entry.contains("[env"), "{command} {flag}: {entry}");
            }
        }
    }
}

#[test]
async fn help_shows_no_secret() {
    let mut command = pagebucket(&["serve", "--help"]);
    let help = run(command.env("MONGODB_URI", "mongodb://user:sesame@127.0.0.1/")).await;
    assert!(help.out.contains("MONGODB_URI") && !help.out.contains("sesame"), "{}", help.out);
}

#[test]
async fn wrong_flags_are_usage() {
    for arguments in [
        &[][..],
        &["sever"],
        &["serve", "--prot", "1"],
        &["erase"],
        &["erase", "--owner", "7", "--replay", "audit.log"],
        &["serve", "--listen", "80800"],
        &["serve", "--listen", "localhost"],
        &["serve", "--listen", "127.0.0.1:65536"],
        &["serve", "--database", "a/b"],
        &["serve", "--database", ""],
        &["serve", "--database", "admin"],
        &["serve", "--pool-size", "0"],
        &["serve", "--pool-size", "many"],
        &["serve", "--max-requests", "0"],
        &["serve", "--max-uploads", "0"],
        &["serve", "--max-uploads", "100001"],
        &["serve", "--max-body", "0"],
        &["serve", "--page-cache", "64M"],
        &["serve", "--page-cache", "-1"],
        &["serve", "--header-timeout", "0"],
        &["serve", "--max-scans", "0"],
        &["serve", "--body-timeout", "21"],
        &["serve", "--cors-origins", "app.example"],
        &["serve", "--cors-origins", "https://app.example/path"],
        &["serve", "--allowed-hosts", "http://api.example"],
        &["serve", "--allowed-hosts", "api.example,*"],
        &["serve", "--allowed-hosts", ""],
        &["serve", "--rate-limit", "100"],
        &["serve", "--rate-limit", "0/s"],
        &["serve", "--rate-burst", "10"],
        &["serve", "--rate-limit", "1/s", "--rate-burst", "0"],
        &["serve", "--trusted-proxies", "10.0.0.0/33"],
        &["serve", "--forwarded-header", "via"],
        &["serve", "--log-format", "xml"],
        &["serve", "--log", "pagebucket=loud"],
        &["serve", "--log", "nonsense="],
        &["serve", "--mongodb-uri", "localhost:27017"],
        &["serve", "--mongodb-uri"],
        &["migrate", "--chekc"],
        &["healthcheck", "--listen", "nowhere"],
        &["import"],
        &["serve", "--view-retention", "24856"],
        &["serve", "--retain-pages", "trades"],
        &["serve", "--retain-pages", "trades=0"],
        &["serve", "--retain-days", "trades=1", "--retain-days", "trades=2"],
        &["serve", "--retain-pages", "trade=100"],
        &["serve", "--keep-summaries", "trade"],
        &["erase"],
        &["erase", "--owner", "0"],
        &["erase", "--owner", "rooms=7"],
        &["preallocate", "--path", "/"],
        &["preallocate", "--path", "index.htm", "--hour", "2014-01-01T10:00:00Z"],
        &["keys"],
        &["keys", "create"],
        &["keys", "revoke"],
        &["openapi", "--yaml"],
        &["openapi", "--spec", "2.0"],
    ] {
        let ended = run(&mut pagebucket(arguments)).await;
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
        assert!(ended.out.is_empty() && !ended.err.is_empty(), "{arguments:?}: {ended:?}");
    }
}

#[test]
async fn a_mistake_is_told_with_an_example() {
    for (arguments, part) in [
        (
            &["serve", "--listen", "localhost"][..],
            "such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080, or a port alone",
        ),
        (&["healthcheck", "--listen", ":8080"], "such as 127.0.0.1:8080"),
        (
            &["serve", "--log", "nonsense="],
            "`nonsense=` must be a level, or a target with its level, such as pagebucket=debug",
        ),
        (&["migrate", "--log", "inof"], "a level is trace, debug, info, warn, error or off"),
    ] {
        let ended = run(&mut pagebucket(arguments)).await;
        assert!(ended.status == Some(2) && ended.err.contains(part), "{arguments:?}: {ended:?}");
    }
    // What the environment sets is not what the user has to give.
    let ended = run(pagebucket(&["import"]).env("MONGOD", "mongod").env("MONGODB_URI", "mongodb://h/")).await;
    assert!(ended.err.contains("Usage: pagebucket import [OPTIONS] <FILE>\n"), "{ended:?}");
}

/// Forty flags in a row are hard to read.
#[test]
async fn flags_of_a_server_are_in_groups() {
    let help = run(&mut pagebucket(&["serve", "--help"])).await.out;
    let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let headings = help.lines().filter(|line| line.ends_with(':') && !line.starts_with([' ', '-']));
    for heading in headings {
        let text = help.split(&format!("\n{heading}\n")).nth(1).unwrap_or_default();
        let text = text.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
        let text: String = text.map(|line| format!("{line}\n")).collect();
        groups.insert(heading, entries(&text).into_keys().collect());
    }
    assert!(groups.len() >= 8 && groups.values().all(|flags| flags.len() <= 9), "{groups:#?}");
    assert_eq!(groups.get("Options:"), Some(&BTreeSet::from(["--help".to_owned()])), "{groups:#?}");
    assert!(groups["Limits:"].contains("--max-requests"), "{groups:#?}");
}

#[test]
async fn an_environment_variable_serves_as_its_flag() {
    let place = Place::new().await;
    let mut command = pagebucket(&["serve"]);
    command
        .env("MONGODB_URI", &place.uri)
        .env("PAGEBUCKET_DATABASE", &place.name)
        .env("PAGEBUCKET_LISTEN", "127.0.0.1:0")
        .env("PAGEBUCKET_MAX_BODY", "100")
        .env("PAGEBUCKET_LOG_FORMAT", "json");
    let serving = Serving::start(TRADES, &mut command).await;
    let answer = serving.client.post_text("/v1/customers/7/trades", " ".repeat(101)).await;
    answer.problem(413, "body-too-large");
    let ended = serving.stop().await;
    assert!(ended.err.lines().all(|line| line.starts_with('{')), "{}", ended.err);

    // A flag without a value: switched on by anything but a word for no.
    let no_migrate = |value: &str| {
        let mut command = Place { history: TRADES, uri: place.uri.clone(), name: format!("{}_", place.name) }
            .pagebucket("serve", &["--listen", "127.0.0.1:0"]);
        command.env("PAGEBUCKET_NO_MIGRATE", value);
        command
    };
    let refused = run(&mut no_migrate("true")).await;
    assert!(refused.sentence(3).contains("migrations are pending: 0001_trades"), "{refused:?}");
    // On the database that has them all, so that no other is left behind.
    let mut command = place.pagebucket("serve", &["--listen", "127.0.0.1:0"]);
    command.env("PAGEBUCKET_NO_MIGRATE", "false");
    Serving::start(TRADES, &mut command).await.stop().await;
}

#[test]
async fn openapi_prints_the_documents_in_the_repository() {
    for (name, arguments) in
        [("openapi.json", &["openapi"][..]), ("openapi-3.0.json", &["openapi", "--spec", "3.0"])]
    {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi").join(name);
        let expected = std::fs::read_to_string(file).expect(name);
        let ended = run(&mut pagebucket(arguments)).await;
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
        assert!(ended.out == expected, "openapi/{name} is out of date: run make openapi");
    }
}

#[test]
async fn the_reference_of_flags_is_that_in_the_repository() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/settings.md");
    let expected = std::fs::read_to_string(file).expect("the page");
    let ended = run(&mut pagebucket(&["reference"])).await;
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    assert!(ended.out == expected, "docs/reference/settings.md is out of date: run make reference");
}

#[test]
async fn a_shell_and_man_know_every_command() {
    let serve = run(&mut pagebucket(&["man", "serve"])).await;
    assert!(serve.status == Some(0) && serve.out.contains("PAGEBUCKET_LISTEN"), "{serve:?}");
    let program = run(&mut pagebucket(&["man"])).await;
    let unknown = run(&mut pagebucket(&["man", "sever"])).await;
    assert_eq!(unknown.sentence(2), "there is no command sever");
    for shell in ["bash", "zsh", "fish"] {
        let completions = run(&mut pagebucket(&["completions", shell])).await;
        assert!(completions.out.contains("retain-pages"), "{shell}: {completions:?}");
        for command in ["serve", "migrate", "histories"] {
            assert!(completions.out.contains(command) && program.out.contains(command), "{shell} {command}");
        }
    }
}

#[test]
async fn histories_are_checked_and_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shown = run(&mut pagebucket(&["histories", "show", "trades"])).await;
    let trades = std::fs::read_to_string(root.join("api/model/definition/trades.json"))
        .expect("the definition of trades");
    assert_eq!((shown.status, shown.out), (Some(0), trades));
    let unknown = run(&mut pagebucket(&["histories", "show", "orders"])).await;
    assert_eq!(unknown.sentence(2), "no history of this name is built in, only trades");
    let check = async |file: &Path| {
        run(&mut pagebucket(&["histories", "check", file.to_str().expect("a path")])).await
    };
    let checked = check(&root.join("examples/histories/messages.json")).await;
    assert_eq!((checked.status, checked.err.as_str()), (Some(0), ""));
    assert!(checked.out.contains("GET, POST  /v1/rooms/{roomId}/messages "), "{}", checked.out);
    let file = std::env::temp_dir().join(format!("pagebucket-check-{}.json", std::process::id()));
    std::fs::write(&file, r#"{ "history": "Messages", "page_size": 7 }"#).expect("a file");
    let mistaken = check(&file).await;
    std::fs::remove_file(&file).expect("the file");
    let lines = [
        "/page_size is not a member of a definition: did you mean \"pageSize\"?",
        "/history must be 1 to 48 of the characters a-z, 0-9 and \"-\", and begin with a letter",
        "/title is required",
        "/owner is required",
        "/date is required",
        "/item is required",
    ]
    .map(|line| format!("pagebucket: {}: {line}\n", file.display()));
    assert_eq!((mistaken.status, mistaken.out, mistaken.err), (Some(1), String::new(), lines.concat()));
    let missing = check(&file).await;
    assert!(missing.sentence(2).contains("cannot be read"), "{}", missing.err);
}

#[test]
async fn healthcheck_says_whether_it_is_ready() {
    let healthcheck = async |address: &str| run(&mut pagebucket(&["healthcheck", "--listen", address])).await;

    // On a mongod of its own, because that goes away.
    let mongod = Mongod::own().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let serving = place.serve(&[]).await;
    let address = serving.address.to_string();
    let ended = healthcheck(&address).await;
    assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (Some(0), "ready\n", ""));
    // A server that listens everywhere is asked on this machine.
    let ended = healthcheck(&format!("0.0.0.0:{}", serving.address.port())).await;
    assert_eq!(ended.status, Some(0), "{ended:?}");

    // One that answers for certain hosts alone answers for this machine, too.
    let arguments = ["--listen", "0.0.0.0:0", "--allow-unauthenticated", "--allowed-hosts", "api.example"];
    let guarded = Serving::start(TRADES, &mut place.pagebucket("serve", &arguments)).await;
    let ended = healthcheck(&guarded.address.to_string()).await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    guarded.stop().await;

    mongod.stop().await;
    let ended = healthcheck(&address).await;
    assert!(ended.sentence(1).contains("503"), "{ended:?}");
    assert_eq!(ended.out, "");
    mongod.start().await;
    eventually("it is ready again", super::program::PATIENCE, || async {
        healthcheck(&address).await.status == Some(0)
    })
    .await;
    serving.stop().await;
    let ended = healthcheck(&address).await;
    assert!(ended.sentence(1).contains("does not answer"), "{ended:?}");
    mongod.remove().await;

    // One that accepts and is silent is not ready either.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let ended = healthcheck(&silent.local_addr().expect("its address").to_string()).await;
    assert!(ended.sentence(1).contains("does not answer"), "{ended:?}");
}
