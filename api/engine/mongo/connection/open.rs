//! The connection string, the driver options that follow from it, and what the server is or becomes.

use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};

use super::error::{ConnectError, describe};
use super::redaction;
use crate::mongo::deadline::{COMMAND, Deadline, NO_PRIMARY};
use crate::mongo::error::code;
use crate::mongo::server_version::ServerVersion;

/// How often the driver checks that a server is alive, unless the connection string sets it.
///
/// The driver gives up a server that falls silent without closing its connections after this time plus
/// [`CONNECT`]. It then aborts the commands that wait for that server, and they are sent again. The sum is
/// less than a replica set takes to elect another primary.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long a new connection may take, unless the connection string sets it.
const CONNECT: Duration = Duration::from_secs(2);

/// The oldest server whose clustered collections this version relies on.
const OLDEST_SERVER: (u32, u32) = (6, 0);

const ALREADY_INITIALIZED: i32 = 23;

/// What a deployment can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One server that is not a member of a replica set. It has no majority and no numbered writes, so the
    /// first lost answer is already an unknown outcome.
    Standalone,
    /// A replica set, of one node or more.
    Replicated,
    /// A sharded cluster, by one of its mongos.
    Sharded,
}

/// Which database to use and how to reach it.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// A MongoDB connection string. It may contain a password.
    pub uri: String,
    /// Name of the database.
    pub database: String,
    /// The largest number of connections to each server.
    pub pool_size: u32,
    /// Watches every command, for tests and measurements.
    #[doc(hidden)]
    pub observer: Option<CommandObserver>,
}

/// Calls a function with the name and the body of each command as it is sent.
#[derive(Clone)]
pub struct CommandObserver(EventHandler<CommandEvent>);

impl CommandObserver {
    /// `observe` must be quick: each command waits for it.
    pub fn new(observe: impl Fn(&str, &Document) + Send + Sync + 'static) -> Self {
        Self(EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event {
                observe(&started.command_name, &started.command);
            }
        }))
    }
}

impl ConnectionSettings {
    /// To this database, by a MongoDB connection string, with at most 64 connections to each server.
    pub fn new(uri: impl Into<String>, database: impl Into<String>) -> Self {
        Self { uri: uri.into(), database: database.into(), pool_size: 64, observer: None }
    }

    /// The servers' addresses for the log: without user, password or options.
    pub fn shown(&self) -> String {
        redaction::shown(&self.uri)
    }

    /// Returns a client with our timeouts and application name, after a server that this version supports has
    /// answered.
    pub(crate) async fn open(&self) -> Result<(Client, Topology, ServerVersion), ConnectError> {
        self.open_since(OLDEST_SERVER).await
    }

    /// The same for a server of any version, from which is only read.
    pub async fn open_any(&self) -> Result<(Client, Topology), ConnectError> {
        let (client, topology, _) = self.open_since((0, 0)).await?;
        Ok((client, topology))
    }

    async fn open_since(
        &self,
        oldest: (u32, u32),
    ) -> Result<(Client, Topology, ServerVersion), ConnectError> {
        let mut options = self.options().await?;
        options.command_event_handler = self.observer.clone().map(|CommandObserver(handler)| handler);
        let hosts = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let (topology, version) = inspect(&client, &hosts, oldest).await?;
        Ok((client, topology, version))
    }

    /// Waits for a server that may still be starting, for as long as a command may take.
    pub async fn await_start(&self) -> Result<(), ConnectError> {
        let options = self.options().await?;
        let hosts = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let starts = |error: &DriverError| matches!(*error.kind, ErrorKind::ServerSelection { .. });
        let hello = ask(&client.database("admin"), |answer| !answer.as_ref().is_err_and(starts)).await;
        hello.map(drop).map_err(|error| describe(&error, &hosts))
    }

    /// Makes the first host of the connection string a replica set of one node, and waits until it is
    /// primary. A server that already belongs to a set is left as it is.
    pub async fn initiate(&self) -> Result<(), ConnectError> {
        let mut options = self.options().await?;
        // The set does not exist yet, so only a direct connection to the member works.
        let named = options.repl_set_name.take();
        options.direct_connection = Some(true);
        options.hosts.truncate(1);
        let host = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let admin = client.database("admin");
        let describe = |error: DriverError| describe(&error, &host);

        // The server may still be starting, for example because it was started together with this process.
        let hello = ask(&admin, Result::is_ok).await.map_err(describe)?;
        if !hello.contains_key("setName") {
            let started = admin.run_command(doc! { "getCmdLineOpts": 1 }).await.map_err(describe)?;
            let replication =
                started.get_document("parsed").and_then(|parsed| parsed.get_document("replication"));
            let started_as = replication.ok().and_then(|of| of.get_str("replSet").ok()).map(str::to_owned);
            let Some(set) = named.or(started_as) else {
                return Err(ConnectError::Unexpected(
                    "it was not started with --replSet, so it cannot become a replica set".to_owned(),
                ));
            };
            let config = doc! { "_id": set, "members": [{ "_id": 0, "host": &host }] };
            match admin.run_command(doc! { "replSetInitiate": config }).await {
                Ok(_) => {}
                Err(error) if code(&error) == Some(ALREADY_INITIALIZED) => {}
                Err(error) => return Err(describe(error)),
            }
        }
        let is_primary = |hello: &Document| hello.get_bool("isWritablePrimary").unwrap_or(false);
        let settled = |answer: &Result<Document, DriverError>| answer.as_ref().map_or(true, is_primary);
        let hello = ask(&admin, settled).await.map_err(describe)?;
        let too_late = || describe(DriverError::custom("it did not become primary in time"));
        is_primary(&hello).then_some(()).ok_or_else(too_late)
    }

    async fn options(&self) -> Result<ClientOptions, ConnectError> {
        let parsed = ClientOptions::parse(&self.uri).await;
        let mut options = parsed.map_err(|error| self.invalid(&error))?;
        options.app_name.get_or_insert_with(|| "pagebucket".to_owned());
        options.max_pool_size = Some(self.pool_size);
        options.server_selection_timeout.get_or_insert(NO_PRIMARY);
        options.heartbeat_freq.get_or_insert(HEARTBEAT);
        options.connect_timeout.get_or_insert(CONNECT);
        Ok(options)
    }

    /// Why the driver refuses the connection string. The driver's message is kept only if it cannot quote a
    /// password.
    fn invalid(&self, error: &DriverError) -> ConnectError {
        let message = match error.kind.as_ref() {
            ErrorKind::DnsResolve { .. } => return describe(error, "the host of the connection string"),
            ErrorKind::InvalidArgument { message, .. } => message.clone(),
            other => other.to_string(),
        };
        ConnectError::InvalidUri(if !redaction::has_scheme(&self.uri) {
            "it must begin with mongodb:// or mongodb+srv://".to_owned()
        } else if redaction::may_hold_a_secret(&self.uri) {
            REDACTED.to_owned()
        } else {
            message
        })
    }
}

const REDACTED: &str = "check its hosts, ports and options, and percent-encode each of : / ? # [ ] @ % in its user \
                        and password (the wrong part is not quoted, because it may be the password)";

/// The hosts of a connection string, for messages.
fn host_list(options: &ClientOptions) -> String {
    options.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Waits for a server and refuses one that is too old.
async fn inspect(
    client: &Client,
    hosts: &str,
    oldest: (u32, u32),
) -> Result<(Topology, ServerVersion), ConnectError> {
    let admin = client.database("admin");
    let hello = admin.run_command(doc! { "hello": 1 }).await.map_err(|error| describe(&error, hosts))?;
    let build = admin.run_command(doc! { "buildInfo": 1 }).await.map_err(|error| describe(&error, hosts))?;
    let version = ServerVersion::of(&hello, &build, hosts);
    if version.release() < oldest {
        return Err(ConnectError::TooOld(version.to_string()));
    }
    let sharded = hello.get_str("msg").is_ok_and(|message| message == "isdbgrid");
    let topology = match (sharded, hello.contains_key("setName")) {
        (true, _) => Topology::Sharded,
        (false, true) => Topology::Replicated,
        (false, false) => Topology::Standalone,
    };
    Ok((topology, version))
}

/// Asks the server what it is until the answer `suits`, or for as long as a command may take.
async fn ask(
    admin: &Database,
    suits: impl Fn(&Result<Document, DriverError>) -> bool,
) -> Result<Document, DriverError> {
    let deadline = Deadline::within(COMMAND);
    loop {
        let answer = admin.run_command(doc! { "hello": 1 }).await;
        if suits(&answer) || deadline.passed() {
            return answer;
        }
        deadline.back_off(u32::MAX).await;
    }
}
