//! A password in a connection string is in nothing that a command says.

use mongodb::bson::doc;
use mongodb::options::ClientOptions;
use reqwest::Method;
use tokio::task::JoinSet;

use super::program::{Ended, Place, pagebucket, run};
use crate::harness::{PATIENCE, eventually, shared, trade};

const PASSWORD: &str = "sesame";

impl Ended {
    #[track_caller]
    fn holds_no_password(&self) {
        assert!(!self.out.contains(PASSWORD) && !self.err.contains(PASSWORD), "{self:?}");
    }
}

/// The first host of the shared mongod.
async fn host() -> String {
    let options = ClientOptions::parse(shared().await.uri()).await.expect("a connection string");
    options.hosts[0].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_that_works_is_not_logged() {
    let mut place = Place::new().await;
    let database = place.database().await;
    let user = doc! { "createUser": "user", "pwd": PASSWORD, "roles": ["readWrite", "dbAdmin"] };
    database.run_command(user).await.expect("a user");
    let (host, name) = (host().await, &place.name);
    place.uri = format!("mongodb://user:{PASSWORD}@{host}/?directConnection=true&authSource={name}");

    let serving = place.serve(&["--log", "trace"]).await;
    serving.client.append(7, &trade(1)).await.expect(201);
    let closing = |request: reqwest::RequestBuilder| request.header("connection", "close");
    serving.client.send(Method::GET, "/v1/customers/7/trades", closing).await.expect(200);
    eventually("the end of the connection in the log", PATIENCE, async || serving.err().contains("TRACE"))
        .await;
    let ended = serving.stop().await;
    assert!(ended.err.contains("TRACE") && ended.err.contains(&host), "it says where it is: {ended:?}");
    ended.holds_no_password();
    let ended = run(&mut place.pagebucket("migrate", &["--log", "trace", "--check"])).await;
    assert_eq!(ended.status, Some(0), "{ended:?}");
    ended.holds_no_password();

    // By the environment, too; and a password that is wrong.
    place.uri = place.uri.replace(PASSWORD, "sesamee");
    let mut command = pagebucket(&["serve", "--listen", "0", "--log", "trace", "--database", &place.name]);
    let ended = run(command.env("MONGODB_URI", &place.uri)).await;
    assert_eq!(ended.sentence(3), "the MongoDB server refuses the user or password of the connection string");
    ended.holds_no_password();
    database.run_command(doc! { "dropUser": "user" }).await.expect("to drop the user");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_in_no_message() {
    let unreachable = [
        "mongodb://user:sesame@127.0.0.1:1/",
        "mongodb://user:sesame@127.0.0.1:1/?authMechanismProperties=AWS_SESSION_TOKEN:a@sesame",
        "mongodb+srv://user:sesame@localhost/",
    ];
    let unusable = [
        // Not a connection string at all.
        "postgres://user:sesame@127.0.0.1/",
        "user:sesame@127.0.0.1",
        "MONGODB://user:sesame@127.0.0.1",
        "mongodb:/user:sesame@127.0.0.1",
        // No host, or none that is one.
        "mongodb://user:sesame",
        "mongodb://user:sesame@",
        "mongodb://user:sesame@127.0.0.1:port",
        "mongodb://user:sesame@127.0.0.1:0",
        "mongodb://user:sesame@127.0.0.1:70000",
        "mongodb://user:sesame@127.0.0.1,,localhost",
        // Characters that should have been escaped.
        "mongodb://user:sesame@pass@127.0.0.1",
        "mongodb://user:pass@sesame@127.0.0.1",
        "mongodb://user:sesame/pass@127.0.0.1",
        "mongodb://user:pass/sesame@127.0.0.1",
        "mongodb://user:sesame?pass@127.0.0.1",
        "mongodb://user:pass?sesame@127.0.0.1",
        "mongodb://user:sesame:pass@127.0.0.1",
        "mongodb://user:pass:sesame@127.0.0.1",
        "mongodb://user:sesame%@127.0.0.1",
        "mongodb://user:%zzsesame@127.0.0.1",
        // Options that are wrong, or secrets themselves.
        "mongodb://user:sesame@127.0.0.1/?tls=perhaps",
        "mongodb://user:sesame@127.0.0.1/?authMechanism=none",
        "mongodb://user:sesame@127.0.0.1/?replicaSet=a&directConnection=true&loadBalanced=true",
        "mongodb://127.0.0.1/?tls=true&tlsCertificateKeyFile=/nowhere&tlsCertificateKeyFilePassword=sesame",
        "mongodb://127.0.0.1/?authMechanism=MONGODB-OIDC&authMechanismProperties=TOKEN:sesame",
        "mongodb+srv://user:sesame@localhost:27017/",
        "mongodb+srv://user:pass@sesame@localhost/",
    ];
    let mut commands = JoinSet::new();
    for uri in unusable.into_iter().chain(unreachable) {
        commands.spawn(async move {
            let mut command =
                pagebucket(&["serve", "--log", "trace", "--listen", "127.0.0.1:0", "--mongodb-uri", uri]);
            (uri, run(&mut command).await)
        });
    }
    for (uri, ended) in commands.join_all().await {
        ended.holds_no_password();
        let expected = if unreachable.contains(&uri) { 3 } else { 2 };
        assert_eq!(ended.status, Some(expected), "{uri}: {ended:?}");
        assert!(!ended.err.contains("panicked"), "{uri}: {ended:?}");
    }

    // What holds no secret is quoted.
    for (uri, said) in [
        ("mongodb://127.0.0.1/?maxPoolSize=many", "maxpoolsize"),
        ("mongodb://127.0.0.1/?directConnection=true&loadBalanced=true", "loadBalanced"),
        ("http://127.0.0.1/", "must begin with mongodb:// or mongodb+srv://"),
    ] {
        let ended = run(&mut pagebucket(&["serve", "--listen", "0", "--mongodb-uri", uri])).await;
        assert!(ended.sentence(2).contains(said), "{uri}: {ended:?}");
    }
}
