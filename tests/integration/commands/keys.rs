//! `keys create`, `keys list` and `keys revoke`.

use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::bson::{RawDocumentBuf, doc};
use pagebucket_engine::{Capacity, ConnectionSettings, Deadline, Store};
use pagebucket_http::auth::Refusal;
use pagebucket_http::auth::keys::Keys;
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::Clock;
use tokio::process::Command;

use super::program::{Ended, Place, pagebucket, run};

pub fn keys(place: &Place, command: &str, arguments: &[&str]) -> Command {
    let database = ["keys", command, "--mongodb-uri", &place.uri, "--database", &place.name];
    pagebucket(&[&database, arguments].concat())
}

/// The key that `keys create` printed, as a shell takes it.
fn created(ended: &Ended) -> &str {
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let key = ended.out.strip_suffix('\n').expect("a line");
    assert!(!key.contains(char::is_whitespace), "{ended:?}");
    key
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_listed_and_revoked() {
    let place = Place::new().await;
    let listed = run(&mut keys(&place, "list", &[])).await;
    assert_eq!((listed.status, listed.out.as_str()), (Some(0), "the database has no keys\n"), "{listed:?}");
    let unknown = run(&mut keys(&place, "revoke", &["backend"])).await;
    assert_eq!(unknown.sentence(2), "no key has the name backend");

    let flags = ["--name", "backend", "--scope", "read,append", "--customers", "8,7", "--expires-in", "30"];
    let ended = run(&mut keys(&place, "create", &flags)).await;
    let key = created(&ended).to_owned();
    assert!(ended.err.contains("the key backend is shown this once"), "{ended:?}");
    let again = run(&mut keys(&place, "create", &["--name", "backend", "--scope", "read"])).await;
    assert!(again.sentence(2).contains("--name backend: a key has this name"), "{again:?}");
    assert_eq!(again.out, "");
    created(&run(&mut keys(&place, "create", &["--name", "reports", "--scope", "metrics"])).await);

    // A server takes it.
    let connection = ConnectionSettings {
        uri: place.uri.clone(),
        database: place.name.clone(),
        pool_size: 2,
        observer: None,
    };
    let store =
        Store::connect(connection, Definitions::built_in(), Capacity::default(), Clock::system()).await;
    let store = store.expect("the shared mongod");
    let verified = async || {
        let deadline = Deadline::within(Duration::from_secs(60));
        Keys::new(&store, Clock::system()).principal(&key, deadline).await
    };
    let principal = verified().await.expect("a valid key");
    assert_eq!(&*principal.name, "key:backend");
    assert!(principal.reaches("customers", "7") && !principal.reaches("customers", "9"));

    let table = async || {
        let listed = run(&mut keys(&place, "list", &[])).await;
        assert_eq!(listed.status, Some(0), "{listed:?}");
        let rows = listed.out.lines().map(|line| {
            line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(str::to_owned).collect()
        });
        rows.collect::<Vec<Vec<String>>>()
    };
    let rows = table().await;
    assert_eq!(rows[0], ["NAME", "STATE", "SCOPES", "OWNERS", "CREATED", "LAST USED", "EXPIRES"]);
    assert_eq!(rows[1][..4], ["backend", "valid", "read,append", "7,8"]);
    assert_eq!(rows[2][..4], ["reports", "valid", "metrics", "*"]);
    assert_eq!(rows[2][5..], ["never", "never"]);
    assert!(rows[1][6].ends_with('Z') && rows.len() == 3, "{rows:?}");

    let revoked = run(&mut keys(&place, "revoke", &["backend"])).await;
    assert_eq!(revoked.status, Some(0), "{revoked:?}");
    assert_eq!(revoked.out, "revoked backend: every server refuses it within 60 s\n");
    let refused = verified().await;
    assert!(
        matches!(&refused, Err(Refusal::Invalid(words, Some(_))) if words.contains("was revoked")),
        "{refused:?}"
    );
    let again = run(&mut keys(&place, "revoke", &["backend"])).await;
    assert_eq!((again.status, again.out.as_str()), (Some(0), "backend was revoked before\n"), "{again:?}");
    assert!(table().await[1][1].starts_with("revoked 20"), "{rows:?}");
    let again = run(&mut keys(&place, "create", &["--name", "backend", "--scope", "read"])).await;
    assert!(again.sentence(2).contains("before it was revoked"), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_nowhere_but_on_standard_output() {
    let place = Place::new().await;
    let flags = ["--name", "backend", "--scope", "read", "--log", "trace"];
    let ended = run(&mut keys(&place, "create", &flags)).await;
    let key = created(&ended);
    let random = key.strip_prefix("pb_").expect("its prefix");
    assert_eq!(random.len(), 43);
    // Any part of it would be too much.
    let parts: Vec<_> = (0..=random.len() - 8).map(|at| &random[at..at + 8]).collect();
    let holds = |text: &[u8]| {
        parts.iter().any(|part| text.windows(part.len()).any(|window| window == part.as_bytes()))
    };
    assert!(holds(ended.out.as_bytes()) && !holds(ended.err.as_bytes()), "{ended:?}");
    let listed = run(&mut keys(&place, "list", &["--log", "trace"])).await;
    assert!(!holds(listed.out.as_bytes()) && !holds(listed.err.as_bytes()), "{listed:?}");

    let database = place.database().await;
    let mut records = 0;
    for name in database.list_collection_names().await.expect("names") {
        let found = database.collection::<RawDocumentBuf>(&name).find(doc! {}).await.expect("an answer");
        let documents: Vec<_> = found.try_collect().await.expect("documents");
        assert!(documents.iter().all(|document| !holds(document.as_bytes())), "{name}");
        records += if name == "api_keys" { documents.len() } else { 0 };
    }
    assert_eq!(records, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_checked_before_the_database() {
    // Nothing listens there: what is wrong with the flags is told at once.
    let place = Place { uri: "mongodb://127.0.0.1:1/".to_owned(), ..Place::new().await };
    for (flags, part) in [
        (&["--name", "a b", "--scope", "read"][..], "must be 1 to 64 of the characters"),
        (&["--name", "a", "--scope", "write"], "must be one of read, append"),
        (&["--name", "a", "--scope", "read", "--owners", "rooms=7"], "must name a collection of owners"),
        (&["--name", "a", "--scope", "read", "--owners", "seven"], "--owners seven: must be"),
        (&["--name", "a", "--scope", "read", "--expires", "2001-01-01T00:00:00Z"], "must be in the future"),
    ] {
        let ended = run(&mut keys(&place, "create", flags)).await;
        assert_eq!((ended.status, ended.out.as_str()), (Some(2), ""), "{flags:?}: {ended:?}");
        assert!(ended.err.contains(part), "{flags:?}: {ended:?}");
    }
    let ended = run(&mut keys(&place, "create", &["--name", "a", "--scope", "read"])).await;
    assert!(ended.sentence(3).contains("no MongoDB server answers"), "{ended:?}");
}
