use mongodb::bson::{Document, doc};
use mongodb::error::Error as DriverError;
use mongodb::{Client, Database};

use super::error::{ConnectError, describe};
use super::open::{Connection, host_list};
use crate::store::deadline::{COMMAND, Deadline};
use crate::store::error::code;

const ALREADY_INITIALIZED: i32 = 23;

impl Connection {
    /// Makes the first host of the connection string a replica set of one node, and waits until it is primary.
    /// A server that already belongs to a set is left as it is.
    ///
    /// # Errors
    /// The server does not answer, was not started with `--replSet`, or does not become primary in time.
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

/// Waits for a server that is still starting, for example because it was started together with this process.
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
