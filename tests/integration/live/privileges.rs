//! Live streams of a service whose user may not read changes, on a replica set that checks users.

use mongodb::bson::doc;
use reqwest::Method;

use crate::embedded::Place;
use crate::harness::events::Events;
use crate::harness::{Setup, TRADES};

/// What `serve` needs of a database, without `changeStream`.
const ACTIONS: [&str; 10] = [
    "collMod",
    "createCollection",
    "createIndex",
    "dropIndex",
    "find",
    "insert",
    "listCollections",
    "listIndexes",
    "remove",
    "update",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_not_read_changes_reads_tails() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    let other = Setup::at(mongod.uri()).start().await;
    let name = other.database.name();
    let on_database = doc! { "resource": { "db": name, "collection": "" }, "actions": ACTIONS.to_vec() };
    let role = doc! { "createRole": "limited", "privileges": [on_database], "roles": [] };
    other.database.run_command(role).await.expect("a role");
    let user = doc! { "createUser": "limited", "pwd": "sesame", "roles": ["limited"] };
    other.database.run_command(user).await.expect("a user");
    let uri = place.open_uri().replace("mongodb://", "mongodb://limited:sesame@");
    let limited = Setup::at(&format!("{uri}&authSource={name}")).in_database(&other.database);
    let service = limited.start().await;
    let mut events = Events::of(&service.client, 1, "?after=0", &[]).await;
    for (client, numbers) in [(&other.client, 1..=12), (&service.client, 13..=13), (&other.client, 14..=14)] {
        client.append_all(1, numbers.clone()).await;
        events.read(TRADES, *numbers.start(), *numbers.end()).await;
    }
    // That it reads tails is seen by what needs changes. The other service has them.
    service.client.get("/v1/trades/live").await.problem(501, "not-available");
    let begun = other.client.send(Method::HEAD, "/v1/trades/live", |request| request).await;
    assert_eq!(begun.status, 200);
    other.database.run_command(doc! { "find": "trades", "limit": 1 }).await.expect("the database");
    drop((service, other));
    mongod.stop().await;
}
