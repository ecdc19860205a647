use mongodb::Client;
use mongodb::bson::doc;

use super::address::{CommandObserver, Connection, host_list};
use super::error::{ConnectError, describe};

/// The oldest server whose clustered collections this version relies on.
const OLDEST_SERVER: (u32, u32) = (6, 0);

/// What a deployment can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One server that is not a member of a replica set. It has no majority and no numbered writes, so the
    /// first lost answer is already an unknown outcome.
    Standalone,
    /// A replica set, of one node or more, or a sharded cluster.
    Replicated,
}

impl Connection {
    /// Returns a client with our timeouts and application name, after a server that this version supports has
    /// answered.
    pub(in crate::store) async fn open(&self) -> Result<(Client, Topology), ConnectError> {
        let mut options = self.options().await?;
        options.command_event_handler = self.observer.clone().map(|CommandObserver(handler)| handler);
        let hosts = host_list(&options);
        let client = Client::with_options(options).map_err(|error| self.invalid(&error))?;
        let topology = inspect(&client, &hosts).await?;
        Ok((client, topology))
    }
}

/// Waits for a server and refuses one that is too old.
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
