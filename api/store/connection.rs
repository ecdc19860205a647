//! Finding a server, and finding out what it is.

use futures_util::TryStreamExt;
use mongodb::bson::{Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;
use mongodb::{Client, Database};

use super::deadline::{COMMAND, Deadline, NO_PRIMARY};
use super::error::code;

/// The oldest server whose clustered collections this version relies on.
const OLDEST_SERVER: (u32, u32) = (6, 0);

/// Which database to use, and how.
#[derive(Clone)]
pub struct Connection {
    /// A MongoDB connection string. May hold a password.
    pub uri: String,
    /// Name of the database.
    pub database: String,
    /// Most connections to each server.
    pub pool_size: u32,
    /// Watches every command, for tests and measurements.
    pub observer: Option<CommandObserver>,
}

/// Calls a function with the name and the body of each command as it is sent.
#[derive(Clone)]
pub struct CommandObserver(EventHandler<CommandEvent>);

impl CommandObserver {
    /// The function must be quick: it runs on the command's own path.
    pub fn new(observe: impl Fn(&str, &Document) + Send + Sync + 'static) -> Self {
        Self(EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event {
                observe(&started.command_name, &started.command);
            }
        }))
    }
}

/// What a deployment can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One server that is not a member of a replica set: no numbered writes, so that the first lost
    /// answer is already an unknown outcome, and no majority.
    Standalone,
    /// A replica set, of one node or more, or a sharded cluster.
    Replicated,
}

/// Why a database cannot be used. Each is one sentence, fit to be shown to an operator.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The connection string is none, or an option in it is wrong.
    #[error("the MongoDB connection string is not usable: {0}")]
    InvalidUri(String),
    /// Nobody answers.
    #[error("no MongoDB server answers at {hosts} within {} s; is it running, and may this machine reach it? ({detail})", NO_PRIMARY.as_secs())]
    Unreachable {
        /// Host and port of each server asked, without user or password.
        hosts: String,
        /// The driver's own words.
        detail: String,
    },
    /// It answers, but not to us.
    #[error("the MongoDB server refuses the user or password of the connection string")]
    Unauthorized,
    /// Clustered collections are missing or incomplete there.
    #[error("the MongoDB server is version {0}, and pagebucket needs 6.0 or later")]
    TooOld(String),
    /// Somebody else's collection, or one made by an older version of ours.
    #[error(
        "the collection `trades` of this database is not clustered on _id; name another --database, or move that collection away"
    )]
    NotClustered,
    /// It answered something that we do not understand.
    #[error("the MongoDB server gave an unexpected answer: {0}")]
    Unexpected(String),
}

impl Connection {
    /// A client with deadlines and a name of ours, once a server that we can use answers it.
    pub(super) async fn open(&self) -> Result<(Client, Topology), ConnectError> {
        let mut options = self.options().await?;
        options.command_event_handler = self.observer.clone().map(|CommandObserver(handler)| handler);
        let hosts = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let topology = inspect(&client, &hosts).await?;
        Ok((client, topology))
    }

    async fn options(&self) -> Result<ClientOptions, ConnectError> {
        let parsed = ClientOptions::parse(&self.uri).await;
        let mut options = parsed.map_err(|error| self.invalid(&error))?;
        options.app_name.get_or_insert_with(|| "pagebucket".to_owned());
        options.max_pool_size = Some(self.pool_size);
        options.server_selection_timeout = Some(NO_PRIMARY);
        options.connect_timeout = Some(NO_PRIMARY);
        Ok(options)
    }

    /// What the driver has against the connection string, in its own words where they cannot quote
    /// a password.
    fn invalid(&self, error: &DriverError) -> ConnectError {
        let said = match error.kind.as_ref() {
            ErrorKind::DnsResolve { .. } => return describe(error, "the host of the connection string"),
            ErrorKind::InvalidArgument { message, .. } => message.clone(),
            other => other.to_string(),
        };
        let schemed =
            ["mongodb://", "mongodb+srv://"].iter().find_map(|scheme| self.uri.strip_prefix(scheme));
        ConnectError::InvalidUri(match schemed {
            None => "it must begin with mongodb:// or mongodb+srv://".to_owned(),
            Some(rest) if may_hold_a_password(rest) => WITHOUT_A_QUOTE.to_owned(),
            Some(_) => said,
        })
    }

    /// Makes a fresh replica-set member, the first host of the connection string, a set of one
    /// node, and waits until it is primary. A member that already belongs to a set is left alone.
    ///
    /// # Errors
    /// Nobody answers, it was not started with `--replSet`, or it is no primary in time.
    pub async fn initiate(&self) -> Result<(), ConnectError> {
        let mut options = self.options().await?;
        // The set does not exist yet, so that only its member can be spoken to.
        let named = options.repl_set_name.take();
        options.direct_connection = Some(true);
        options.hosts.truncate(1);
        let host = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let admin = client.database("admin");
        let describe = |error: DriverError| describe(&error, &host);

        let hello = first_answer(&admin).await.map_err(describe)?;
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
        wait_until_primary(&admin).await.map_err(describe)
    }
}

const ALREADY_INITIALIZED: i32 = 23;

const WITHOUT_A_QUOTE: &str = "look at its hosts, ports and options, and percent-encode each of : / ? # [ ] @ % in its \
                               user and password (what is wrong is not quoted, because it may be the password)";

/// Whether a connection string, without its scheme, has anything in it that must not be quoted.
fn may_hold_a_password(uri: &str) -> bool {
    let options = uri.to_ascii_lowercase();
    // "user:password", without a host, reads like a host with a port.
    let hosts = uri.split(['/', '?']).next().unwrap_or_default();
    uri.contains('@')
        || options.contains("password")
        || options.contains("authmechanismproperties")
        || hosts.split([':', ',']).skip(1).any(|part| part.parse::<u16>().is_err())
}

/// Waits for a server that is still starting, as one that was started together with us is.
async fn first_answer(admin: &Database) -> Result<Document, DriverError> {
    let deadline = Deadline::within(COMMAND);
    loop {
        match admin.run_command(doc! { "hello": 1 }).await {
            Err(_) if !deadline.passed() => deadline.back_off(u32::MAX).await,
            answer => return answer,
        }
    }
}

async fn wait_until_primary(admin: &Database) -> Result<(), DriverError> {
    let deadline = Deadline::within(COMMAND);
    loop {
        let hello = admin.run_command(doc! { "hello": 1 }).await?;
        if hello.get_bool("isWritablePrimary").unwrap_or(false) {
            return Ok(());
        }
        if deadline.passed() {
            return Err(DriverError::custom("it did not become primary in time"));
        }
        deadline.back_off(u32::MAX).await;
    }
}

fn host_list(options: &ClientOptions) -> String {
    options.hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Waits for a server, and refuses one that is too old.
async fn inspect(client: &Client, hosts: &str) -> Result<Topology, ConnectError> {
    let admin = client.database("admin");
    let hello = admin.run_command(doc! { "hello": 1 }).await.map_err(|error| describe(&error, hosts))?;
    let build = admin.run_command(doc! { "buildInfo": 1 }).await.map_err(|error| describe(&error, hosts))?;
    let version = build.get_str("version").unwrap_or("unknown");
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST_SERVER {
        return Err(ConnectError::TooOld(version.to_owned()));
    }
    let sharded = hello.get_str("msg").is_ok_and(|message| message == "isdbgrid");
    Ok(if sharded || hello.contains_key("setName") { Topology::Replicated } else { Topology::Standalone })
}

pub(super) async fn check_clustered(database: &Database, collection: &str) -> Result<(), ConnectError> {
    let mut found = database
        .list_collections()
        .filter(doc! { "name": collection })
        .await
        .map_err(|error| unexpected(&error))?;
    match found.try_next().await.map_err(|error| unexpected(&error))? {
        Some(collection) if collection.options.clustered_index.is_none() => Err(ConnectError::NotClustered),
        _ => Ok(()),
    }
}

fn unexpected(error: &DriverError) -> ConnectError {
    describe(error, "the address given")
}

fn describe(error: &DriverError, hosts: &str) -> ConnectError {
    match (error.kind.as_ref(), code(error)) {
        (ErrorKind::Authentication { .. }, _) | (_, Some(13 | 18)) => ConnectError::Unauthorized,
        (ErrorKind::ServerSelection { .. } | ErrorKind::Io(_) | ErrorKind::DnsResolve { .. }, _) => {
            ConnectError::Unreachable { hosts: hosts.to_owned(), detail: error.kind.to_string() }
        }
        (kind, _) => ConnectError::Unexpected(kind.to_string()),
    }
}
