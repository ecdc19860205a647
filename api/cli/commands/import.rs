//! `import`: stores the rows of a file, in the database or through a server.

mod progress;
mod remote;

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Clock, IdempotencyKey, Invalid};
use pagebucket_streams::import::{self, ColumnName, Format, OpenError, RowReader, RowRules};
use pagebucket_streams::ingest::{self, Budget, Destination, End, Phase, Report, StreamOptions};
use pagebucket_streams::patience::OUTAGE;
use reqwest::Url;

use self::progress::ImportProgress;
use self::remote::{MOST_OWNERS, RemoteHistory, Token};
use super::database::{self, HistoryArgs, Opened, parse_owner};
use super::exit::{Failure, INTERRUPTED, Signals};
use super::terminal::print;
use crate::config;
use crate::config::{CapacityArgs, DatabaseArgs};

/// Flags of `import`.
#[derive(Args, Debug)]
// Where environment variables set flags, clap's own usage in an error would list these as if they were
// required.
#[command(after_help = AFTER_HELP, override_usage = "pagebucket import [OPTIONS] <FILE>")]
pub(crate) struct ImportArgs {
    /// The file to read: CSV, or NDJSON; `-` is standard input.
    ///
    /// CSV has a header row, NDJSON one JSON object per line.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Format of the file.
    ///
    /// Without it the extension decides: .csv, or .ndjson, .jsonl, .json. Required for standard input.
    #[arg(long, value_name = "FORMAT", value_parser = config::format())]
    format: Option<Format>,

    #[command(flatten)]
    history: HistoryArgs,

    /// Owner of all rows. A column with the owner is then ignored.
    #[arg(long, visible_alias = "customer", value_name = "ID")]
    owner: Option<String>,

    /// Column with a property of the item, or with the owner.
    ///
    /// May be given more than once. The default is the property's name; of trades also `customer_id`,
    /// `symbol`, `amount` or `quantity`, and `timestamp` or the empty name.
    #[arg(long = "column", value_name = "PROPERTY=NAME")]
    columns: Vec<ColumnName>,

    /// Stop at the first bad row. The rows before it are stored.
    #[arg(long)]
    strict: bool,

    /// Skip the rows before this line, to continue an import.
    ///
    /// The header is line 1, and is always read.
    #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from_line: u64,

    /// Name of this import: 1 to 255 visible ASCII characters.
    ///
    /// Such as a UUID. Another run with the same name and file continues the import: no row is stored
    /// twice.
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<IdempotencyKey>,

    /// Send to a running server instead of the database.
    ///
    /// Such as `http://127.0.0.1:8080`, or `https`. HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and
    /// NO_PROXY are honoured. With --key, a lost connection is replaced, and nothing is stored twice.
    #[arg(long, value_name = "URL", value_parser = remote::address)]
    url: Option<Url>,

    /// Access token or key for the server of --url.
    ///
    /// It must have the scope `append`, for all owners. Set it in the environment to hide it from other
    /// users of this machine.
    #[arg(long, env = "PAGEBUCKET_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    token: Option<Token>,

    /// Send the token by http to another machine.
    ///
    /// Everyone on the way can read it, and use it. Without this flag such an import is refused.
    #[arg(long, requires = "token")]
    plain_text_token: bool,

    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    capacity: CapacityArgs,
}

fn key(text: &str) -> Result<IdempotencyKey, Invalid> {
    IdempotencyKey::parse(text.as_bytes())
}

const AFTER_HELP: &str = "\
The definition of the history says which columns there are. A column name may be empty: --column date=. In NDJSON columns \
are fields, whose values may be MongoDB Extended JSON as mongoexport writes it. Every row needs its date: RFC 3339, with a T \
or a space, a day, or milliseconds since 1970. An empty field of CSV is an absent property. A trade without a type is a buy, or \
a sell if its quantity is negative. CSV is for items whose properties are all scalars.

A bad row is reported with its line, and the other rows are stored. Rows have no identity: a file imported twice is stored \
twice, unless both imports have the same --key.

Ctrl-C stops the import: rows that were read and are not sent yet are left out, and those under way are finished, which takes \
about a second. The last lines say what is stored and how to continue. A second Ctrl-C no longer waits for a server.

Exit status: 0 all rows stored, 1 some refused, 2 usage or the file cannot be read, 3 the database or the server, 130 interrupted.";

/// Opens the file, then the database or the server, and imports.
pub(crate) async fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let definition = args.history.of(&definitions)?;
    let (rows, size) = args.open(definition)?;
    if let Some(server) = &args.url {
        let token = args.token.as_ref().map(Token::header).transpose();
        let token = token.map_err(|Invalid(rule)| Failure::Usage(rule))?;
        if token.is_some() && server.scheme() == "http" && !remote::is_local(server) && !args.plain_text_token
        {
            return Err(Failure::Usage(format!(
                "the token would be sent to {server} in plain text: use https, or --plain-text-token if everyone on the \
                 way may use it"
            )));
        }
        let (mut interrupts, mut progress) =
            (Signals::new()?.channel(Phase::Finishing), ImportProgress::start(size));
        let rows = import::read_ahead(rows, args.strict);
        let to = RemoteHistory { server, token, definition, key: args.key.as_ref() };
        let report = remote::run(rows, to, args.strict, &mut interrupts, &mut progress).await;
        return Ok(args.tell(&report, definition, progress));
    }
    let work = async |opened: &Opened, mut signals: Signals| {
        signals.unless(opened.prepare(false)).await?;
        let (mut interrupts, mut progress) = (signals.channel(Phase::Finishing), ImportProgress::start(size));
        let to = Destination {
            engine: args.history.engine(&opened.store)?.clone(),
            key: args.key.clone(),
            began: Clock::system().now(),
        };
        let rows = import::read_ahead(rows, args.strict);
        let many = args.owner.is_none();
        let options = StreamOptions {
            strict: args.strict,
            many,
            waiting: MOST_WAITING,
            patience: OUTAGE,
            owners: MOST_OWNERS,
        };
        let budget = Budget::of(BUDGET);
        let report = ingest::run(rows, &to, options, &budget, &mut interrupts, &mut progress).await;
        Ok(args.tell(&report, definition, progress))
    };
    database::storing(&args.database, &args.capacity, work).await
}

/// Maximum number of waiting rows: then reading stops.
const MOST_WAITING: usize = 100_000;

/// Bytes of rows that wait: enough for [`MOST_WAITING`] trades of as many owners.
const BUDGET: usize = 64 * 1024 * 1024;

impl ImportArgs {
    fn tell(&self, report: &Report, definition: &Definition, progress: ImportProgress) -> ExitCode {
        let took = progress.finish();
        print(format_args!("{}", progress::text(report, definition, took, self.key.is_some())));
        ExitCode::from(status(report))
    }

    /// Does everything that needs no database. Returns the size of the file in bytes, too, if it is known.
    ///
    /// # Errors
    /// The file, its format or its columns are missing.
    fn open(&self, definition: &Arc<Definition>) -> Result<(RowReader, Option<u64>), Failure> {
        let name = self.file.display();
        let owner = self.owner.as_deref().map(|text| parse_owner(text, definition, "--owner")).transpose()?;
        let standard_input = self.file == Path::new("-");
        let by_name = || Format::of_extension(self.file.extension()?.to_str()?);
        let format = self.format.or_else(by_name).ok_or_else(|| {
            Failure::Usage(match standard_input {
                true => "name the format of standard input with --format csv or --format ndjson".to_owned(),
                false => format!(
                    "{name}: its name does not tell its format; name it with --format csv or --format ndjson"
                ),
            })
        })?;
        let (input, size): (Box<dyn Read + Send>, _) = if standard_input {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(&self.file);
            let file = file.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            let size = file.metadata().ok().filter(Metadata::is_file).map(|data| data.len());
            (Box::new(file), size)
        };
        let rows = RowReader::open(
            input,
            definition,
            RowRules { format, names: &self.columns, owner, from_line: self.from_line },
        );
        let rows = rows.map_err(|error| {
            Failure::Usage(match error {
                OpenError::Column { property, rule } => format!("--column {property}=… {rule}"),
                _ => format!("{name}: {error}"),
            })
        })?;
        Ok((rows, size))
    }
}

fn status(report: &Report) -> u8 {
    match &report.end {
        Some(End::Database(_) | End::Server(_)) => 3,
        Some(End::Unreadable(_)) => 2,
        Some(End::Interrupted) => INTERRUPTED,
        None | Some(End::BadRow) => u8::from(report.refused > 0),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct ImportCli {
        #[command(flatten)]
        import: ImportArgs,
    }

    fn open(flags: &[&str]) -> Result<(RowReader, Option<u64>), String> {
        let args =
            ImportCli::try_parse_from(["import"].iter().chain(flags)).map_err(|error| error.to_string())?;
        args.import.open(&Arc::new(Definition::trades())).map_err(Failure::sentence)
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/trades.csv");
        assert!(open(&[example, "--customer", "7"]).unwrap().1.is_some_and(|size| size > 100));
        for (flags, part) in [
            (&[example][..], "--owner ID"),
            (&[example, "--customer", "0"], "whole number"),
            (&[example, "--owner", "7", "--column", "customerId=c"], "--owner"),
            (&[example, "--owner", "7", "--column", "side=c"], "no property of a trade"),
            (&[example, "--owner", "7", "--column", "price"], "PROPERTY=NAME"),
            (&[example, "--customer", "7", "--column", "date="], "no column \"\""),
            (&["-"], "--format csv"),
            (&["trades.parquet"], "--format csv"),
            (&["nowhere.csv", "--customer", "7"], "nowhere.csv: No such file"),
            (&["/tmp", "--format", "csv"], "directory"),
            (&[example, "--from-line", "0"], "from-line"),
            (&[], "FILE"),
        ] {
            let sentence = open(flags).err().unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }
}
