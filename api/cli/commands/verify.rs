//! `verify`: checks what is stored, and mends what can be mended.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use pagebucket_engine::internal::{CollectionScan, Records, TileScan};
use pagebucket_engine::verify::{Finding, Mended, Verifier};
use pagebucket_engine::{Deadline, Engine, Error};
use pagebucket_model::definition::Definitions;
use pagebucket_model::domain::OwnerId;
use tokio::time::{Instant, sleep_until};

use super::database::{self, HistoryArgs, Opened, parse_owner};
use super::exit::Failure;
use super::terminal::{ProgressLine, count, speed};
use crate::config::DatabaseArgs;

/// How long a command of the database may take.
const STEP: Duration = Duration::from_secs(60);

/// How often each page of one owner is read: in the order of `_id`, and by the owner's field.
const READINGS_OF_AN_OWNER: u64 = 2;

/// Pages that are read to compare a tile with them.
const PAGES_OF_A_TILE: u64 = 64;

/// Flags of `verify`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct VerifyArgs {
    /// Name of the history.
    ///
    /// Without it: all histories; with --owner, the only history.
    #[arg(long, value_name = "NAME")]
    history: Option<String>,

    /// Owner whose history is verified; may be given more than once.
    ///
    /// Without it: all owners.
    #[arg(long, visible_alias = "customer", value_name = "ID")]
    owner: Vec<String>,

    /// Repair what can be repaired without loss, and say what was changed.
    #[arg(long)]
    repair: bool,

    /// Also compare native time series with the pages.
    ///
    /// It compares counts and sums by day and group. A server must run, which feeds them. Not with --owner.
    #[arg(long, conflicts_with = "owner")]
    series: bool,

    /// Pages that are read in a second, at most.
    #[arg(long, value_name = "N", default_value = "5000")]
    pages_per_second: NonZeroU32,

    #[command(flatten)]
    database: DatabaseArgs,
}

const AFTER_HELP: &str = "\
Reads all pages and compares them with the invariants of docs/architecture.md, also while others append. Prints one line for each \
finding: where it is, which invariant it breaks, and what a reader of that page gets today.

A repair sets a wrong count, first or last, and a missing page number between two others, and makes tiles of summaries again. It changes no item and nothing that \
readers keep. It leaves the rest as it is and says why: for example a wrong value that may be the only trace of a loss.

Exit status: 0 nothing found, or all repaired; 1 findings remain; 2 usage; 3 the database; 130 interrupted.";

pub(crate) async fn run(args: VerifyArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let owners = args.owners(&definitions)?;
    database::interruptible(&args.database, async |opened| {
        // Findings are what this command is for: it does not refuse a collection without a guard.
        opened.refuse_pending().await?;
        Verification::new(&args).run(opened, &owners).await
    })
    .await
}

impl VerifyArgs {
    /// The owners of each history that is meant; none for all of them.
    fn owners(&self, definitions: &Definitions) -> Result<BTreeMap<Arc<str>, Vec<OwnerId>>, Failure> {
        if self.history.is_some() || !self.owner.is_empty() {
            let history = HistoryArgs::named(self.history.clone());
            let definition = history.of(definitions)?;
            let parse = |owner: &String| parse_owner(owner, definition, "--owner");
            let owners = self.owner.iter().map(parse).collect::<Result<_, _>>()?;
            return Ok([(definition.name.clone(), owners)].into());
        }
        Ok(definitions.iter().map(|definition| (definition.name.clone(), Vec::new())).collect())
    }
}

/// What was verified so far.
struct Verification<'a> {
    args: &'a VerifyArgs,
    began: Instant,
    progress: ProgressLine,
    pages: u64,
    /// Documents that were looked at once more, by the owner's field.
    examined: u64,
    found: u64,
    repaired: u64,
}

impl<'a> Verification<'a> {
    fn new(args: &'a VerifyArgs) -> Self {
        Self {
            args,
            began: Instant::now(),
            progress: ProgressLine::start(None),
            pages: 0,
            examined: 0,
            found: 0,
            repaired: 0,
        }
    }

    async fn run(
        mut self,
        opened: &Opened,
        owners: &BTreeMap<Arc<str>, Vec<OwnerId>>,
    ) -> Result<ExitCode, Failure> {
        for line in opened.store.verify_collections().await? {
            self.line(&line);
        }
        self.progress.set_length(to_read(opened, owners).await.map_err(failed)?);
        let is_everything = self.args.history.is_none() && self.args.owner.is_empty();
        for engine in opened.store.histories() {
            match owners.get(&engine.definition().name) {
                None => {}
                Some(owners) if owners.is_empty() => self.history(engine).await.map_err(failed)?,
                Some(owners) => self.owners(engine, owners).await.map_err(failed)?,
            }
        }
        for engine in opened.store.histories().iter().filter(|_| self.args.series) {
            if owners.contains_key(&engine.definition().name) {
                self.series(engine).await.map_err(failed)?;
            }
        }
        let known = opened.store.known_histories().await.map_err(failed)?;
        let is_served = |name: &str| opened.store.history(name).is_some();
        let undefined: Vec<_> =
            known.iter().map(|history| &*history.name).filter(|name| !is_served(name)).collect();
        if !undefined.is_empty() {
            self.progress.line(format_args!(
                "not verified, because these histories have no definition here: {}, and the records of idempotency keys",
                undefined.join(", "),
            ));
        } else if is_everything {
            self.records(opened.store.histories()).await.map_err(failed)?;
        }
        let (pages, found, repaired) = (self.pages, self.found, self.repaired);
        self.progress.line(format_args!(
            "verified {} in {}: {}, {repaired} repaired",
            count(pages, "page"),
            speed(pages, self.began.elapsed()),
            count(found, "finding"),
        ));
        self.progress.finish();
        Ok(if found > repaired { ExitCode::from(1) } else { ExitCode::SUCCESS })
    }

    /// All owners of a history.
    async fn history(&mut self, engine: &Engine) -> Result<(), Error> {
        let mut scan = CollectionScan::default();
        while !scan.ended {
            let scanned = engine.verifier().scan(&mut scan, Deadline::within(STEP)).await?;
            self.findings(engine, &scanned.strays).await?;
            for owner in scanned.suspects {
                self.owner(engine, &owner).await?;
            }
            self.pages += scanned.buckets;
            self.go_on().await;
        }
        self.counter(engine, scan.markers).await?;
        self.tiles(engine, None).await
    }

    /// Some owners of a history.
    async fn owners(&mut self, engine: &Engine, owners: &[OwnerId]) -> Result<(), Error> {
        let mut markers = false;
        for owner in owners {
            self.owner(engine, owner).await?;
            let mut examined = async |documents: u64| {
                self.examined += documents;
                self.go_on().await;
            };
            let findings = engine.verifier().elsewhere(owner, STEP, &mut examined).await?;
            self.findings(engine, &findings).await?;
            markers |= engine.verifier().has_marker(owner, Deadline::within(STEP)).await?;
            self.tiles(engine, Some(owner.clone())).await?;
        }
        self.counter(engine, markers).await
    }

    /// The tiles of summaries of all owners, or of one.
    async fn tiles(&mut self, engine: &Engine, owner: Option<OwnerId>) -> Result<(), Error> {
        let mut scan = TileScan::of(owner);
        while !scan.ended {
            let compared = scan.compared;
            for finding in engine.verifier().scan_tiles(&mut scan, Deadline::within(STEP)).await? {
                let line = format!("{} {}: data model: {}", finding.collection, finding.id, finding.what);
                self.line(&line);
                if self.args.repair {
                    let mended = engine.verifier().mend_tile(&finding, Deadline::within(STEP)).await?;
                    self.tell_mended(&mended, 1);
                }
            }
            self.examined += (scan.compared - compared) * PAGES_OF_A_TILE;
            self.go_on().await;
        }
        Ok(())
    }

    /// The native time series of a history.
    async fn series(&mut self, engine: &Engine) -> Result<(), Error> {
        let mut read = async |pages: u64| {
            self.examined += pages;
            self.go_on().await;
        };
        for finding in engine.series().check(STEP, &mut read).await? {
            self.line(&format!("{}_series: {finding}", engine.definition().name));
        }
        Ok(())
    }

    /// The number of markers of a history; `markers` says whether it has any.
    async fn counter(&mut self, engine: &Engine, markers: bool) -> Result<(), Error> {
        if let Some(what) = engine.verifier().verify_counter(markers, Deadline::within(STEP)).await? {
            self.line(&format!("histories {}: data model: {what}", engine.definition().name));
        }
        Ok(())
    }

    /// The pages of one owner.
    async fn owner(&mut self, engine: &Engine, owner: &OwnerId) -> Result<(), Error> {
        let mut read = async |pages: u64| {
            self.pages += pages;
            self.go_on().await;
        };
        let findings = engine.verifier().verify(owner, STEP, &mut read).await?;
        self.findings(engine, &findings).await
    }

    /// Prints what was found, and what is repaired of it. Those of one bucket follow each other.
    async fn findings(&mut self, engine: &Engine, findings: &[Finding]) -> Result<(), Error> {
        for of_one in findings.chunk_by(|one, other| one.id == other.id) {
            for finding in of_one {
                self.tell(engine, finding).await?;
            }
            if self.args.repair {
                let mended = engine.verifier().mend(of_one, Deadline::within(STEP)).await?;
                self.tell_mended(&mended, of_one.len() as u64);
            }
        }
        Ok(())
    }

    /// Says what became of the repair of these many findings.
    fn tell_mended(&mut self, mended: &Mended, findings: u64) {
        match mended {
            Mended::Set(set) => {
                self.repaired += findings;
                self.progress.print(format_args!("  repaired: {set}"));
            }
            Mended::Left(why) => self.progress.print(format_args!("  not repaired: {why}")),
        }
    }

    /// The records of idempotency keys.
    async fn records(&mut self, engines: &[Engine]) -> Result<(), Error> {
        let verifiers: Vec<_> = engines.iter().map(Engine::verifier).collect();
        let mut records = Records::default();
        while !records.ended {
            for finding in Verifier::lost(&verifiers, &mut records, Deadline::within(STEP)).await? {
                let Finding { id, rule, what, .. } = finding;
                self.line(&format!("idempotency_keys {id}: {rule}: {what}"));
            }
        }
        Ok(())
    }

    /// Prints a finding that is of no owner.
    fn line(&mut self, line: &str) {
        self.found += 1;
        self.progress.print(format_args!("{line}"));
    }

    /// Prints a finding, with what a reader gets.
    async fn tell(&mut self, engine: &Engine, finding: &Finding) -> Result<(), Error> {
        self.found += 1;
        let Finding { id, owner, page, rule, what, .. } = finding;
        let history = &engine.definition().name;
        let shown = match owner.as_ref().zip(*page) {
            Some((owner, page)) => engine.verifier().shown(owner, page, Deadline::within(STEP)).await?,
            None => "nothing of it".to_owned(),
        };
        self.progress.print(format_args!("{history} {id}: {rule}: {what}; a reader gets {shown}"));
        Ok(())
    }

    /// Shows how far it is, and waits until so many pages may have been read.
    async fn go_on(&mut self) {
        let read = self.pages + self.examined;
        self.progress.show(self.pages, "pages verified", read);
        let seconds = read as f64 / f64::from(self.args.pages_per_second.get());
        sleep_until(self.began + Duration::from_secs_f64(seconds)).await;
    }
}

/// About how many pages are to be read: of all owners of a history by the size of its collection, of some by
/// their totals.
async fn to_read(opened: &Opened, owners: &BTreeMap<Arc<str>, Vec<OwnerId>>) -> Result<u64, Error> {
    let mut pages = 0;
    for engine in opened.store.histories() {
        let Some(owners) = owners.get(&engine.definition().name) else { continue };
        if owners.is_empty() {
            pages += engine.verifier().estimated_buckets(Deadline::within(STEP)).await?;
        }
        for owner in owners {
            // A history that cannot be read is a finding, which is told when its turn comes.
            let history = engine.reads().history(owner.clone(), Deadline::within(STEP)).await;
            pages += READINGS_OF_AN_OWNER * history.map_or(0, |history| history.totals().pages());
        }
    }
    Ok(pages)
}

fn failed(error: Error) -> Failure {
    Failure::Database(format!("{error}; run the command again"))
}
