use std::process::ExitCode;

use clap::Args;

use super::database::{self, Opened};
use super::exit::Failure;
use super::signals::Signals;
use super::terminal::print;
use crate::config::{DatabaseArgs, RetentionArgs};
use crate::embedded::Role;

/// Flags of `migrate`.
#[derive(Args, Debug)]
pub(super) struct MigrateArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    retention: RetentionArgs,
    /// Only list pending migrations. The exit status is 1 if there are any.
    #[arg(long)]
    check: bool,
    /// First make the server a replica set of one node, if it belongs to none yet. It becomes a member under the first
    /// host of the connection string.
    #[arg(long)]
    initiate: bool,
}

pub(super) async fn run(args: MigrateArgs) -> Result<ExitCode, Failure> {
    // Signals come first, so that an early one also stops the private mongod.
    let mut signals = Signals::new()?;
    let stopped =
        || Failure::Partly("stopped by a signal; an interrupted migration runs again next time".to_owned());
    let opened = tokio::select! {
        opened = database::open(&args.database, Role::Tool, args.initiate) => opened?,
        () = signals.next() => return Err(stopped()),
    };
    opened
        .with(async |opened| {
            tokio::select! {
                done = migrate(opened, &args) => done,
                () = signals.next() => Err(stopped()),
            }
        })
        .await
}

async fn migrate(opened: &Opened, args: &MigrateArgs) -> Result<ExitCode, Failure> {
    opened.store.refuse_foreign_collections().await?;
    if args.check {
        let pending = opened.store.pending_migrations().await?;
        for name in &pending {
            print(format_args!("pending: {name}"));
        }
        return if pending.is_empty() {
            opened.store.check_collections().await?;
            print(format_args!("nothing is pending"));
            Ok(ExitCode::SUCCESS)
        } else {
            Err(Failure::Partly("migrations are pending".to_owned()))
        };
    }
    let applied = opened.store.migrate().await?;
    opened.store.keep_keys_for(args.retention.key_retention).await?;
    opened.store.keep_views_for(args.retention.view_retention).await?;
    for name in &applied {
        print(format_args!("applied: {name}"));
    }
    opened.store.check_collections().await?;
    if applied.is_empty() {
        print(format_args!("nothing was pending"));
    }
    Ok(ExitCode::SUCCESS)
}
