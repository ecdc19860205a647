//! A backup is restored: the epoch, and the owners that were erased meanwhile.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{DateTime, Document, doc};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;

use super::embedded::Here;
use super::export::Scratch;
use super::program::{Ended, Place, Serving, run};
use crate::harness::tokens::{AUDIENCE, ISSUER, Signer, claims};
use crate::harness::{Client, PATIENCE, TOTAL, TRADES, eventually, stored};

const PAGE: &str = include_str!("../../../docs/how-to/back-up.md");

/// All documents of a database, by collection.
struct Dump(Vec<(String, Vec<Document>)>);

impl Dump {
    async fn of(database: &Database) -> Self {
        let mut collections = Vec::new();
        for name in database.list_collection_names().await.expect("names") {
            let found = database.collection::<Document>(&name).find(doc! {}).await.expect("documents");
            collections.push((name, found.try_collect().await.expect("documents")));
        }
        Self(collections)
    }

    async fn restore(&self, database: &Database) {
        for (name, documents) in &self.0 {
            let collection = database.collection::<Document>(name);
            collection.delete_many(doc! {}).await.expect("an answer");
            if !documents.is_empty() {
                collection.insert_many(documents).await.expect("they were there before");
            }
        }
    }
}

/// A file that ends with this value.
struct File(PathBuf);

impl File {
    fn new(place: &Place, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}-audit.log", place.name));
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

async fn delete(client: &Client, owner: u64) -> Value {
    let erased = client.send(Method::DELETE, &TRADES.owner_path(owner), |request| request).await;
    erased.expect(200)
}

/// Makes all tombstones so old that they may be swept.
async fn age(database: &Database) {
    let age = doc! { "$set": { "since": { "$subtract": ["$$NOW", 3_600_000_i64] } } };
    let trades = database.collection::<Document>("trades");
    // Once: a tombstone with another `since` is that of another erasure.
    let young = doc! { "$gt": ["$since", { "$subtract": ["$$NOW", 1_800_000_i64] }] };
    trades.update_many(doc! { "swept": false, "$expr": young }, vec![age]).await.expect("an answer");
}

/// Runs a command, for which the time until the last sweep passes at once.
async fn run_aging(database: &Database, command: &mut Command) -> Ended {
    let aging = async {
        loop {
            age(database).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        ended = run(command) => ended,
        () = aging => unreachable!("it has no end"),
    }
}

/// Appends items until the server has learnt that the owner is reopened.
async fn append_when_reopened(client: &Client, owner: u64) -> Value {
    let items = TRADES.items(26..=30);
    eventually("it is reopened", PATIENCE, async || client.get(&TRADES.path(owner)).await.status == 200)
        .await;
    client.append(owner, &items).await.expect(201)
}

/// Owner 1 is never erased. 2 is erased after the backup, with more pages than the backup has of it; 5 was
/// not there before the backup. 3 is erased and reopened before it, 4 after it. 6 is erased before it, and
/// reopened after it.
#[tokio::test(flavor = "multi_thread")]
async fn owners_that_were_erased_after_the_backup_are_erased_again() {
    let place = Place::new().await;
    let database = place.database().await;
    let serve = async || place.serve(&["--allow-erase", "--log-format", "json"]).await;
    let reopen = async |owner: &str| {
        let flags = ["--owner", owner, "--reopen", "--log-format", "json"];
        let reopened = run(&mut place.pagebucket("erase", &flags)).await;
        assert_eq!(reopened.status, Some(0), "{reopened:?}");
        reopened.err
    };
    let first = serve().await;
    for owner in [1, 2, 3, 4, 6] {
        first.client.append_all(owner, 1..=25).await;
    }
    let flags = ["--owner", "3", "--log-format", "json"];
    let erased = run_aging(&database, &mut place.pagebucket("erase", &flags)).await;
    assert_eq!(erased.status, Some(0), "{erased:?}");
    let mut log = erased.err;
    assert_eq!(log.matches("owner-erased").count(), 2, "at its beginning, and before its end: {log}");
    delete(&first.client, 6).await;
    age(&database).await;
    assert_eq!(delete(&first.client, 6).await["swept"], true);
    log += &reopen("3").await;
    append_when_reopened(&first.client, 3).await;
    let tag = first.client.get("/v1/customers/1/trades/pages/1").await.header("etag").to_owned();

    let backup = Dump::of(&database).await;
    first.client.append_all(1, 26..=35).await;
    first.client.append_all(2, 26..=35).await;
    first.client.append_all(5, 1..=25).await;
    for owner in [4, 2, 5] {
        delete(&first.client, owner).await;
    }
    age(&database).await;
    assert_eq!(delete(&first.client, 4).await["swept"], true);
    log += &reopen("4").await;
    log += &reopen("6").await;
    append_when_reopened(&first.client, 4).await;
    log += &first.stop().await.err;

    backup.restore(&database).await;
    let renewed = run(&mut place.pagebucket("migrate", &["--renew-epoch"])).await;
    assert_eq!(renewed.status, Some(0), "{renewed:?}");
    // In any order.
    let file = File::new(&place, &log.lines().rev().collect::<Vec<_>>().join("\n"));
    let replay = async || {
        let replayed = run_aging(&database, &mut place.pagebucket("erase", &["--replay", file.path()])).await;
        assert_eq!(replayed.status, Some(0), "{replayed:?}");
        replayed.out
    };
    let replayed = replay().await;
    assert!(replayed.ends_with("replayed: 4 erased, 2 of them reopened; 1 known\n"), "{replayed}");
    let once = Dump::of(&database).await.0;
    let again = replay().await;
    assert_eq!(again, "replayed: 0 erased, 0 of them reopened; 5 known\n");
    assert!(Dump::of(&database).await.0 == once, "a second replay changes nothing");
    let verified = run(&mut place.pagebucket("verify", &[])).await;
    assert_eq!((verified.status, verified.out.as_str()), (Some(0), ""), "{verified:?}");

    let second = serve().await;
    let client = &second.client;
    assert_ne!(client.get("/v1/customers/1/trades/pages/1").await.header("etag"), tag);
    stored(&database, TRADES, 1).await.holds_exactly(1..=25);
    stored(&database, TRADES, 3).await.holds_exactly(26..=30);
    for owner in [2, 5] {
        client.get(&TRADES.path(owner)).await.problem(410, "erased");
    }
    for owner in [4, 6] {
        let appended = append_when_reopened(client, owner).await;
        assert_eq!(appended["ranges"], json!([{ "firstSeq": 31, "lastSeq": 35 }]), "{owner}");
    }
    second.stop().await;
    // Page 4 was opened after the backup, and has used its number.
    age(&database).await;
    let swept = run(&mut place.pagebucket("erase", &["--owner", "2"])).await;
    assert_eq!(swept.status, Some(0), "{swept:?}");
    reopen("2").await;
    assert_eq!(stored(&database, TRADES, 2).await.first_page, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_cannot_be_replayed_are_named() {
    let place = Place::new().await;
    let database = place.database().await;
    let serving = place.serve(&["--allow-erase"]).await;
    for owner in [7, 8, 9] {
        serving.client.append_all(owner, 1..=25).await;
    }
    delete(&serving.client, 10).await;
    serving.stop().await;
    let line = |event: &str, owner: &str, history: &str, first_page: u64| {
        json!({
            "event": event, "owners": "customers", "owner": owner, "history": history, "first_page": first_page,
            "second": 1_698_349_623, "erased": "2001-01-01T00:00:00.000Z", "target": "pagebucket::audit",
        })
        .to_string()
    };
    let erased = line("owner-erased", "8", "trades", 4);
    let lines = [
        r#"{"message":"serving","target":"pagebucket"}"#,
        "",
        // Page 2 was opened after the erasure, and nothing says that the owner was reopened.
        &line("owner-erased", "7", "trades", 2),
        &erased[..40],
        &line("owner-erased", "8", "notes", 4),
        &line("owner-erased", "kitchen", "trades", 4),
        &erased,
        // Of an owner that had nothing then.
        &line("owner-erased", "9", "trades", 1),
        // Of an owner that was erased again since.
        &line("owner-reopened", "10", "trades", 4),
        &line("owner-erased", "9", "trades", 4).replace("2001", "2999"),
    ];
    let file = File::new(&place, &lines.join("\n"));
    let replayed = run(&mut place.pagebucket("erase", &["--replay", file.path(), "--log", "error"])).await;
    assert_eq!(replayed.sentence(1), "5 lines are refused");
    let named: Vec<_> = replayed.err.lines().filter(|said| said.starts_with("line ")).collect();
    let expected = [
        "line 4: names an erasure, but is not a JSON object",
        "line 5: there is no history notes: name its definition by --histories",
        "line 6: is damaged: `owner` must be a whole number",
        "line 10: `erased` is later than now",
        "line 3: trades of customers=7: has pages from after the erasure, but was not reopened",
    ];
    assert_eq!(named.len(), expected.len(), "{replayed:?}");
    for (said, expected) in named.iter().zip(expected) {
        assert!(said.starts_with(expected), "{said}");
    }
    assert!(replayed.out.ends_with("replayed: 1 erased, 0 of them reopened; 2 known\n"), "{replayed:?}");
    stored(&database, TRADES, 7).await.holds_exactly(1..=25);
    stored(&database, TRADES, 9).await.holds_exactly(1..=25);
    let erased = async |owner: i64| {
        let left = database.collection::<Document>("trades").find_one(doc! { "customerId": owner }).await;
        let tombstone = left.expect("an answer").expect("a tombstone");
        (*tombstone.get_datetime("erased").expect("a date"), tombstone.get_i64("firstPage").ok())
    };
    let at = DateTime::parse_rfc3339_str("2001-01-01T00:00:00Z").expect("a date");
    assert_eq!(erased(8).await, (at, Some(4)));
    let (later, first_page) = erased(10).await;
    assert!(later > at && first_page == Some(4), "a later erasure stays, with the greater numbers: {later}");

    let other = File::new(&place, r#"{"message":"serving","target":"pagebucket"}"#);
    let nothing = run(&mut place.pagebucket("erase", &["--replay", other.path(), "--log", "error"])).await;
    assert!(nothing.status == Some(0) && nothing.err.contains("no line is of an erasure"), "{nothing:?}");
    let missing = run(&mut place.pagebucket("erase", &["--replay", "/no/such/audit.log"])).await;
    assert!(missing.sentence(2).starts_with("--replay /no/such/audit.log: "), "{missing:?}");
    let endless = run(&mut place.pagebucket("erase", &["--replay", "/dev/zero"])).await;
    assert!(endless.sentence(2).starts_with("--replay /dev/zero: line 1 is longer than "), "{endless:?}");
}

/// The `sub` of a token may have spaces, and is logged before anything is known of its scopes.
#[tokio::test(flavor = "multi_thread")]
async fn no_client_can_forge_a_line() {
    let (place, signer) = (Place::new().await, Signer::es256("first"));
    let set = Scratch::new("jwks.json");
    std::fs::write(set.path(), json!({ "keys": [signer.jwk()] }).to_string()).expect("a file");
    let auth = ["--auth", "jwt", "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE, "--jwks", set.path()];
    let forged = |quote: &str| {
        format!(
            "ann pagebucket::audit::erasures: an owner is erased event={quote}owner-erased{quote} owners={quote}customers{quote} \
             owner=8 history={quote}trades{quote} first_page=3 second=1698349623 erased=2026-01-01T00:00:00.000Z"
        )
    };
    let json = json!({
        "event": "owner-erased", "owners": "customers", "owner": "8", "history": "trades", "first_page": 3, "second": 1_698_349_623,
        "erased": "2026-01-01T00:00:00.000Z", "target": "pagebucket::audit::erasures",
    });
    for format in ["pretty", "json"] {
        let serving = place.serve(&[&auth[..], &["--log-format", format]].concat()).await;
        for name in [forged(""), forged("\""), json.to_string()] {
            let client = serving.client.with_token(signer.sign(&claims(&name, "", json!([]))));
            client.get("/v1/customers/8/trades").await.problem(403, "forbidden");
        }
        let admin = serving.client.with_token(signer.sign(&claims("admin", "read append admin", json!("*"))));
        admin.append_all(8, 1..=25).await;
        delete(&admin, 9).await;
        let log = serving.stop().await.err;
        assert!(log.contains("ann%20pagebucket::audit::erasures:%20an"), "a name is one word: {log}");
        let is_list = |line: &&str| {
            line.starts_with('{') && line.ends_with("\"target\":\"pagebucket::audit::erasures\"}")
        };
        assert_eq!(log.lines().filter(is_list).count(), 1, "the list has one form: {log}");
        let file = File::new(&place, &log);
        let replayed = run(&mut place.pagebucket("erase", &["--replay", file.path()])).await;
        assert_eq!((replayed.status, replayed.err.matches("line ").count()), (Some(0), 0), "{replayed:?}");
        assert!(replayed.out.ends_with("replayed: 1 erased, 0 of them reopened; 0 known\n"), "{replayed:?}");
        stored(&place.database().await, TRADES, 8).await.holds_exactly(1..=25);
        let database = place.database().await;
        database.collection::<Document>("trades").delete_many(doc! {}).await.expect("an answer");
    }
}

/// The steps that the runbook has, as it has them. The log has the format of a server without flags, and lets
/// only errors pass.
#[tokio::test(flavor = "multi_thread")]
async fn the_runbook_restores_a_backup() {
    let Some(here) = Here::new() else { return };
    let (_, steps) = PAGE.split_once("```sh\nmv data lost").expect("the runbook restores a backup");
    let (steps, _) = steps.split_once("```").expect("its end");
    let steps = format!("mv data lost{steps}");
    let (steps, verify) =
        steps.split_once("\npagebucket serve --data-dir data &\n").expect("a server is started");

    let serve = async || {
        let flags =
            ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data", "--log", "error", "--allow-erase"];
        Serving::start(TRADES, &mut here.pagebucket(&flags)).await
    };
    let serving = serve().await;
    serving.client.append_all(7, 1..=12).await;
    serving.client.append_all(9, 1..=12).await;
    let tag = serving.client.get("/v1/customers/7/trades/pages/1").await.header("etag").to_owned();
    serving.stop().await;
    let shell = async |script: &str| {
        let mut shell = super::program::pagebucket(&[]);
        let program = shell.as_std().get_program().to_owned();
        shell = Command::new("sh");
        shell.args(["-e", "-c", &format!("pagebucket() {{ \"$PROGRAM\" \"$@\"; }}\n{script}")]);
        shell.env_clear().env("PATH", "/usr/bin:/bin").env("PROGRAM", program).kill_on_drop(true);
        run(&mut here.set(shell)).await
    };
    let copied = shell("cp -a data backup").await;
    assert_eq!(copied.status, Some(0), "{copied:?}");
    let serving = serve().await;
    serving.client.append_all(7, 13..=14).await;
    delete(&serving.client, 9).await;
    let ended = serving.stop().await;
    std::fs::write(here.directory.join("audit.log"), ended.err).expect("a file");

    let restored = shell(steps).await;
    assert_eq!(restored.status, Some(0), "{restored:?}");
    let said: Vec<_> = restored.out.lines().collect();
    assert_eq!(
        said,
        [
            "the epoch is renewed; restart running servers",
            "owners that were erased since the backup are back: erase them again with erase --replay",
            "nothing was pending",
            "trades of customers=9: erased",
            "the last sweep is left to a running server",
            "replayed: 1 erased, 0 of them reopened; 0 known",
        ]
    );
    let serving = serve().await;
    assert_ne!(serving.client.get("/v1/customers/7/trades/pages/1").await.header("etag"), tag);
    let trades = serving.client.get("/v1/customers/7/trades").await.expect(200);
    assert_eq!(trades[TOTAL], 12, "{trades}");
    serving.client.get("/v1/customers/9/trades").await.problem(410, "erased");
    let verified = shell(verify).await;
    assert_eq!((verified.status, verified.out.as_str()), (Some(0), ""), "{verified:?}");
    serving.stop().await;
}
