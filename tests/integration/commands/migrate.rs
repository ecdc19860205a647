//! `migrate`, and what it takes for a set to be there first.

use mongodb::bson::doc;

use super::program::{Place, all_migrations, run};
use crate::harness::{Mongod, TRADES, tests, trade};

tests!["commands":
    migrate_lists_and_applies,
    migrate_renews_the_epoch,
    initiate_makes_a_fresh_member_a_set,
    initiate_refuses_a_standalone_server,
];

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

async fn initiate_refuses_a_standalone_server() {
    let mongod = Mongod::standalone().await;
    let place = Place { history: TRADES, uri: mongod.uri().to_owned(), name: "pagebucket".to_owned() };
    let ended = run(&mut place.pagebucket("migrate", &["--initiate"])).await;
    assert!(ended.sentence(3).contains("it was not started with --replSet"), "{ended:?}");
    assert_eq!(ended.out, "");
    mongod.remove().await;
}
