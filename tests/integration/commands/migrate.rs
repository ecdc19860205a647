//! `migrate`, and what it takes for a set to be there first.

use mongodb::bson::{Document, doc};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::program::{Place, all_migrations, run};
use crate::harness::{Mongod, PATIENCE, TRADES, eventually, spawn, trade};

#[tokio::test(flavor = "multi_thread")]
async fn migrate_lists_and_applies() {
    let place = Place::new().await;
    for _ in 0..2 {
        let ended = run(&mut place.pagebucket("migrate", &["--check"])).await;
        assert_eq!(ended.sentence(1), "migrations are pending");
        assert_eq!(ended.out, all_migrations("pending"));
    }
    let made = place.database().await.list_collection_names().await.expect("names");
    assert_eq!(made, [""; 0], "a check makes nothing");
    for (arguments, out) in [
        (&[][..], all_migrations("applied").as_str()),
        (&["--check"], "nothing is pending\n"),
        (&[], "nothing was pending\n"),
    ] {
        let ended = run(&mut place.pagebucket("migrate", arguments)).await;
        assert_eq!((ended.status, ended.out.as_str()), (Some(0), out), "{ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_renews_the_epoch() {
    let place = Place::new().await;
    run(&mut place.pagebucket("migrate", &[])).await;
    let tag = async || {
        let serving = place.serve(&[]).await;
        let tag = serving.client.get("/v1/customers/7").await.header("etag").to_owned();
        serving.stop().await;
        tag
    };
    let before = tag().await;
    let renewed = run(&mut place.pagebucket("migrate", &["--renew-epoch"])).await;
    assert_eq!(renewed.status, Some(0), "{renewed:?}");
    assert!(renewed.out.starts_with("the epoch is renewed"), "{renewed:?}");
    let after = tag().await;
    assert_ne!(before, after);
    assert_eq!(before.split('.').nth(1), after.split('.').nth(1), "only the epoch differs");
    assert_eq!(tag().await, after, "a restart keeps it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_epoch_is_pending_and_becomes_another() {
    let place = Place::new().await;
    run(&mut place.pagebucket("migrate", &[])).await;
    let records = place.database().await.collection::<Document>("migrations");
    let epoch = async || records.find_one(doc! { "_id": "epoch" }).await.expect("an answer");
    let mut before = vec![epoch().await.expect("an epoch")];
    let damage = async |damage: Option<Document>| {
        let damaged = match damage {
            None => records.delete_one(doc! { "_id": "epoch" }).await.expect("an answer").deleted_count,
            Some(set) => {
                let set = doc! { "$set": set };
                records.update_one(doc! { "_id": "epoch" }, set).await.expect("an answer").modified_count
            }
        };
        assert_eq!(damaged, 1);
    };

    damage(None).await;
    let refused = run(&mut place.pagebucket("serve", &["--listen", "127.0.0.1:0", "--no-migrate"])).await;
    assert!(refused.sentence(3).contains("migrations are pending: epoch;"), "{refused:?}");
    let check = run(&mut place.pagebucket("migrate", &["--check"])).await;
    assert_eq!((check.status, check.out.as_str()), (Some(1), "pending: epoch\n"), "{check:?}");
    let migrated = run(&mut place.pagebucket("migrate", &[])).await;
    assert_eq!((migrated.status, migrated.out.as_str()), (Some(0), "applied: epoch\n"), "{migrated:?}");
    before.push(epoch().await.expect("an epoch"));

    damage(Some(doc! { "value": 7.5 })).await;
    let renewed = run(&mut place.pagebucket("migrate", &["--renew-epoch"])).await;
    assert_eq!(renewed.status, Some(0), "{renewed:?}");
    before.push(epoch().await.expect("an epoch"));

    damage(None).await;
    let serving = place.serve(&[]).await;
    let tag = serving.client.get("/v1/customers/7").await.header("etag").to_owned();
    serving.stop().await;
    before.push(epoch().await.expect("an epoch"));

    let mut epochs: Vec<i64> = before.iter().map(|epoch| epoch.get_i64("value").expect("an int64")).collect();
    assert_eq!(tag.trim_matches('"').split('.').next(), Some(&*format!("{:x}", epochs[3])));
    epochs.sort_unstable();
    epochs.dedup();
    assert_eq!(epochs.len(), before.len(), "each is another one: {before:?}");
    let nothing = run(&mut place.pagebucket("migrate", &[])).await;
    assert_eq!(nothing.out, "nothing was pending\n");
}

/// As after a restore, where both are started together. The connection string makes each attempt short.
#[tokio::test(flavor = "multi_thread")]
async fn a_mongod_that_is_starting_is_waited_for() {
    let place = Place::new().await;
    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let starting = listener.local_addr().expect("its address");
    let mongod = place.uri.trim_start_matches("mongodb://").split('/').next().expect("a host").to_owned();
    let accepting = spawn(async move {
        let mut connections = JoinSet::new();
        for number in 0.. {
            let (mut client, _) = listener.accept().await.expect("a connection");
            if number < 3 {
                continue;
            }
            let mut server = TcpStream::connect(&*mongod).await.expect("the shared mongod");
            connections.spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        }
    });
    let uri = format!("mongodb://{starting}/?directConnection=true&serverSelectionTimeoutMS=100");
    let place = Place { uri, ..place };
    let renewed = run(&mut place.pagebucket("migrate", &["--renew-epoch"])).await;
    assert_eq!(renewed.status, Some(0), "{renewed:?}");
    assert!(renewed.out.starts_with("the epoch is renewed"), "{renewed:?}");
    accepting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn initiate_makes_a_fresh_member_a_set() {
    let mongod = Mongod::fresh_member().await;
    let address = mongod.uri().trim_start_matches("mongodb://").split('/').next().expect("a host").to_owned();
    // As compose has it: the set is named before it exists.
    let place = Place {
        history: TRADES,
        uri: format!("mongodb://{address}/?replicaSet=rs0"),
        name: "pagebucket".to_owned(),
    };

    // The first finds a mongod that may still be starting, and waits for it.
    let ended = run(&mut place.pagebucket("migrate", &["--initiate"])).await;
    assert_eq!((ended.status, ended.out), (Some(0), all_migrations("applied")));
    let admin = mongod.client().await.database("admin");
    let config = admin.run_command(doc! { "replSetGetConfig": 1 }).await.expect("a set");
    let config = config.get_document("config").expect("its configuration");
    assert_eq!(config.get_str("_id").ok(), Some("rs0"), "{config}");
    let members = config.get_array("members").expect("members");
    assert_eq!(members.len(), 1, "{config}");
    assert_eq!(members[0].as_document().unwrap().get_str("host").ok(), Some(&*address), "{config}");

    for arguments in [&["--initiate"][..], &["--initiate", "--check"], &[]] {
        let ended = run(&mut place.pagebucket("migrate", arguments)).await;
        assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
        assert!(ended.out.starts_with("nothing "), "{arguments:?}: {ended:?}");
    }
    let again = admin.run_command(doc! { "replSetGetConfig": 1 }).await.expect("a set");
    assert_eq!(again.get_document("config").ok(), Some(config), "a set is left as it is");

    let serving = place.serve(&["--no-migrate"]).await;
    serving.client.append(7, &trade(1)).await.expect(201);
    assert!(!serving.stop().await.err.contains("not a member of a replica set"));
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn initiate_refuses_a_standalone_server() {
    let mongod = Mongod::standalone().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let ended = run(&mut place.pagebucket("migrate", &["--initiate"])).await;
    assert!(ended.sentence(3).contains("it was not started with --replSet"), "{ended:?}");
    assert_eq!(ended.out, "");
    mongod.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_the_server_is_named() {
    let place = Place::new().await;
    let build = place.database().await.run_command(doc! { "buildInfo": 1 }).await.expect("an answer");
    let version = build.get_str("version").expect("a version");
    let ended = run(&mut place.pagebucket("migrate", &["--check"])).await;
    let says =
        |level: &str, what: &str| ended.err.lines().any(|line| line.contains(level) && line.contains(what));
    assert!(says("INFO", version), "{ended:?}");
    for (begin, warning) in [("6.0.", "MongoDB no longer supports 6.0"), ("7.0.28", "CVE-2026-82058")] {
        assert_eq!(says("WARN", warning), version.starts_with(begin), "{begin}: {ended:?}");
    }
}

/// As emulations of MongoDB answer: in one sentence, at the start.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_lacks_is_named() {
    let mongod = Mongod::failing().await;
    let place = Place::on(&mongod, TRADES);
    let lacking = async |command: &str, code: i32| {
        let data = doc! { "failCommands": [command], "errorCode": code, "appName": "pagebucket" };
        mongod.fail_point("failCommand", "alwaysOn", data).await;
    };
    lacking("create", 40415).await;
    let ended = run(&mut place.pagebucket("migrate", &[])).await;
    assert!(
        ended.sentence(3).starts_with("the server has no clustered collections, without which"),
        "{ended:?}"
    );
    lacking("collMod", 238).await;
    let ended = run(&mut place.pagebucket("migrate", &[])).await;
    assert!(
        ended.sentence(3).starts_with("the server has no validators ($jsonSchema), without"),
        "{ended:?}"
    );
    lacking("aggregate", 40324).await;
    let warns = |said: &str| {
        let mut lines = said.lines().filter(|line| line.contains("WARN"));
        lines
            .any(|line| line.contains("no change streams") && line.contains("no validators with $jsonSchema"))
    };
    let ended = run(&mut place.pagebucket("migrate", &["--check"])).await;
    assert!(warns(&ended.err), "{ended:?}");
    let serving = place.serve(&[]).await;
    eventually("the warning", PATIENCE, async || warns(&serving.err())).await;
    assert_eq!(serving.stop().await.status, Some(0));
    mongod.remove().await;
}
