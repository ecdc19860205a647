//! `migrate`: applies the migrations that are due.

use std::process::ExitCode;

use clap::Args;
use pagebucket_engine::Topology;
use pagebucket_engine::internal::ShardKey;

use super::database::{self, Opened, Unready};
use super::exit::{Failure, Signals};
use super::terminal::{print, print_error};
use crate::config::{DatabaseArgs, RetentionArgs};

/// Flags of `migrate`.
#[derive(Args, Debug)]
pub(crate) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    retention: RetentionArgs,
    /// Only list pending migrations. The exit status is 1 if there are any.
    #[arg(long)]
    check: bool,
    /// After restoring a backup: give the database another epoch.
    ///
    /// Do it before any server runs on it. Pages that clients have kept of the lost history then count as
    /// those of another database. Then erase again what was erased since: erase --replay.
    #[arg(long, conflicts_with = "check")]
    renew_epoch: bool,
    /// First make the server a replica set of one node.
    ///
    /// It stays as it is if it belongs to one. It becomes a member under the first host of the connection
    /// string.
    #[arg(long)]
    initiate: bool,
    /// Distribute the collections over the shards of a cluster.
    ///
    /// Each is in at least this number of chunks. May be given again; on a replica set it changes nothing.
    #[arg(long, value_name = "CHUNKS", value_parser = clap::value_parser!(u32).range(1..=4096), conflicts_with = "check")]
    shard: Option<u32>,
}

pub(crate) async fn run(args: MigrateArgs) -> Result<ExitCode, Failure> {
    let unready = match &args {
        MigrateArgs { initiate: true, .. } => Unready::Initiate,
        // After a restore both are commonly started together.
        MigrateArgs { renew_epoch: true, .. } => Unready::Await,
        _ => Unready::Refuse,
    };
    let work = async |opened: &Opened, mut signals: Signals| signals.unless(migrate(opened, &args)).await;
    let migrated = match args.renew_epoch {
        true => database::with(&args.database, unready, work).await,
        false => database::creating(&args.database, unready, work).await,
    };
    migrated.inspect_err(|failure| {
        if *failure == Failure::Interrupted {
            print_error(format_args!("pagebucket: an interrupted migration runs again next time"));
        }
    })
}

async fn migrate(opened: &Opened, args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let store = &opened.store;
    opened.judge_server().await;
    store.refuse_foreign_collections().await?;
    let (done, names) = if args.check {
        ("pending", store.pending_migrations().await?)
    } else {
        let applied = store.migrate().await?;
        store.keep_keys_for(args.retention.key_retention).await?;
        store.keep_views_for(args.retention.view_retention).await?;
        ("applied", applied)
    };
    for name in &names {
        print(format_args!("{done}: {name}"));
    }
    if args.check && !names.is_empty() {
        return Err(Failure::Partly("migrations are pending".to_owned()));
    }
    store.check_collections().await?;
    if args.renew_epoch {
        store.renew_epoch().await.map_err(|error| Failure::Database(error.to_string()))?;
        print(format_args!("the epoch is renewed; restart running servers"));
        print(format_args!(
            "owners that were erased since the backup are back: erase them again with erase --replay"
        ));
    }
    if names.is_empty() {
        print(format_args!("nothing {} pending", if args.check { "is" } else { "was" }));
    }
    if let Some(chunks) = args.shard {
        shard(opened, chunks).await?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a line for each collection that is sharded.
async fn shard(opened: &Opened, chunks: u32) -> Result<(), Failure> {
    if opened.store.topology() != Topology::Sharded {
        print(format_args!("nothing is sharded: the server is not the mongos of a sharded cluster"));
        return Ok(());
    }
    let sharded = opened.store.shard(chunks.into()).await;
    let sharded = sharded.map_err(|error| Failure::Database(format!("{error}; run the command again")))?;
    for (ShardKey { collection, key }, chunks) in sharded {
        print(format_args!("sharded: {collection} by {key}: {chunks} chunks"));
    }
    Ok(())
}
