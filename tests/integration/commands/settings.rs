//! The file of `serve --config`, and what `--print-config` prints.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::process::Command;

use super::program::{Ended, Place, Serving, pagebucket, run};
use crate::harness::TRADES;

/// A file of settings, until this value is dropped.
struct SettingsFile(PathBuf);

impl SettingsFile {
    fn new(text: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "pagebucket-settings-{}-{}.toml",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }

    fn serve(&self, arguments: &[&str]) -> Command {
        let file = self.0.to_str().expect("a path");
        pagebucket(&[&["serve", "--config", file], arguments].concat())
    }
}

impl Drop for SettingsFile {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

async fn printed(command: &mut Command) -> String {
    let ended = run(command.arg("--print-config")).await;
    assert_eq!((ended.status, ended.err.as_str()), (Some(0), ""));
    ended.out
}

async fn refused(text: &str) -> (SettingsFile, Ended) {
    let file = SettingsFile::new(text);
    let ended = run(&mut file.serve(&["--print-config"])).await;
    assert_eq!((ended.status, ended.out.as_str()), (Some(2), ""), "{text}");
    (file, ended)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flag_counts_before_the_environment_and_this_before_the_file() {
    let file = SettingsFile::new("max-requests = 7\nno-explorer = true\nlog = \"warn\"\n");
    let has = |text: &str, line: &str| assert!(text.lines().any(|printed| printed == line), "{line}: {text}");
    let usual = printed(&mut pagebucket(&["serve"])).await;
    for line in ["max-requests = 1024", "no-explorer = false", "log = \"info\""] {
        has(&usual, line);
    }
    let of_file = printed(&mut file.serve(&[])).await;
    for line in ["max-requests = 7", "no-explorer = true", "log = \"warn\"", "max-uploads = 64"] {
        has(&of_file, line);
    }
    let mut of_both = file.serve(&[]);
    of_both
        .env("PAGEBUCKET_MAX_REQUESTS", "8")
        .env("PAGEBUCKET_NO_EXPLORER", "false")
        .env("PAGEBUCKET_LOG", "error");
    let of_both = printed(&mut of_both).await;
    for line in ["max-requests = 8", "no-explorer = false", "log = \"error\""] {
        has(&of_both, line);
    }
    let mut of_all = file.serve(&["--max-requests", "9", "--log", "debug"]);
    let of_all = printed(of_all.env("PAGEBUCKET_MAX_REQUESTS", "8").env("PAGEBUCKET_LOG", "error")).await;
    for line in ["max-requests = 9", "log = \"debug\"", "no-explorer = true"] {
        has(&of_all, line);
    }
    let mut by_variable = pagebucket(&["serve"]);
    assert_eq!(printed(by_variable.env("PAGEBUCKET_CONFIG", &file.0)).await, of_file);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_printed_is_read_again() {
    let file = SettingsFile::new(
        r#"
        listen = 0
        auth = ["jwt", "keys"]
        jwt-issuer = "https://issuer.example/\"a\""
        jwt-audience = "api"
        jwks = "keys.json"
        retain-pages = ["trades=100", "notes=7"]
        allowed-hosts = "api.example,192.0.2.1"
        cors-origins = []
        rate-limit = "600/m"
        page-cache = "1GiB"
        max-body = 2048
        write-timeout = "2m"
        key-retention = "7d"
        "#,
    );
    let first = printed(&mut file.serve(&[])).await;
    for line in [
        "listen = 0",
        r#"auth = ["jwt", "keys"]"#,
        r#"retain-pages = ["trades=100", "notes=7"]"#,
        r#"allowed-hosts = ["api.example", "192.0.2.1"]"#,
        "cors-origins = []",
        r#"page-cache = "1GiB""#,
        "max-body = 2048",
        r#"write-timeout = "2m""#,
        r#"header-timeout = "30s""#,
    ] {
        assert!(first.lines().any(|printed| printed == line), "{line}: {first}");
    }
    assert_eq!(printed(&mut SettingsFile::new(&first).serve(&[])).await, first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_not_printed() {
    let secret = "mongodb://user:sesame@127.0.0.1/";
    let file = SettingsFile::new(&format!("mongodb-uri = \"{secret}\"\ndatabase = \"shop\"\n"));
    for command in [&mut file.serve(&[]), pagebucket(&["serve"]).env("MONGODB_URI", secret)] {
        let text = printed(command).await;
        assert!(text.contains("database = ") && !text.contains("sesame"), "{text}");
    }
    let (_file, ended) = refused(&format!("mongodb-uri = \"{secret}\ndatabase = \"shop\"")).await;
    assert!(ended.err.contains(": line 1: ") && !ended.err.contains("sesame"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistake_in_the_file_is_named() {
    for (text, part) in [
        ("page-cahce = 1", "page-cahce: there is no such setting; the nearest name is page-cache"),
        ("print-config = true", "print-config: there is no such setting"),
        ("[limits]\nmax-requests = 1", "limits: there is no such setting"),
        (
            "page-cache = \"64MB\"",
            "page-cache: invalid value '64MB' for '--page-cache <SIZE>': must be 0B to ",
        ),
        ("page-cache = [1, 2]", "page-cache: must be a text or a whole number"),
        (
            "header-timeout = \"6m\"",
            "header-timeout: invalid value '6m' for '--header-timeout <TIME>': must be 1s to 300s",
        ),
        ("max-requests = 0", "max-requests: invalid value '0' for '--max-requests <N>': 0 is not in"),
        (
            "read-preference = \"any\"",
            "read-preference: invalid value 'any' for '--read-preference <MODE>' [possible values: primary,",
        ),
        ("log = \"inof\"", "log: invalid value 'inof' for '--log <FILTER>'"),
        ("listen = 8080\nlisten = 8081", ": line 2: duplicate key"),
    ] {
        let (file, ended) = refused(text).await;
        let sentence = ended.sentence(2);
        assert!(
            sentence.starts_with(&format!("{}: ", file.0.display())) && sentence.contains(part),
            "{sentence}"
        );
    }
    // What does not go together is refused as it is of flags.
    let (_file, ended) = refused("tls-cert = \"cert.pem\"").await;
    assert_eq!(ended.sentence(2), "--tls-cert needs --tls-key");
    let missing = run(&mut pagebucket(&["serve", "--config", "/nowhere/settings.toml"])).await;
    assert!(missing.sentence(2).starts_with("/nowhere/settings.toml: cannot be read: "), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_runs_with_a_file() {
    let place = Place::new().await;
    let text = format!(
        "mongodb-uri = \"{}\"\ndatabase = \"{}\"\nlisten = \"127.0.0.1:0\"\nmax-body = \"1KiB\"\n",
        place.uri, place.name
    );
    let file = SettingsFile::new(&text);
    let serving = Serving::start(TRADES, &mut file.serve(&[])).await;
    let answer = serving.client.post_text("/v1/customers/7/trades", " ".repeat(1025)).await;
    answer.problem(413, "body-too-large");
    serving.stop().await;
}
