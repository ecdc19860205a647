//! `histories`: lists the histories of the database, checks a definition, or shows one.

pub(crate) mod series;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pagebucket_engine::internal::KnownHistory;
use pagebucket_model::definition::{Definition, Definitions, LoadError};

use super::database::{self, Opened};
use super::exit::Failure;
use super::terminal::{print, write};
use crate::config::DatabaseArgs;

/// Flags of `histories`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct HistoriesCommandArgs {
    #[command(subcommand)]
    command: Option<HistoriesCommand>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Subcommand, Debug)]
enum HistoriesCommand {
    /// Read a definition, and print its routes or all of its mistakes.
    ///
    /// The exit status is 1 if it has mistakes.
    Check {
        /// The definition of a history, a JSON file.
        file: PathBuf,
    },
    /// Print a definition that is built in.
    Show {
        /// The history's name: trades.
        name: String,
    },
}

pub(crate) async fn run(args: HistoriesCommandArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => database::interruptible(&args.database, list).await?,
        Some(HistoriesCommand::Check { file }) => {
            let definition = Definitions::read(file).map_err(|error| match error {
                LoadError::Unreadable(sentence) => Failure::Usage(sentence),
                LoadError::Mistakes(lines) => Failure::Partly(lines),
            })?;
            check(&definition);
        }
        Some(HistoriesCommand::Show { name }) => {
            let known = Definitions::built_in();
            if known.get(name).is_none() {
                let names: Vec<_> = known.iter().map(|definition| &*definition.name).collect();
                let names = names.join(", ");
                return Err(Failure::Usage(format!("no history of this name is built in, only {names}")));
            }
            write(Definition::trades_text())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(definition: &Definition) {
    let Definition { name, owner, page_size, max_item_bytes, date, .. } = definition;
    let (noun, whose) = (definition.item.noun(), owner.noun());
    let (one, many) = (noun.one(), noun.many());
    let owners = &owner.collection;
    let path = format!("/v1/{owners}/{{{}}}/{name}", owner.field);
    let default = if date.required { "which clients send" } else { "by default the time of arrival" };
    print(format_args!(
        "{name}: {page_size} {many} a page, each of at most {max_item_bytes} bytes, with the date {}, {default}",
        date.name
    ));
    let csv = definition
        .item
        .columns()
        .ok()
        .map(|_| ("GET", format!("{path}/export.csv"), "the same as a table".to_owned()));
    let summary = definition
        .summaries
        .as_ref()
        .map(|_| ("GET", format!("{path}/summary"), "what they add up to, by spans of time".to_owned()));
    let of_all = definition.summaries.as_ref().and(definition.time_series.as_ref()).map(|_| {
        let what = format!("what those of all {owners} add up to, by spans of time");
        ("GET", format!("/v1/{name}/summary"), what)
    });
    let routes = [
        ("GET, POST", path.clone(), format!("the {many} of one {whose}")),
        ("GET", format!("{path}/{{seq}}"), format!("one {one}")),
        ("GET", format!("{path}/pages/{{page}}"), "one page".to_owned()),
        ("POST", format!("{path}/batch"), format!("{many} in an array")),
        ("POST", format!("{path}/upload"), "an upload, with one answer".to_owned()),
        ("POST", format!("{path}/upload.ndjson"), "an upload, with an outcome for each line".to_owned()),
        ("GET", format!("{path}/export.ndjson"), "all of them, as a file".to_owned()),
        ("GET", format!("{path}/live"), "what is appended, as events".to_owned()),
        ("POST", format!("/v1/{name}/upload"), format!("an upload for many {owners}")),
        ("POST", format!("/v1/{name}/upload.ndjson"), "the same, with an outcome for each line".to_owned()),
        ("GET", format!("/v1/{name}/live"), format!("which {owners} have new {many}, as events")),
        ("GET", format!("/v1/{owners}/{{{}}}", owner.field), format!("the totals of one {whose}")),
        ("DELETE", format!("/v1/{owners}/{{{}}}", owner.field), format!("erases one {whose}")),
        ("GET", format!("/v1/{owners}"), format!("all {owners}")),
    ];
    for (methods, path, what) in routes.into_iter().chain(csv).chain(summary).chain(of_all) {
        print(format_args!("  {methods:<9}  {path:<50}  {what}"));
    }
}

/// Prints a line for each history of the database.
async fn list(opened: &Opened) -> Result<(), Failure> {
    let known = opened.store.known_histories().await;
    let known = known.map_err(|error| Failure::Database(error.to_string()))?;
    for history in &known {
        let KnownHistory { name, owners, owner_field, owner_type, page_size, date, max_item_bytes } = history;
        let defined = match opened.store.history(name) {
            Some(_) => "defined",
            None => "not defined: it is not served",
        };
        print(format_args!(
            "{name}: of {owners} by {owner_field} ({owner_type}), {page_size} a page, each of at most {max_item_bytes} \
             bytes, with the date {date}; {defined}"
        ));
    }
    if known.is_empty() {
        print(format_args!("the database has no histories"));
    }
    Ok(())
}
