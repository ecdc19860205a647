mod progress;
mod remote;
mod summary;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::progress::Progress;
use self::remote::MOST_WAITING;
use super::database;
use super::exit::{Failure, INTERRUPTED};
use super::signals::Signals;
use crate::config::DatabaseArgs;
use crate::domain::{Clock, CustomerId, IdempotencyKey};
use crate::embedded::Role;
use crate::import::{self, Columns, Format, Rows};
use crate::ingest::{self, Budget, Customers, Destination, End, Options, Report};

/// Flags of `import`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ImportArgs {
    /// The file to read: CSV with a header row, or NDJSON, one JSON object per line. `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Format of the file. Without it the extension decides: .csv, or .ndjson, .jsonl, .json. Required for standard
    /// input.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Customer of all rows. A column with the customer is then ignored.
    #[arg(long, value_name = "ID", conflicts_with = "customer_column")]
    customer: Option<CustomerId>,

    /// Column with the customer [default: customerId, else customer_id].
    #[arg(long, value_name = "NAME")]
    customer_column: Option<String>,

    /// Column with `buy` or `sell` [default: type]. Without one, a positive quantity is a buy and a negative one a
    /// sell.
    #[arg(long, value_name = "NAME")]
    type_column: Option<String>,

    /// Column with the ticker [default: ticker, else symbol].
    #[arg(long, value_name = "NAME")]
    ticker_column: Option<String>,

    /// Column with the quantity, a whole number [default: qty, else amount, else quantity].
    #[arg(long, value_name = "NAME")]
    qty_column: Option<String>,

    /// Column with the price per unit [default: price]. If it is absent or empty, the trade has no price.
    #[arg(long, value_name = "NAME")]
    price_column: Option<String>,

    /// Column with the date [default: date, else timestamp, else the column with an empty name]: RFC 3339, with a T or a
    /// space, a day, or milliseconds since 1970.
    #[arg(long, value_name = "NAME")]
    date_column: Option<String>,

    /// Stop at the first bad row. The rows before it are stored.
    #[arg(long)]
    strict: bool,

    /// Skip the rows before this line, to continue an import. The header is line 1, and is always read.
    #[arg(long, value_name = "LINE", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    from_line: u64,

    /// Name of this import, 1 to 255 visible ASCII characters, such as a UUID. Another run with the same name and file
    /// continues the import: no row is stored twice.
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<IdempotencyKey>,

    /// Send to a running server instead of the database: `http://127.0.0.1:8080`, or `https`. HTTP_PROXY, HTTPS_PROXY,
    /// ALL_PROXY and NO_PROXY are honoured. With --key, a lost connection is replaced, and nothing is stored twice.
    #[arg(long, value_name = "URL")]
    url: Option<remote::Server>,

    #[command(flatten)]
    database: DatabaseArgs,
}

fn key(text: &str) -> Result<IdempotencyKey, String> {
    IdempotencyKey::parse(text.as_bytes()).map_err(|invalid| invalid.to_string())
}

const AFTER_HELP: &str = "\
A column name may be empty: --date-column ''. In NDJSON columns are fields, whose values may be MongoDB Extended JSON \
as mongoexport writes it. A bad row is reported with its line, and the other rows are stored. Rows have no identity: a \
file imported twice is stored twice, unless both imports have the same --key.

Ctrl-C ends reading and stores what was read; a second Ctrl-C only finishes the appends that are running.

Exit status: 0 all rows stored, 1 some refused, 2 usage or the file cannot be read, 3 the database or the server, 130 interrupted.";

/// Opens the file, then the database or the server, and imports.
pub(super) async fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let file = args.open().map_err(Failure::Usage)?;
    // Signals come first, so that an early one also stops the private mongod.
    let mut interrupts = Signals::new()?.channel();
    if let Some(server) = &args.url {
        let mut progress = Progress::start(file.size);
        let rows = import::read_ahead(file.rows, args.strict);
        let report =
            remote::run(rows, server, args.key.as_ref(), args.strict, &mut interrupts, &mut progress);
        let report = report.await;
        return Ok(args.tell(&report, progress));
    }
    let opened = tokio::select! {
        opened = database::open(&args.database, Role::Tool, false) => opened?,
        _ = interrupts.recv() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    opened
        .with(async |opened| {
            tokio::select! {
                prepared = opened.prepare(false) => prepared?,
                _ = interrupts.recv() => return Ok(ExitCode::from(INTERRUPTED)),
            }
            let mut progress = Progress::start(file.size);
            let (trades, key) = (opened.store.trades().clone(), args.key.clone());
            let to = Destination { trades, key, began: Clock::system().now() };
            let rows = import::read_ahead(file.rows, args.strict);
            let report =
                ingest::run(rows, &to, args.options(), &Budget::of(BUDGET), &mut interrupts, &mut progress)
                    .await;
            Ok(args.tell(&report, progress))
        })
        .await
}

/// A file that can be read, and its size in bytes if known.
struct Opened {
    rows: Rows,
    size: Option<u64>,
}

/// Bytes of rows that wait: enough for [`MOST_WAITING`] rows of as many customers.
const BUDGET: usize = 64 * 1024 * 1024;

/// How long an import waits for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

impl ImportArgs {
    fn tell(&self, report: &Report, progress: Progress) -> ExitCode {
        let took = progress.finish();
        summary::print(report, took, self.key.is_some());
        ExitCode::from(status(report))
    }

    fn options(&self) -> Options {
        let (waiting, patience, customers) = (MOST_WAITING, PATIENCE, Customers::MOST);
        Options { strict: self.strict, many: false, waiting, patience, customers }
    }

    /// Does everything that needs no database.
    ///
    /// # Errors
    /// A sentence for the user: the file, its format or its columns are missing.
    fn open(&self) -> Result<Opened, String> {
        let name = self.file.display();
        let standard_input = self.file == Path::new("-");
        let by_name = || Format::of_extension(self.file.extension()?.to_str()?);
        let format = self.format.or_else(by_name).ok_or_else(|| match standard_input {
            true => "name the format of standard input with --format csv or --format ndjson".to_owned(),
            false => format!(
                "{name}: its name does not tell its format; name it with --format csv or --format ndjson"
            ),
        })?;
        let (input, size): (Box<dyn Read + Send>, _) = if standard_input {
            (Box::new(io::stdin()), None)
        } else {
            let file = File::open(&self.file).map_err(|error| format!("{name}: {error}"))?;
            let size = file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len());
            (Box::new(file), size)
        };
        let columns = Columns {
            customer: self.customer_column.clone(),
            side: self.type_column.clone(),
            ticker: self.ticker_column.clone(),
            qty: self.qty_column.clone(),
            price: self.price_column.clone(),
            date: self.date_column.clone(),
        };
        let rows = Rows::open(input, format, &columns, self.customer, self.from_line)
            .map_err(|error| format!("{name}: {error}"))?;
        Ok(Opened { rows, size })
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
    struct Command {
        #[command(flatten)]
        import: ImportArgs,
    }

    fn open(flags: &[&str]) -> Result<Opened, String> {
        let args = ["import"].iter().chain(flags);
        Command::try_parse_from(args).map_err(|error| error.to_string())?.import.open()
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/trades.csv");
        assert!(open(&[example, "--customer", "7"]).unwrap().size.is_some_and(|size| size > 100));
        for (flags, part) in [
            (&[example][..], "--customer 7"),
            (&[example, "--customer", "0"], "whole number"),
            (&[example, "--customer", "7", "--customer-column", "c"], "cannot be used with"),
            (&[example, "--customer", "7", "--date-column", ""], "no column \"\""),
            (&[example, "--customer", "7", "--date-column="], "no column \"\""),
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
