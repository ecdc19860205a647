//! `tail`: prints the last items of an owner, and those that are appended.

use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use pagebucket_engine::internal::COMMAND;
use pagebucket_engine::live::LiveStart;
use pagebucket_engine::reads::StoredItem;
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::domain::{OwnerId, Position, Seq};
use pagebucket_streams::export::{Format, Writer};
use pagebucket_streams::patience::{OUTAGE, Patience};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::unix::pipe;

use super::database::{self, HistoryArgs, Opened, Unready, parse_owner};
use super::exit::{Failure, Signals};
use super::terminal::output;
use crate::config::DatabaseArgs;

/// Flags of `tail`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct TailArgs {
    #[command(flatten)]
    history: HistoryArgs,

    /// Owner whose items are printed: 7 or customers=7.
    #[arg(long, visible_alias = "customer", value_name = "ID")]
    owner: String,

    /// How many of the last items are printed first.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    items: u64,

    /// Print all items after this sequence number instead of the last ones.
    #[arg(long, value_name = "SEQ", conflicts_with = "items", value_parser = Position::parse)]
    after: Option<Position>,

    /// Then print each item that is appended.
    ///
    /// By whatever process, until a signal ends the command.
    #[arg(long, short)]
    follow: bool,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Each item is a line of JSON with its owner and its seq, as `pagebucket export` writes it. With --follow they come in order of seq and without \
a gap. If the database does not answer, the command waits for up to a minute, and goes on where it was.

Exit status: 0 all printed, or what reads the output has closed it; 2 usage or the output cannot be written; 3 the database, the next items \
are deleted, or a backup was restored; 130 interrupted.";

/// Why nothing more is printed.
enum TailEnd {
    /// What reads the output has closed it.
    Closed,
    Unwritable(io::Error),
    Database(Error),
}

/// Prints the items of one owner.
struct TailPrinter<'a> {
    engine: &'a Engine,
    owner: OwnerId,
    writer: Writer,
    out: File,
    rows: Vec<u8>,
    /// Everything before this position is printed; `None`: where to begin is not known yet.
    at: Option<Position>,
    /// Whether it has followed from there.
    followed: bool,
    patience: Patience,
}

/// Opens the database, and prints.
pub(crate) async fn run(args: TailArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let definition = args.history.of(&definitions)?;
    let owner = parse_owner(&args.owner, definition, "--owner")?;
    let writer = Writer::new(definition, Format::Ndjson).expect("a line of NDJSON holds any item");
    let work = async |opened: &Opened, mut signals: Signals| {
        // It only reads: another command applies migrations.
        signals.unless(opened.prepare(true)).await?;
        let printer = TailPrinter {
            engine: args.history.engine(&opened.store)?,
            owner,
            writer,
            out: output()?,
            rows: Vec::new(),
            at: args.after,
            followed: false,
            patience: Patience::of(OUTAGE),
        };
        signals.unless(printer.run(&args)).await
    };
    database::with(&args.database, Unready::Refuse, work).await
}

impl TailPrinter<'_> {
    async fn run(mut self, args: &TailArgs) -> Result<ExitCode, Failure> {
        let ended = tokio::select! {
            ended = self.outlast(args) => ended,
            () = closed() => Err(TailEnd::Closed),
        };
        match ended {
            Ok(()) | Err(TailEnd::Closed) => Ok(ExitCode::SUCCESS),
            Err(TailEnd::Unwritable(error)) => Err(Failure::Usage(format!("standard output: {error}"))),
            Err(TailEnd::Database(error)) => Err(Failure::Database(error.to_string())),
        }
    }

    /// Prints, and goes on after an outage of the database.
    async fn outlast(&mut self, args: &TailArgs) -> Result<(), TailEnd> {
        loop {
            match self.print(args).await {
                Err(TailEnd::Database(error)) => self.patience.after(error).await?,
                ended => return ended,
            }
        }
    }

    async fn print(&mut self, args: &TailArgs) -> Result<(), TailEnd> {
        let at = match self.at {
            Some(at) => at,
            None => self.before_the_last(args.items).await?,
        };
        self.at = Some(at);
        let (owner, deadline) = (self.owner.clone(), Deadline::within(COMMAND));
        if !args.follow {
            let mut export = self.engine.reads().export(owner, at, None, deadline).await?;
            while let Some(batch) = export.next().await? {
                self.patience.renew();
                self.write(batch.items()).await?;
            }
            return Ok(());
        }
        let start = if self.followed { LiveStart::After(at) } else { LiveStart::of(Some(at)) };
        let mut reader = self.engine.live().watch(owner, start, deadline).await?;
        (self.at, self.followed) = (Some(reader.position()), true);
        loop {
            let page = reader.next().await;
            // Until now the database has answered.
            self.patience.renew();
            self.write(page?.items()).await?;
        }
    }

    /// The position before the last items that are there.
    async fn before_the_last(&self, items: u64) -> Result<Position, TailEnd> {
        let history = self.engine.reads().history(self.owner.clone(), Deadline::within(COMMAND)).await?;
        let before = Seq::new(history.totals().items().saturating_sub(items));
        let before = before.map_or(Position::BEGINNING, Position::behind);
        Ok(before.max(Position::before(history.first_seq())))
    }

    async fn write<'i>(&mut self, items: impl Iterator<Item = StoredItem<'i>>) -> Result<(), TailEnd> {
        self.rows.clear();
        let mut last = self.at;
        for item in items {
            self.writer.write(&self.owner, &item, &mut self.rows)?;
            last = Some(Position::behind(item.seq));
        }
        self.out.write_all(&self.rows).await?;
        self.out.flush().await?;
        self.at = last;
        Ok(())
    }
}

impl From<Error> for TailEnd {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<io::Error> for TailEnd {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::Closed } else { Self::Unwritable(error) }
    }
}

/// Completes when what reads standard output has closed it, so that the command ends before it has something
/// to print. Never for a file.
async fn closed() {
    let out = io::stdout().as_fd().try_clone_to_owned();
    // Nothing is written by it, so the pipe may stay blocking for those who share it.
    let out = out.and_then(pipe::Sender::from_owned_fd_unchecked);
    match out {
        Ok(out) if out.ready(Interest::ERROR).await.is_ok() => {}
        _ => std::future::pending().await,
    }
}
