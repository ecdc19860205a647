//! The replica set of one: asked how it is, led to a primary, shut down.

use std::convert::Infallible;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use bson::{Document, doc};
use mongodb::Client;
use mongodb::error::ErrorKind;
use mongodb::options::{AuthMechanism, ClientOptions, Credential, ServerAddress};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::debug;

use super::error::Error;
use super::secret::Secret;

/// The set's name. It is stored in the data, so it can never change.
pub(super) const NAME: &str = "rs0";

/// How often the state of a mongod, which nothing reports, is looked at again.
pub(super) const POLL: Duration = Duration::from_millis(25);

/// Within this a mongod on the same machine answers a command about itself, or is frozen.
const ANSWER: Duration = Duration::from_secs(5);

/// The server's codes for a member without a configuration, and for an update of a user who does not exist.
const NOT_YET_INITIALIZED: i32 = 94;
const USER_NOT_FOUND: i32 = 11;

/// The user whom clients are, in the database `admin`.
pub(super) const USER: &str = "pagebucket";

/// A direct connection to whatever listens on a port of this machine, as a member of its replica set.
///
/// A member (the user `__system`) needs no stored user, so that it can control a mongod that is not primary, or has
/// none yet. Either side of SCRAM proves to the other that it knows the key, and a stranger on the port learns
/// nothing of it.
#[derive(Debug, Clone)]
pub(super) struct Replica {
    client: Client,
    port: u16,
}

/// Why a command has no reply.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The server said no, with this code.
    Refused(i32),
    /// No server, none in time, or none that speaks MongoDB.
    NoAnswer,
}

impl Replica {
    /// Makes a client for it; nothing is sent before the first question. Has to be called, and used, inside
    /// one tokio runtime. Without a key it speaks to a mongod that has no authentication.
    pub(super) fn at(port: u16, key: Option<&Secret>) -> Result<Self, Error> {
        let address = ServerAddress::Tcp { host: Ipv4Addr::LOCALHOST.to_string(), port: Some(port) };
        let options = ClientOptions::builder()
            .hosts(vec![address])
            .credential(key.map(member))
            .direct_connection(true)
            .app_name("pagebucket embedded".to_owned())
            .connect_timeout(ANSWER)
            .server_selection_timeout(ANSWER)
            .build();
        let client = Client::with_options(options).map_err(|source| Error::Client { source })?;
        Ok(Self { client, port })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is the mongod of this data: the one proof that a port is not somebody else's.
    pub(super) async fn serves(&self, db: &Path) -> bool {
        // Found out before the driver is asked, which would wait for half a second between two looks.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            return false;
        }
        let Ok(options) = self.run(doc! { "getCmdLineOpts": 1 }).await else {
            return false;
        };
        let path = options
            .get_document("parsed")
            .and_then(|parsed| parsed.get_document("storage"))
            .and_then(|storage| storage.get_str("dbPath"));
        path.is_ok_and(|path| fs::canonicalize(path).is_ok_and(|path| path == db))
    }

    pub(super) async fn is_primary_of(&self, db: &Path) -> bool {
        self.serves(db).await && matches!(self.state().await, State::Primary)
    }

    /// Waits until the mongod of this data is there and primary, configuring it where it needs that.
    pub(super) async fn until_primary(&self, db: &Path) {
        while !self.serves(db).await {
            sleep(POLL).await;
        }
        loop {
            match self.state().await {
                State::Primary => return,
                State::NotConfigured => self.configure().await,
                State::Pending => {}
            }
            sleep(POLL).await;
        }
    }

    /// Tells the mongod of this data to shut down, and again until this is dropped: it may not listen yet.
    /// To be run beside something that sees its end, since one that heeds hangs up instead of answering.
    pub(super) async fn shut_down(&self, db: &Path) -> Infallible {
        loop {
            if self.serves(db).await {
                // `force` because there is nobody to hand over to, and no time to wait for one.
                let _ = self.run(doc! { "shutdown": 1, "force": true, "timeoutSecs": 0 }).await;
            }
            sleep(POLL).await;
        }
    }

    /// Lets clients in with this password, whatever it was before. Retries until this is dropped.
    pub(super) async fn admit(&self, password: &Secret) {
        let user = |command: &str| {
            doc! {
                command: USER,
                "pwd": password.expose(),
                // The password lies beside the key, which opens everything: less would protect nothing.
                "roles": ["root"],
                "mechanisms": ["SCRAM-SHA-256"],
                "writeConcern": { "w": "majority" },
            }
        };
        loop {
            let updated = match self.run(user("updateUser")).await {
                Err(Failure::Refused(USER_NOT_FOUND)) => self.run(user("createUser")).await,
                updated => updated,
            };
            if updated.is_ok() {
                return;
            }
            sleep(POLL).await;
        }
    }

    async fn state(&self) -> State {
        let Ok(hello) = self.run(doc! { "hello": 1 }).await else {
            return State::Pending;
        };
        let says = |field| hello.get_bool(field).unwrap_or(false);
        if says("isWritablePrimary") {
            State::Primary
        } else if says("isreplicaset") {
            State::NotConfigured
        } else {
            State::Pending
        }
    }

    /// Makes the set, or moves it to this port. A member that is still reading its stored configuration
    /// looks like one without any; it refuses the first as it should, and is asked again.
    async fn configure(&self) {
        let host = format!("{}:{}", Ipv4Addr::LOCALHOST, self.port);
        match self.run(doc! { "replSetGetConfig": 1 }).await {
            Err(Failure::Refused(NOT_YET_INITIALIZED)) => {
                debug!(host, "initiating the replica set");
                let members = vec![doc! { "_id": 0, "host": host }];
                let _ = self.run(doc! { "replSetInitiate": { "_id": NAME, "members": members } }).await;
            }
            Ok(mut reply) => {
                let Some(config) = moved(&mut reply, &host) else {
                    return;
                };
                debug!(host, "moving the replica set to another port");
                // `force` because a member that is not in its own set is no primary, which this needs else.
                let _ = self.run(doc! { "replSetReconfig": config, "force": true }).await;
            }
            Err(_) => {}
        }
    }

    async fn run(&self, command: Document) -> Result<Document, Failure> {
        let name = command.keys().next().cloned().unwrap_or_default();
        // Dropping the driver's future half-way costs its connection, which nobody needs then.
        match timeout(ANSWER, self.client.database("admin").run_command(command)).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(error)) => {
                debug!(name, %error, "the private mongod did not do as told");
                match error.kind.as_ref() {
                    ErrorKind::Command(refusal) => Err(Failure::Refused(refusal.code)),
                    _ => Err(Failure::NoAnswer),
                }
            }
            Err(_) => {
                debug!(name, "the private mongod did not answer in time");
                Err(Failure::NoAnswer)
            }
        }
    }
}

fn member(key: &Secret) -> Credential {
    Credential::builder()
        .username("__system".to_owned())
        .password(key.expose().to_owned())
        .source("local".to_owned())
        .mechanism(AuthMechanism::ScramSha256)
        .build()
}

/// What `hello` tells of the way to a primary.
#[derive(Debug)]
enum State {
    Primary,
    /// A member of no set, or of one that does not list it (`REMOVED`, after a change of port).
    NotConfigured,
    /// On its way, or not there.
    Pending,
}

/// The stored configuration with its one member at `host`; nothing if it is there already.
fn moved(reply: &mut Document, host: &str) -> Option<Document> {
    let mut config = reply.remove("config")?.as_document()?.clone();
    let member = config.get_array_mut("members").ok()?.first_mut()?.as_document_mut()?;
    if member.get_str("host").is_ok_and(|stored| stored == host) {
        return None;
    }
    member.insert("host", host);
    Some(config)
}
