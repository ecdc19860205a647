//! Finding a server, and finding out what it is.

mod initiate;
mod redaction;

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::{Error as DriverError, ErrorKind};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;

use super::deadline::NO_PRIMARY;
use super::error::code;

/// The oldest server whose clustered collections this version relies on.
const OLDEST_SERVER: (u32, u32) = (6, 0);

/// How often a server reports that it is alive, unless the connection string says so.
///
/// A server that falls silent without closing its connections is given up after this time and
/// [`CONNECT`] together: the driver then breaks off the commands that wait for it, and they are sent
/// again. That is less than a replica set takes to elect another primary.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// How long a new connection may take, unless the connection string says so.
const CONNECT: Duration = Duration::from_secs(2);

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
    #[error("no MongoDB server answers at {hosts}; is it running, and may this machine reach it? ({detail})")]
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
    /// Somebody has dropped it.
    #[error(
        "the collection `{0}` is missing from this database, though its migrations are applied; restore it from a \
         backup, or, to begin with an empty one, stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`"
    )]
    Missing(&'static str),
    /// One that somebody has made or changed by hand.
    #[error(
        "the collection `{collection}` of this database has no {guard} as its migrations make it, so that nothing \
         keeps two writers apart; stop every instance, drop the collection `migrations` and run \
         `pagebucket migrate`, which makes what is missing"
    )]
    Unguarded {
        /// Its name.
        collection: &'static str,
        /// What it lacks.
        guard: &'static str,
    },
    /// It answered something that we do not understand.
    #[error("the MongoDB server gave an unexpected answer: {0}")]
    Unexpected(String),
}

impl Connection {
    /// The servers' addresses, fit for a log: without user, password or options.
    pub fn shown(&self) -> String {
        redaction::shown(&self.uri)
    }

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
        options.server_selection_timeout.get_or_insert(NO_PRIMARY);
        options.heartbeat_freq.get_or_insert(HEARTBEAT);
        options.connect_timeout.get_or_insert(CONNECT);
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
        ConnectError::InvalidUri(if !redaction::has_scheme(&self.uri) {
            "it must begin with mongodb:// or mongodb+srv://".to_owned()
        } else if redaction::may_hold_a_secret(&self.uri) {
            WITHOUT_A_QUOTE.to_owned()
        } else {
            said
        })
    }
}

const WITHOUT_A_QUOTE: &str = "look at its hosts, ports and options, and percent-encode each of : / ? # [ ] @ % in its \
                               user and password (what is wrong is not quoted, because it may be the password)";

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

pub(super) fn describe(error: &DriverError, hosts: &str) -> ConnectError {
    match (error.kind.as_ref(), code(error)) {
        (ErrorKind::Authentication { .. }, _) | (_, Some(13 | 18)) => ConnectError::Unauthorized,
        (ErrorKind::ServerSelection { .. } | ErrorKind::Io(_) | ErrorKind::DnsResolve { .. }, _) => {
            ConnectError::Unreachable { hosts: hosts.to_owned(), detail: error.kind.to_string() }
        }
        (kind, _) => ConnectError::Unexpected(kind.to_string()),
    }
}
