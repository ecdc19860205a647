use std::process::ExitCode;

use clap::Args;

use super::database::{self, Opened};
use super::exit::Failure;
use super::terminal::print;
use crate::config::{DatabaseArgs, RetentionArgs};

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
    let migrated = database::with(&args.database, args.initiate, async |opened, mut signals| {
        signals.unless(migrate(opened, &args)).await
    });
    migrated.await.map_err(|failure| match failure {
        Failure::Interrupted => {
            Failure::Partly("stopped by a signal; an interrupted migration runs again next time".to_owned())
        }
        failure => failure,
    })
}

async fn migrate(opened: &Opened, args: &MigrateArgs) -> Result<ExitCode, Failure> {
    let store = &opened.store;
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
    if names.is_empty() {
        print(format_args!("nothing {} pending", if args.check { "is" } else { "was" }));
    }
    Ok(ExitCode::SUCCESS)
}
