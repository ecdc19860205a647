//! `series`: rebuilds the native time series of a history, or drops it.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use pagebucket_engine::{Engine, Error};

use crate::commands::database::{self, HistoryArgs, Opened};
use crate::commands::exit::Failure;
use crate::commands::terminal::print;
use crate::config::DatabaseArgs;

/// Flags of `series`.
#[derive(Args, Debug)]
pub(crate) struct SeriesArgs {
    #[command(subcommand)]
    action: SeriesAction,
}

/// What becomes of a native time series.
#[derive(Subcommand, Debug)]
enum SeriesAction {
    /// Rebuild it from the pages beside the one that is read, and then switch to it.
    #[command(after_help = AFTER_REBUILD)]
    Rebuild(OfHistoryArgs),
    /// Delete it. The definition must not have the member `timeSeries` any more.
    Drop(OfHistoryArgs),
}

/// Which history is meant.
#[derive(Args, Debug)]
struct OfHistoryArgs {
    #[command(flatten)]
    history: HistoryArgs,
    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_REBUILD: &str = "\
Also changes `meta` and `granularity` as the definition has them now. Servers may run. Until the end the former time series is read and fed. What \
was retired is not in the new one. A rebuild that was interrupted begins again from the start. Then restart servers that have another definition.

Exit status: 0 done, 2 usage, 3 the database, 130 interrupted.";

pub(crate) async fn run(args: SeriesArgs) -> Result<ExitCode, Failure> {
    match args.action {
        SeriesAction::Rebuild(args) => {
            let history = args.history;
            database::interruptible(&args.database, async |opened| {
                opened.refuse_pending().await?;
                rebuild(history.engine(&opened.store)?).await
            })
            .await
        }
        SeriesAction::Drop(args) => {
            let history = args.history;
            database::interruptible(&args.database, async |opened| drop_one(opened, &history).await).await
        }
    }
}

async fn rebuild(engine: &Engine) -> Result<ExitCode, Failure> {
    let name = &engine.definition().name;
    let Some(mut rebuild) = engine.series().rebuild().await.map_err(failed)? else {
        return Err(Failure::Usage(format!("the definition of {name} has no timeSeries")));
    };
    while !rebuild.go_on().await.map_err(failed)? {}
    rebuild.swap().await.map_err(failed)?;
    print(format_args!("the time series of {name} is rebuilt"));
    Ok(ExitCode::SUCCESS)
}

async fn drop_one(opened: &Opened, history: &HistoryArgs) -> Result<ExitCode, Failure> {
    let engine = history.engine(&opened.store)?;
    let name = &engine.definition().name;
    if engine.definition().time_series.is_some() {
        return Err(Failure::Usage(format!(
            "the definition of {name} has timeSeries: remove it, restart the servers, and run the command again"
        )));
    }
    let there_was_one = engine.series().remove().await.map_err(failed)?;
    match there_was_one {
        true => print(format_args!("the time series of {name} is deleted")),
        false => print(format_args!("{name} has no time series")),
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: Error) -> Failure {
    Failure::Database(format!("{error}; run the command again"))
}
