mod run;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use self::run::{Customers, End, Report, Wanted};
use super::database;
use super::exit::{Failure, INTERRUPTED};
use super::signals::Signals;
use super::terminal::{Progress, print, print_error};
use crate::config::{DatabaseArgs, ReadArgs};
use crate::domain::{CustomerId, DateRange, Instant, Invalid, Position};
use crate::embedded::Role;
use crate::export::Format;

/// Flags of `export`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ExportArgs {
    /// Customer whose trades are exported.
    #[arg(long, value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    customer: Option<CustomerId>,

    /// Export all customers, one history after the other, ascending by id.
    #[arg(long)]
    all: bool,

    /// Format of the file. Without it the extension decides: .csv, .ndjson or .jsonl; standard output gets NDJSON.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// Only trades at this time or later: RFC 3339 with an offset.
    #[arg(long, value_name = "DATE", value_parser = instant)]
    from: Option<Instant>,

    /// Only trades before this time.
    #[arg(long, value_name = "DATE", value_parser = instant)]
    to: Option<Instant>,

    /// Only trades after this sequence number, to continue an export.
    #[arg(long, value_name = "SEQ", conflicts_with = "all")]
    after: Option<Position>,

    /// With --all: only customers with an id greater than this.
    #[arg(long, value_name = "ID", conflicts_with = "customer")]
    after_customer: Option<CustomerId>,

    /// The file to write, which must not exist. Without it, or with `-`: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reads: ReadArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
`pagebucket import` reads the file as it is. The export of a history starts with its state at that time, and leaves out \
trades that are appended later. If the database does not answer, the export waits for up to a minute.

Exit status: 0 all exported, 2 usage or the file cannot be written, 3 the database, 130 interrupted. Unless it is 0, the \
last lines say how to continue.";

/// Opens the database, then the file, and exports.
pub(super) async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let wanted = args.wanted().map_err(Failure::Usage)?;
    // Signals come first, so that an early one also stops the private mongod.
    let mut signals = Signals::new()?;
    let opened = tokio::select! {
        opened = database::open(&args.database, Role::Tool, false) => opened?,
        () = signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
    };
    opened
        .with(async |opened| {
            tokio::select! {
                // An export only reads: another command applies migrations.
                prepared = opened.prepare(true) => prepared?,
                () = signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
            }
            let store = opened.store.clone().preferring(args.reads.read_preference.into());
            let file = args.open().map_err(Failure::Usage)?;
            let mut progress = Progress::start(None);
            let report = run::run(&wanted, store.trades(), file, &mut signals, &mut progress).await;
            let text = report.text(progress.finish());
            match args.to_a_file() {
                true => print(format_args!("{text}")),
                false => print_error(format_args!("{text}")),
            }
            Ok(ExitCode::from(status(&report)))
        })
        .await
}

impl ExportArgs {
    fn to_a_file(&self) -> bool {
        self.output.as_ref().is_some_and(|output| output.as_os_str() != "-")
    }

    /// Checks everything that needs no database. The file is made later, so that a database that cannot be reached leaves
    /// none.
    ///
    /// # Errors
    /// A sentence for the user.
    fn wanted(&self) -> Result<Wanted, String> {
        let dates = DateRange::new(self.from, self.to).map_err(|Invalid(rule)| format!("--to {rule}"))?;
        let dates = Some(dates).filter(|_| self.from.is_some() || self.to.is_some());
        let output = self.output.as_ref().filter(|_| self.to_a_file());
        let by_name = || Format::of_extension(output?.extension()?.to_str()?);
        let format = self.format.or_else(by_name).or_else(|| output.is_none().then_some(Format::Ndjson));
        let format = format.ok_or_else(|| {
            "the name of the file does not tell its format; name it with --format csv or --format ndjson"
                .to_owned()
        })?;
        if let Some(output) = output.filter(|output| output.exists()) {
            return Err(format!("{}: the file exists already", output.display()));
        }
        let customers = match self.customer {
            Some(customer) => Customers::One(customer, self.after.unwrap_or(Position::BEGINNING)),
            None => Customers::After(self.after_customer),
        };
        Ok(Wanted { customers, dates, format })
    }

    /// Makes the file.
    fn open(&self) -> Result<tokio::fs::File, String> {
        let opened = match self.output.as_ref().filter(|_| self.to_a_file()) {
            Some(path) => File::create_new(path).map_err(|error| format!("{}: {error}", path.display())),
            None => standard_output().map_err(|error| format!("standard output: {error}")),
        };
        opened.map(tokio::fs::File::from_std)
    }
}

/// Standard output as a file, so that a slow reader does not delay a signal.
fn standard_output() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}

fn instant(text: &str) -> Result<Instant, Invalid> {
    Instant::parse_rfc3339(text)
}

fn status(report: &Report) -> u8 {
    match &report.end {
        None => 0,
        Some(End::Unwritable(_)) => 2,
        Some(End::Database(_)) => 3,
        Some(End::Interrupted) => INTERRUPTED,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        export: ExportArgs,
    }

    fn wanted(flags: &[&str]) -> Result<Wanted, String> {
        let args = ["export"].iter().chain(flags);
        Command::try_parse_from(args).map_err(|error| error.to_string())?.export.wanted()
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        assert!(matches!(wanted(&["--all", "-o", "nowhere/x.CSV"]).unwrap().format, Format::Csv));
        assert!(matches!(wanted(&["--customer", "7", "-o", "-"]).unwrap().format, Format::Ndjson));
        for (flags, part) in [
            (&[][..], "--customer"),
            (&["--all", "--customer", "7"], "cannot be used with"),
            (&["--customer", "0"], "whole number"),
            (&["--all", "--after", "5"], "cannot be used with"),
            (&["--customer", "7", "--after-customer", "5"], "cannot be used with"),
            (&["--all", "--from", "2004-01-09"], "RFC 3339"),
            (&["--all", "--from", "2004-01-09T00:00:00Z", "--to", "2004-01-08T00:00:00Z"], "--to must not"),
            (&["--all", "-o", "trades.parquet"], "--format csv"),
            (&["--all", "--format", "csv", "-o", "/tmp"], "already"),
        ] {
            let sentence = wanted(flags).err().unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }
}
