//! Flags and their twins, and the commands that need no database.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tokio::net::TcpListener;

use super::program::{Place, Serving, pagebucket, run};
use crate::harness::{Mongod, PATIENCE, TRADES, eventually};

const SETTINGS: &str = include_str!("../../../docs/reference/settings.md");

/// The commands that the reference describes, and what it says of each.
fn described() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.split("\n## pagebucket ").skip(1).filter_map(|section| section.split_once('\n'))
}

#[tokio::test(flavor = "multi_thread")]
async fn help_and_the_reference_have_the_same_flags() {
    let program = run(&mut pagebucket(&["--help"])).await;
    assert_eq!(program.status, Some(0));
    for (command, text) in described() {
        let arguments: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let help = run(&mut pagebucket(&arguments)).await;
        assert_eq!((help.status, help.err.as_str()), (Some(0), ""), "{command}");
        let shown = entries(&help.out);
        let mut named = BTreeSet::from(["--help"]);
        for row in text.lines().filter_map(|line| line.strip_prefix("| `--")) {
            let mut cells = row.split(" |").map(|cell| cell.trim().trim_matches('`'));
            let flag = cells.next().and_then(|cell| cell.split([' ', '`']).next()).expect("a flag");
            let (flag, entry) = shown.get_key_value(&format!("--{flag}")).unwrap_or_else(|| panic!("{flag}"));
            for (name, value) in ["env", "default"].iter().zip(cells) {
                let has_value = entry.contains(&format!("[{name}: {value}"));
                assert_eq!(entry.contains(&format!("[{name}: ")), !value.is_empty(), "{command} {entry}");
                assert!(value.is_empty() || has_value, "{command} {value} in {entry}");
            }
            assert!(entry.lines().count() > 1, "it says what it is for: {entry}");
            named.insert(flag);
        }
        let as_serve = text.lines().find(|line| line.starts_with("Flags as those of `serve`: "));
        named.extend(
            as_serve.into_iter().flat_map(|line| line.split('`')).filter(|name| name.starts_with("--")),
        );
        assert_eq!(shown.keys().map(String::as_str).collect::<BTreeSet<_>>(), named, "{command}");
        let first = command.split(' ').next().unwrap_or_default();
        assert!(program.out.lines().any(|line| line.trim_start().starts_with(first)), "{}", program.out);
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
#[tokio::test(flavor = "multi_thread")]
async fn short_help_fits() {
    for command in described().map(|(command, _)| command).chain([""]) {
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

#[tokio::test(flavor = "multi_thread")]
async fn help_shows_no_secret() {
    let mut command = pagebucket(&["serve", "--help"]);
    let help = run(command.env("MONGODB_URI", "mongodb://user:sesame@127.0.0.1/")).await;
    assert!(help.out.contains("MONGODB_URI") && !help.out.contains("sesame"), "{}", help.out);
}

#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
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
#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
async fn openapi_prints_the_documents_in_the_repository() {
    for (name, arguments) in
        [("openapi.json", &["openapi"][..]), ("openapi-3.0.json", &["openapi", "--spec", "3.0"])]
    {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi").join(name);
        let expected = std::fs::read_to_string(file).expect(name);
        let ended = run(&mut pagebucket(arguments)).await;
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
        let difference = ended.out.lines().zip(expected.lines()).position(|(now, then)| now != then);
        let line = difference.map_or_else(|| "its end".to_owned(), |index| format!("line {}", index + 1));
        assert!(ended.out == expected, "openapi/{name} is out of date from {line} on: run make openapi");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_the_reference_are_those_in_the_repository() {
    for page in ["settings", "metrics"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("docs/reference/{page}.md"));
        let expected = std::fs::read_to_string(file).expect(page);
        let ended = run(&mut pagebucket(&["reference", page])).await;
        assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
        assert!(ended.out == expected, "docs/reference/{page}.md is out of date: run make reference");
    }
}

#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
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

#[tokio::test(flavor = "multi_thread")]
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
    eventually("it is ready again", PATIENCE, || async { healthcheck(&address).await.status == Some(0) })
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
