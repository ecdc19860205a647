mod list;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::exit::Failure;
use super::terminal::print;
use crate::config::DatabaseArgs;
use crate::definition::{Definition, Definitions};

/// Flags of `histories`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct HistoriesCommandArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    database: DatabaseArgs,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Read a definition, and print its routes or its mistake.
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

pub(super) async fn run(args: HistoriesCommandArgs) -> Result<ExitCode, Failure> {
    match &args.command {
        None => return list::run(&args.database).await,
        Some(Command::Check { file }) => {
            let definition = Definitions::read(file).map_err(|error| Failure::Usage(error.to_string()))?;
            check(&definition);
        }
        Some(Command::Show { name }) => {
            let known = Definitions::built_in();
            let text = known.get(name).map(|_| Definition::trades_text());
            let text = text.ok_or_else(|| {
                let names: Vec<_> = known.iter().map(|definition| &*definition.name).collect();
                Failure::Usage(format!("no history of this name is built in, only {}", names.join(", ")))
            })?;
            let written = std::io::stdout().lock().write_all(text.as_bytes());
            written.map_err(|error| Failure::Usage(format!("cannot write to standard output: {error}")))?;
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
    for (methods, path, what) in [
        ("GET, POST", path.clone(), format!("the {many} of one {whose}")),
        ("GET", format!("{path}/{{seq}}"), format!("one {one}")),
        ("GET", format!("{path}/pages/{{page}}"), "one page".to_owned()),
        ("GET", format!("{path}/export"), "all of them, as a file".to_owned()),
        ("POST", format!("/v1/{name}"), format!("an upload for many {owners}")),
        ("GET", format!("/v1/{owners}/{{{}}}", owner.field), format!("the totals of one {whose}")),
        ("GET", format!("/v1/{owners}"), format!("all {owners}")),
    ] {
        print(format_args!("  {methods:<9}  {path:<50}  {what}"));
    }
}
