//! Three mongods on the loopback, one replica set, each of which can be killed, frozen or cut off.

use std::net::SocketAddr;
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};

use super::{Mongod, PATIENCE, Proxy, eventually, spawn};

/// Members of a set, enough for a majority without one of them.
const MEMBERS: usize = 3;

/// A set finds a new primary after so long without the old one. Far below the ten seconds of a usual
/// set, so that a run sees many elections, and above what a loaded machine keeps a heartbeat waiting.
const ELECTION_TIMEOUT_MILLIS: i32 = 2000;
const HEARTBEAT_MILLIS: i32 = 500;

/// A member that is well says so at once; one that is frozen never.
const ANSWER: Duration = Duration::from_millis(700);

/// How the members are reached, by clients and by each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wires {
    Straight,
    /// Over a proxy each, at its address.
    Harmable,
}

/// A replica set. It has to be removed.
pub struct ReplicaSet {
    members: Vec<Member>,
    uri: String,
}

struct Member {
    mongod: Mongod,
    proxy: Option<Proxy>,
    /// Asks this one alone.
    client: Client,
}

impl Member {
    async fn start(wires: Wires, failing: bool) -> Self {
        let mongod = Mongod::member_of_several(failing).await;
        let proxy = match wires {
            Wires::Straight => None,
            Wires::Harmable => Some(Proxy::to(mongod.address()).await),
        };
        let client = mongod.client().await;
        Self { mongod, proxy, client }
    }

    /// The address that the set knows it by.
    fn address(&self) -> SocketAddr {
        self.proxy.as_ref().map_or_else(|| self.mongod.address(), Proxy::address)
    }

    /// Nothing from one that is dead or frozen.
    async fn ask(&self, command: Document) -> Option<Document> {
        let admin = self.client.database("admin");
        // In a task of its own: the driver's futures must not be dropped half-way.
        let asked = spawn(async move { admin.run_command(command).await });
        tokio::time::timeout(ANSWER, asked).await.ok()?.ok()?.ok()
    }
}

impl ReplicaSet {
    pub async fn start(wires: Wires) -> Self {
        Self::of(wires, false).await
    }

    /// One whose members have fail points.
    pub async fn failing() -> Self {
        Self::of(Wires::Straight, true).await
    }

    async fn of(wires: Wires, failing: bool) -> Self {
        let mut members = Vec::new();
        for _ in 0..MEMBERS {
            members.push(Member::start(wires, failing).await);
        }
        let addresses: Vec<String> = members.iter().map(|member| member.address().to_string()).collect();
        let uri = format!("mongodb://{}/?replicaSet=rs0", addresses.join(","));
        let of_config: Vec<Document> = (0..)
            .zip(&addresses)
            .map(|(id, host): (i32, _)| doc! { "_id": id, "host": host.as_str() })
            .collect();
        let config = doc! {
            "_id": "rs0",
            "members": of_config,
            "settings": {
                "electionTimeoutMillis": ELECTION_TIMEOUT_MILLIS,
                "heartbeatIntervalMillis": HEARTBEAT_MILLIS,
            },
        };
        let set = Self { members, uri };
        let initiate = || async {
            let first = &set.members[0];
            first.ask(doc! { "replSetInitiate": config.clone() }).await.is_some()
                || first.ask(doc! { "replSetGetStatus": 1 }).await.is_some()
        };
        eventually("a set that is initiated", PATIENCE, initiate).await;
        set.until_well().await;
        set
    }

    /// Leads to whichever member is primary.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    pub async fn client(&self) -> Client {
        Client::with_uri_str(&self.uri).await.expect("a connection string")
    }

    pub fn mongod(&self, member: usize) -> &Mongod {
        &self.members[member].mongod
    }

    /// The wire to a member, of a set whose wires are harmable.
    pub fn proxy(&self, member: usize) -> &Proxy {
        self.members[member].proxy.as_ref().expect("a set with harmable wires")
    }

    /// All but this one.
    pub fn others(&self, member: usize) -> impl Iterator<Item = usize> + use<> {
        (0..MEMBERS).filter(move |other| *other != member)
    }

    /// The member that is primary now. Of two that believe it of themselves, the one elected last.
    pub async fn primary_now(&self) -> Option<usize> {
        let hello = |member: usize| self.members[member].ask(doc! { "hello": 1 });
        let answers = futures_util::future::join_all((0..MEMBERS).map(hello)).await;
        let elected = |answer: &Document| {
            let primary = answer.get_bool("isWritablePrimary").unwrap_or(false);
            primary.then(|| answer.get_object_id("electionId").expect("its election"))
        };
        let primaries = answers.iter().enumerate().filter_map(|(member, answer)| {
            let election = elected(answer.as_ref()?)?;
            Some((election, member))
        });
        primaries.max().map(|(_, member)| member)
    }

    /// Waits for one.
    pub async fn primary(&self) -> usize {
        let there = || async { self.primary_now().await.is_some() };
        loop {
            eventually("a primary", PATIENCE, there).await;
            if let Some(primary) = self.primary_now().await {
                return primary;
            }
        }
    }

    /// Waits until another than this member is primary.
    pub async fn until_primary_is_not(&self, former: usize) {
        let another = || async { self.primary_now().await.is_some_and(|primary| primary != former) };
        eventually("another primary", PATIENCE, another).await;
    }

    /// Waits until one member is primary and all others follow it.
    pub async fn until_well(&self) {
        let well = || async {
            let status = match self.primary_now().await {
                Some(primary) => self.members[primary].ask(doc! { "replSetGetStatus": 1 }).await,
                None => None,
            };
            let Some(status) = status else { return false };
            let members = status.get_array("members").expect("members");
            let state = |state: &str| {
                let is = |member: &&mongodb::bson::Bson| {
                    member.as_document().and_then(|member| member.get_str("stateStr").ok()) == Some(state)
                };
                members.iter().filter(is).count()
            };
            state("PRIMARY") == 1 && state("SECONDARY") == MEMBERS - 1
        };
        eventually("a set that is well", PATIENCE, well).await;
    }

    /// Makes this member the primary.
    pub async fn elect(&self, member: usize) {
        eventually("its election", PATIENCE, || async {
            self.members[member].ask(doc! { "replSetStepUp": 1 }).await;
            self.primary_now().await == Some(member)
        })
        .await;
    }

    /// Lets a primary without a majority go on as primary for the rest of a test, and no member call for an
    /// election by itself.
    pub async fn hold_elections(&self) {
        // A member that lags keeps no other behind.
        self.configure(doc! { "electionTimeoutMillis": 600_000, "chainingAllowed": false }).await;
    }

    /// Lets a new primary begin at once. Otherwise it waits for what a silent member might have that it has
    /// not: nothing that a majority has.
    pub async fn skip_catch_up(&self) {
        self.configure(doc! { "catchUpTimeoutMillis": 0 }).await;
    }

    /// Changes settings of the set.
    async fn configure(&self, changed: Document) {
        let primary = self.primary().await;
        let config = self.members[primary].ask(doc! { "replSetGetConfig": 1 }).await.expect("its config");
        let mut config = config.get_document("config").expect("a config").clone();
        let version = config.get_i32("version").expect("a version");
        config.insert("version", version + 1);
        config.get_document_mut("settings").expect("settings").extend(changed);
        let client = self.mongod(primary).client().await;
        let reconfig = client.database("admin").run_command(doc! { "replSetReconfig": config }).await;
        reconfig.expect("a new config");
    }

    /// Ends the primary as `kill -9` does, and waits for another one. Returns the former one.
    pub async fn kill_primary(&self) -> usize {
        let primary = self.primary().await;
        self.mongod(primary).kill().await;
        self.until_primary_is_not(primary).await;
        primary
    }

    /// Freezes the primary, and waits for another one. Returns the former one.
    pub async fn freeze_primary(&self) -> usize {
        let primary = self.primary().await;
        self.mongod(primary).freeze().await;
        self.until_primary_is_not(primary).await;
        primary
    }

    /// Tells the primary to hand over, until another has taken over.
    pub async fn step_down(&self) {
        let former = self.primary().await;
        let step_down = doc! { "replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2, "force": true };
        eventually("another primary", PATIENCE, || async {
            // It may be too busy to, and one that has handed over refuses.
            self.members[former].ask(step_down.clone()).await;
            self.primary_now().await.is_some_and(|primary| primary != former)
        })
        .await;
    }

    /// Ends all members, and removes their data.
    pub async fn remove(&self) {
        for member in &self.members {
            member.mongod.remove().await;
        }
    }
}
