//! `export`: writes stored items to a file.

mod run;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{DateRange, Instant, Invalid, Position};
use pagebucket_streams::export::{Fields, Format, Writer};

use self::run::{ExportEnd, ExportReport, ExportRequest, ExportedOwners, Running};
use super::database::{self, HistoryArgs, Opened, Unready, parse_owner};
use super::exit::{Failure, INTERRUPTED, Signals};
use super::terminal::{ProgressLine, output, print, print_error};
use crate::config;
use crate::config::{DatabaseArgs, ReadArgs};

/// Flags of `export`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    history: HistoryArgs,

    /// Owner whose items are exported.
    ///
    /// Without it: all owners, one after the other, ascending by id.
    #[arg(long, visible_alias = "customer", value_name = "ID")]
    owner: Option<String>,

    /// Export all owners, as without --owner.
    #[arg(long, conflicts_with = "owner", hide = true)]
    all: bool,

    /// Format of the file.
    ///
    /// Without it the extension decides: .csv, or .ndjson, .jsonl, .json; standard output gets NDJSON.
    #[arg(long, value_name = "FORMAT", value_parser = config::format())]
    format: Option<Format>,

    /// Only items at this time or later: RFC 3339 with an offset.
    #[arg(long, value_name = "DATE", value_parser = Instant::parse_rfc3339)]
    from: Option<Instant>,

    /// Only items before this time.
    #[arg(long, value_name = "DATE", value_parser = Instant::parse_rfc3339)]
    to: Option<Instant>,

    /// Only items after this sequence number.
    ///
    /// It continues the export of an owner.
    #[arg(long, value_name = "SEQ", requires = "owner", value_parser = Position::parse)]
    after: Option<Position>,

    /// Only owners with an id greater than this.
    ///
    /// It continues the export of all.
    #[arg(long, visible_alias = "after-customer", value_name = "ID", conflicts_with = "owner")]
    after_owner: Option<String>,

    /// Only these fields of each row, comma-separated.
    ///
    /// Fields are the owner's, seq, and properties of the items.
    #[arg(long, value_name = "NAMES")]
    fields: Option<String>,

    /// The file to write, which must not exist.
    ///
    /// Without it, or with `-`: standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    reads: ReadArgs,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
`pagebucket import` reads the file as it is. The export of an owner starts with the state at that time, and leaves out \
items that are appended later. CSV is for items whose properties are all scalars. If the database does not answer, the export waits for up to a minute.

Exit status: 0 all exported, 2 usage or the file cannot be written, 3 the database, 130 interrupted. Unless it is 0, the \
last lines say how to continue.";

/// Opens the database, then the file, and exports.
pub(crate) async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let wanted = args.wanted(args.history.of(&definitions)?)?;
    let work = async |opened: &Opened, mut signals: Signals| {
        // An export only reads: another command applies migrations.
        signals.unless(opened.prepare(true)).await?;
        let store = opened.store.clone().preferring(args.reads.read_preference);
        let engine = args.history.engine(&store)?;
        let (file, report) = (args.open()?, ExportReport::default());
        let mut progress = ProgressLine::start(None);
        let running = Running { wanted: &wanted, engine, file, progress: &mut progress, pages: 0, report };
        let report = running.run(&mut signals).await;
        let text = report.text(engine.definition(), progress.finish());
        match args.file() {
            Some(_) => print(format_args!("{text}")),
            None => print_error(format_args!("{text}")),
        }
        Ok(ExitCode::from(status(&report)))
    };
    database::with(&args.database, Unready::Refuse, work).await
}

impl ExportArgs {
    /// The file, unless it is standard output.
    fn file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|output| *output != Path::new("-"))
    }

    /// Checks everything that needs no database. The file is made later, so that a database that cannot be
    /// reached leaves none.
    ///
    /// # Errors
    /// The flags make no sense together, or the file exists.
    fn wanted(&self, definition: &Arc<Definition>) -> Result<ExportRequest, Failure> {
        let dates = DateRange::new(self.from, self.to);
        let dates = dates.map_err(|Invalid(rule)| Failure::Usage(format!("--to {rule}")))?;
        let dates = Some(dates).filter(|_| self.from.is_some() || self.to.is_some());
        let output = self.file();
        let by_name = || Format::of_extension(output?.extension()?.to_str()?);
        let format = self.format.or_else(by_name).or_else(|| output.is_none().then_some(Format::Ndjson));
        let format = format.ok_or_else(|| {
            Failure::Usage(
                "the name of the file does not tell its format; name it with --format csv or --format ndjson"
                    .to_owned(),
            )
        })?;
        if let Some(output) = output.filter(|output| output.exists()) {
            return Err(Failure::Usage(format!("{}: the file exists already", output.display())));
        }
        let owner = |text: &Option<String>, flag| {
            text.as_deref().map(|text| parse_owner(text, definition, flag)).transpose()
        };
        let owners = match owner(&self.owner, "--owner")? {
            Some(owner) => ExportedOwners::One(owner, self.after.unwrap_or(Position::BEGINNING)),
            None => ExportedOwners::After(owner(&self.after_owner, "--after-owner")?),
        };
        let many = definition.item.noun().many();
        let writer = Writer::new(definition, format).ok_or_else(|| {
            Failure::Usage(format!(
                "{many} have properties that no field of CSV can hold: export them with --format ndjson"
            ))
        })?;
        let fields = self.fields.as_deref().map(|names| Fields::parse(definition, names)).transpose();
        let writer = match fields.map_err(|Invalid(rule)| Failure::Usage(format!("--fields {rule}")))? {
            Some(fields) => writer.with(fields),
            None => writer,
        };
        Ok(ExportRequest { owners, dates, writer })
    }

    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    fn open(&self) -> Result<tokio::fs::File, Failure> {
        let Some(path) = self.file() else { return output() };
        let opened = File::create_new(path);
        let opened = opened.map_err(|error| Failure::Usage(format!("{}: {error}", path.display())));
        opened.map(tokio::fs::File::from_std)
    }
}

fn status(report: &ExportReport) -> u8 {
    match &report.end {
        None => 0,
        Some(ExportEnd::Unwritable(_)) => 2,
        Some(ExportEnd::Database(_)) => 3,
        Some(ExportEnd::Interrupted) => INTERRUPTED,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct ExportCli {
        #[command(flatten)]
        export: ExportArgs,
    }

    fn wanted(flags: &[&str]) -> Result<ExportRequest, String> {
        let args =
            ExportCli::try_parse_from(["export"].iter().chain(flags)).map_err(|error| error.to_string())?;
        args.export.wanted(&Arc::new(Definition::trades())).map_err(Failure::sentence)
    }

    #[test]
    fn usage_is_checked_without_a_database() {
        assert!(
            wanted(&["--all", "-o", "nowhere/x.CSV"]).unwrap().writer.header().starts_with("customerId,seq")
        );
        assert_eq!(wanted(&["--customer", "7", "-o", "-"]).unwrap().writer.header(), "");
        let some = wanted(&["--format", "csv", "--fields", "date,qty,seq"]).unwrap();
        assert_eq!(some.writer.header(), "seq,qty,date\r\n");
        assert!(matches!(wanted(&["--after-owner", "7"]).unwrap().owners, ExportedOwners::After(Some(_))));
        for (flags, part) in [
            (&["--all", "--customer", "7"][..], "cannot be used with"),
            (&["--customer", "0"], "--owner must be a whole number"),
            (&["--after-customer", "0"], "--after-owner must be a whole number"),
            (&["--after", "5"], "--owner"),
            (&["--customer", "7", "--after-customer", "5"], "cannot be used with"),
            (&["--all", "--from", "2004-01-09"], "RFC 3339"),
            (&["--all", "--from", "2004-01-09T00:00:00Z", "--to", "2004-01-08T00:00:00Z"], "--to must not"),
            (&["--fields", "qty,size"], "--fields must be names from customerId, seq, type, ticker"),
            (&["--fields", "qty,qty"], "each at most once"),
            (&["--fields", ""], "--fields must be"),
            (&["--all", "-o", "trades.parquet"], "--format csv"),
            (&["--all", "--format", "csv", "-o", "/tmp"], "already"),
        ] {
            let sentence = wanted(flags).err().unwrap_or_default();
            assert!(sentence.contains(part), "{flags:?}: {sentence}");
        }
    }
}
