//! Bytes a trade on disk.

use axum::Router;
use mongodb::Database;
use mongodb::bson::doc;

use crate::harness::Result;
use crate::harness::check::{COLLECTION, number};
use crate::harness::customers::Customers;
use crate::harness::load::{self, Append, Load};
use crate::harness::mongod::Mongod;
use crate::harness::ours::Ours;
use crate::harness::peers::Peer;
use crate::harness::settings::Settings;
use crate::harness::shell;

/// As `ONLY` names it.
pub const STAGE: &str = "disk";

/// The most that ours may take, as a share of what flat takes.
pub const EXPECTED: f64 = 0.5;

const CUSTOMERS: u64 = 10_000;

/// Bytes a trade of a collection, after a checkpoint.
pub struct Disk {
    pub label: &'static str,
    /// How the trades came.
    pub by: &'static str,
    pub trades: u64,
    /// The documents before compression.
    pub documents: f64,
    /// The file with the documents, free blocks included.
    pub data: f64,
    /// Of that, what is free to be used again.
    pub free: f64,
    pub indexes: f64,
}

impl Disk {
    pub fn total(&self) -> f64 {
        self.data + self.indexes
    }
}

/// Has ours and flat store the same trades over HTTP: one by one, and in arrays of 100.
pub async fn measure(mongod: &Mongod, settings: &Settings) -> Result<Vec<Disk>> {
    let each = if settings.quick { 10 } else { 100 };
    let mut measured = Vec::new();
    for (by, requests, trades) in [("one by one", each, 1), ("in arrays of 100", each / 100, 100)] {
        // A quick run has too few for arrays.
        if requests == 0 {
            continue;
        }
        let ours = format!("bench_{STAGE}_ours_{trades}");
        eprintln!("bench: {STAGE}: {} trades {by}", CUSTOMERS * each);
        let server = Ours::start(Ours::prepare(mongod, &ours).await?, &[]).await?;
        append(server.address, requests, trades).await?;
        server.stop().await?;
        measured.push(look(mongod, &ours, "ours", by, CUSTOMERS * each).await?);

        let flat = format!("bench_{STAGE}_flat_{trades}");
        let peer = Peer::flat(&mongod.database(&flat).await?).await?;
        let routes = Router::new().route(shell::TRADES, shell::appends(peer));
        let (address, serving) = shell::serve(shell::layered(routes)).await?;
        append(address, requests, trades).await?;
        serving.abort();
        measured.push(look(mongod, &flat, "flat", by, CUSTOMERS * each).await?);
    }
    Ok(measured)
}

/// So many requests for each customer; the second for anyone after the first for everyone.
async fn append(address: std::net::SocketAddr, requests: u64, trades: u64) -> Result<()> {
    for _ in 0..requests {
        let task = Append { trades, customers: Customers::each(1..=CUSTOMERS), keyed: false };
        let block = load::run(address, Load { connections: 64, task, timing: None, seed: 0 }).await?;
        if block.failed > 0 {
            return Err(format!("{} trades were refused", block.failed).into());
        }
    }
    Ok(())
}

/// Drops the database afterwards.
async fn look(
    mongod: &Mongod,
    name: &str,
    label: &'static str,
    by: &'static str,
    trades: u64,
) -> Result<Disk> {
    mongod.database("admin").await?.run_command(doc! { "fsync": 1 }).await?;
    let database: Database = mongod.database(name).await?;
    let stats = database.run_command(doc! { "collStats": COLLECTION }).await?;
    let a_trade = |field| number(&stats, field).map(|bytes| bytes / trades as f64);
    let disk = Disk {
        label,
        by,
        trades,
        documents: a_trade("size")?,
        data: a_trade("storageSize")?,
        free: a_trade("freeStorageSize")?,
        indexes: a_trade("totalIndexSize")?,
    };
    database.drop().await?;
    Ok(disk)
}
