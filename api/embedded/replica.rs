//! The replica set of one node: its state, its way to a primary, its shutdown.

use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use bson::{Document, doc};
use mongodb::Client;
use mongodb::error::ErrorKind;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::layout::EmbeddedError;
use super::secret::Secret;

/// The set's name. It is stored in the data, so it can never change.
pub(crate) const NAME: &str = "rs0";

/// Pause between two looks at a state that mongod does not report by itself.
pub(crate) const POLL: Duration = Duration::from_millis(25);

/// A mongod on the same machine that does not answer a command about itself within this time is frozen.
const ANSWER: Duration = Duration::from_secs(5);

/// The server's codes for a member without a configuration, and for an update of a user who does not exist.
const NOT_YET_INITIALIZED: i32 = 94;
const USER_NOT_FOUND: i32 = 11;

/// The user of clients, in the database `admin`.
pub(crate) const USER: &str = "pagebucket";

/// A direct connection to a port of this machine, as a member of the replica set.
///
/// A member (the user `__system`) needs no stored user, so it can control a mongod that is not primary or has
/// no users yet. With SCRAM both sides prove that they know the key, and another process on the port learns
/// nothing of it.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    client: Client,
    pub(crate) port: u16,
}

impl Replica {
    /// Makes a client; nothing is sent before the first command. It must be made and used in one tokio
    /// runtime.
    pub(crate) async fn at(port: u16, Secret(key): &Secret) -> Result<Self, EmbeddedError> {
        let millis = ANSWER.as_millis();
        let uri = format!(
            "mongodb://__system:{key}@127.0.0.1:{port}/?directConnection=true&appName=pagebucket%20embedded\
             &authSource=local&authMechanism=SCRAM-SHA-256\
             &connectTimeoutMS={millis}&serverSelectionTimeoutMS={millis}"
        );
        let client = Client::with_uri_str(uri).await.map_err(|error| {
            EmbeddedError::NotRun(format!("no client for the private mongod could be made: {error}"))
        })?;
        Ok(Self { client, port })
    }

    /// Whether it is the mongod of this data, and not another process on the port.
    pub(crate) async fn serves(&self, db: &Path) -> bool {
        // Without this look the driver would wait half a second between two attempts.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            return false;
        }
        let Ok(options) = self.run(doc! { "getCmdLineOpts": 1 }).await else { return false };
        let path = options
            .get_document("parsed")
            .and_then(|parsed| parsed.get_document("storage"))
            .and_then(|storage| storage.get_str("dbPath"));
        path.is_ok_and(|path| fs::canonicalize(path).is_ok_and(|path| path == db))
    }

    pub(crate) async fn is_primary_of(&self, db: &Path) -> bool {
        self.serves(db).await && says(&self.hello().await, "isWritablePrimary")
    }

    /// Waits until the mongod of this data is primary, and configures it if necessary.
    pub(crate) async fn until_primary(&self, db: &Path) {
        while !self.serves(db).await {
            sleep(POLL).await;
        }
        loop {
            let hello = self.hello().await;
            if says(&hello, "isWritablePrimary") {
                return;
            }
            // A member of no set, or of one that does not list it (`REMOVED`, after a change of port).
            if says(&hello, "isreplicaset") {
                self.configure().await;
            }
            sleep(POLL).await;
        }
    }

    /// Tells the mongod of this data to shut down, again and again until this is dropped: it may not listen
    /// yet. The caller watches for its end, because mongod closes the connection instead of answering.
    pub(crate) async fn shut_down(&self, db: &Path) -> Infallible {
        loop {
            if self.serves(db).await {
                // `force` because no other node can take over.
                let _ = self.run(doc! { "shutdown": 1, "force": true, "timeoutSecs": 0 }).await;
            }
            sleep(POLL).await;
        }
    }

    /// Sets the password of clients. Retries until this is dropped.
    pub(crate) async fn admit(&self, password: &Secret) {
        let user = |command: &str| {
            doc! {
                command: USER,
                "pwd": &password.0,
                // The password is stored beside the key, which gives all rights: less would protect nothing.
                "roles": ["root"],
                "mechanisms": ["SCRAM-SHA-256"],
                "writeConcern": { "w": "majority" },
            }
        };
        loop {
            let updated = match self.run(user("updateUser")).await {
                Err(Some(USER_NOT_FOUND)) => self.run(user("createUser")).await,
                updated => updated,
            };
            if updated.is_ok() {
                return;
            }
            sleep(POLL).await;
        }
    }

    /// What mongod says of itself; nothing if it is not reachable.
    async fn hello(&self) -> Document {
        self.run(doc! { "hello": 1 }).await.unwrap_or_default()
    }

    /// Initiates the set, or moves it to this port. A member that still reads its stored configuration looks
    /// like one without a configuration; it refuses to be initiated, and is asked again.
    async fn configure(&self) {
        let host = format!("{}:{}", Ipv4Addr::LOCALHOST, self.port);
        match self.run(doc! { "replSetGetConfig": 1 }).await {
            Err(Some(NOT_YET_INITIALIZED)) => {
                debug!(host, "initiating the replica set");
                let members = vec![doc! { "_id": 0, "host": host }];
                let _ = self.run(doc! { "replSetInitiate": { "_id": NAME, "members": members } }).await;
            }
            Ok(mut reply) => {
                let Some(config) = moved(&mut reply, &host) else { return };
                debug!(host, "moving the replica set to another port");
                // `force` because only a primary takes this otherwise, and a member that its set does not
                // list is none.
                let _ = self.run(doc! { "replSetReconfig": config, "force": true }).await;
            }
            Err(_) => {}
        }
    }

    /// # Errors
    /// The code with which the server refused the command; `None` without an answer of a MongoDB server in
    /// time.
    async fn run(&self, command: Document) -> Result<Document, Option<i32>> {
        let name = command.keys().next().cloned().unwrap_or_default();
        // Dropping the driver's future half-way costs its connection, which is not needed any more.
        let Ok(answer) = timeout(ANSWER, self.client.database("admin").run_command(command)).await else {
            debug!(name, "the private mongod did not answer in time");
            return Err(None);
        };
        answer.map_err(|error| {
            debug!(name, %error, "the private mongod refused a command");
            match &*error.kind {
                ErrorKind::Command(refusal) => Some(refusal.code),
                _ => None,
            }
        })
    }
}

fn says(hello: &Document, field: &str) -> bool {
    hello.get_bool(field).unwrap_or(false)
}

/// The stored configuration with its only member at `host`; `None` if that is so already.
fn moved(reply: &mut Document, host: &str) -> Option<Document> {
    let mut config = reply.remove("config")?.as_document()?.clone();
    let member = config.get_array_mut("members").ok()?.first_mut()?.as_document_mut()?;
    if member.get_str("host").is_ok_and(|stored| stored == host) {
        return None;
    }
    member.insert("host", host);
    Some(config)
}
