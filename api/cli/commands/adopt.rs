//! `adopt`: makes the documents of another collection items of a history.

mod progress;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use pagebucket_engine::{ConnectionSettings, Engine};
use pagebucket_model::definition::{Definition, Definitions};
use pagebucket_model::domain::ReadPreference;
use pagebucket_streams::adopt::rejects::Rejects;
use pagebucket_streams::adopt::{
    self, Adopting, Comparison, DocumentReader, Ended, ReadingRules, Shape, Source, Stop,
};
use pagebucket_streams::import::ColumnName;
use pagebucket_streams::ingest::{End, Phase};

use self::progress::{AdoptionProgress, copied, found, summary};
use super::database::{self, Opened};
use super::exit::{Failure, INTERRUPTED, Signals};
use super::terminal::print;
use crate::config;
use crate::config::{CapacityArgs, DatabaseArgs, MongodbUri};

/// Flags of `adopt`.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct AdoptArgs {
    /// Connection string of the MongoDB server of the source.
    ///
    /// Set it in the environment to hide its password from other users of this machine.
    #[arg(long, env = "PAGEBUCKET_ADOPT_FROM", value_name = "URI", hide_env_values = true)]
    #[arg(required_unless_present = "from_rejects")]
    from: Option<MongodbUri>,

    /// Database of the source.
    #[arg(long, value_name = "NAME")]
    from_database: String,

    /// Collection of the source. It is only read.
    #[arg(long, value_name = "NAME")]
    collection: String,

    /// Name of the history that gets the items.
    ///
    /// Not needed where there is only one.
    #[arg(long, value_name = "HISTORY")]
    into: Option<String>,

    /// How the documents of the source hold items.
    ///
    /// Without it the first 100 documents decide.
    #[arg(long, value_enum, value_name = "SHAPE")]
    shape: Option<ShapeName>,

    /// Properties that have another name in the source, comma-separated.
    ///
    /// Also the owner. The default is the property's name; of trades also `quantity` or `amount` for qty,
    /// and `symbol` for ticker.
    #[arg(long, value_name = "PROPERTY=NAME", value_delimiter = ',')]
    map: Vec<ColumnName>,

    /// Members of the source's items that are left out, comma-separated.
    ///
    /// Without it an item with a member that the history has no property for is refused.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ignore: Vec<String>,

    /// Field by which the items of an owner are ordered, then by `_id`.
    ///
    /// The default is the date.
    #[arg(long, value_name = "FIELD")]
    order: Option<String>,

    /// Name of the source.
    ///
    /// It is part of the identity of each item, so that a repeated run recognises the item. The default is
    /// database and collection, `shop.trades`. Two sources of one history need different names.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// File to which refused items are appended, for --from-rejects.
    ///
    /// Lines of Extended JSON, with `_id` and reason.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dry_run", "check"])]
    rejects: Option<PathBuf>,

    /// Adopt the mended items of a file of --rejects.
    ///
    /// They are adopted instead of the collection.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["follow", "dry_run", "check"])]
    from_rejects: Option<PathBuf>,

    /// Report what would be stored and refused; store nothing.
    ///
    /// The source is read and converted.
    #[arg(long, conflicts_with_all = ["follow", "check"])]
    dry_run: bool,

    /// After the copy, store what is inserted into the source.
    ///
    /// It ends with SIGINT or SIGTERM. It needs a replica set.
    #[arg(long, conflicts_with = "check")]
    follow: bool,

    /// Compare the source with the history, item by item. Stores nothing.
    #[arg(long)]
    check: bool,

    /// Which member of the source's replica set is read.
    ///
    /// Changes are followed on the primary.
    #[arg(long, value_name = "MODE", default_value = "primary", value_parser = config::read_preference())]
    read_preference: ReadPreference,

    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    capacity: CapacityArgs,
}

/// Names of [`Shape`].
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShapeName {
    /// One item each, with its owner.
    Documents,
    /// Items of one owner in an array `history`, as the MongoDB manual has buckets.
    Buckets,
}

impl From<ShapeName> for Shape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::Documents => Self::Documents,
            ShapeName::Buckets => Self::Buckets,
        }
    }
}

const AFTER_HELP: &str = "\
Each item of the source is stored once, however often the command is killed and started again. The order of a history is \
that of --order; what is inserted after the copy is stored in the order of its arrival. Updates and deletes in the source \
are reported, and never applied.

Exit status: 0 all items stored, 1 some refused, or --check found differences, 2 usage, 3 a database, 130 interrupted before \
the end of the copy.";

/// Opens the source, then the database, and adopts.
pub(crate) async fn run(args: AdoptArgs) -> Result<ExitCode, Failure> {
    let definitions = database::definitions(&args.database.histories)?;
    let definition = args.definition(&definitions)?;
    // A mistake is told before a server is waited for.
    args.reader(&definition, Shape::Documents)?;
    if args.rejects_itself() {
        let sentence =
            "--from-rejects and --rejects name the same file: what is refused again needs another one";
        return Err(Failure::Usage(sentence.to_owned()));
    }
    let rejects = args.rejects.as_deref().map(|file| Rejects::append(file, args.name())).transpose();
    let mut rejects = rejects.map_err(|error| Failure::Usage(format!("--rejects: {error}")))?;
    if let Some(file) = &args.from_rejects {
        let reader = args.reader(&definition, Shape::Documents)?;
        let work = async |opened: &Opened, mut signals: Signals| {
            signals.unless(opened.prepare(false)).await?;
            let engine = engine(opened, &definition);
            // Under another name each line would be stored once more.
            let (adoptions, name) = (opened.store.adoptions(), args.name());
            if adoptions.find(&definition.name, &name).await.map_err(Stop::from)?.is_none() {
                let sentence = format!(
                    "nothing was ever adopted from {name} into {}: name the source as when the file was written, by \
                     --from-database and --collection, or by --name",
                    definition.name
                );
                return Err(Failure::Usage(sentence));
            }
            let mut progress = AdoptionProgress::start(&definition, None, "stored");
            let (interrupts, watch) = (&mut signals.channel(Phase::Finishing), &mut progress);
            let ended = adopt::adopt_rejects(file, &reader, engine, rejects.take(), interrupts, watch).await;
            args.tell(ended, &definition, progress)
        };
        return database::storing(&args.database, &args.capacity, work).await;
    }
    let mut signals = Signals::new()?;
    let (source, shape) = signals.unless(args.source(&definition)).await?;
    let reader = Arc::new(args.reader(&definition, shape)?);
    if args.dry_run {
        let mut progress = AdoptionProgress::start(&definition, source.size().await.ok(), "read");
        let plan = adopt::plan(&source, &reader, &mut signals.channel(()), &mut progress).await;
        let (took, plan) = (progress.finish(), plan.map_err(Stop::from)?);
        print(format_args!("{}", progress::planned(&plan, &definition, took)));
        return Ok(ExitCode::from(if !plan.complete { INTERRUPTED } else { u8::from(plan.refused > 0) }));
    }
    let work = async |opened: &Opened, mut signals: Signals| {
        signals.unless(opened.prepare(args.check)).await?;
        let engine = engine(opened, &definition);
        let adoptions = opened.store.adoptions();
        let size = source.size().await.ok();
        if args.check {
            let known = adoptions.find(&definition.name, &args.name()).await.map_err(Stop::from)?;
            // What was followed, or copied in parts, may be in the order of its arrival.
            let strict = known.is_some_and(|known| known.runs == 1 && !known.followed);
            let mut progress = AdoptionProgress::start(&definition, size, "compared");
            let interrupts = &mut signals.channel(());
            let comparison = Comparison { source: &source, reader: &reader, engine, strict };
            let checked = adopt::check(comparison, interrupts, &mut progress).await;
            let (took, checked) = (progress.finish(), checked?);
            print(format_args!("{}", found(&checked, &definition, took)));
            let differs = u8::from(checked.differences > 0);
            return Ok(ExitCode::from(if checked.complete { differs } else { INTERRUPTED }));
        }
        let mut progress = AdoptionProgress::start(&definition, size, "stored");
        let adopting = Adopting {
            source: &source,
            reader: &reader,
            engine,
            adoptions: &adoptions,
            rejects: rejects.take(),
            follows: args.follow,
        };
        let ended = adopt::adopt(adopting, &mut signals.channel(Phase::Finishing), &mut progress).await;
        args.tell(ended, &definition, progress)
    };
    database::storing(&args.database, &args.capacity, work).await
}

fn engine<'a>(opened: &'a Opened, definition: &Definition) -> &'a Engine {
    let engine = opened.store.history(&definition.name);
    engine.expect("a store has an engine for each of its definitions")
}

impl AdoptArgs {
    /// Prints how an adoption ended.
    fn tell(
        &self,
        ended: Result<Ended, Stop>,
        definition: &Definition,
        progress: AdoptionProgress,
    ) -> Result<ExitCode, Failure> {
        progress.finish();
        let ended = ended?;
        if let Some(report) = &ended.report {
            print(format_args!("{}", copied(report, definition, ended.took)));
        }
        print(format_args!("{}", summary(&ended, definition, self.rejects.as_deref())));
        let refused = u8::from(ended.counts.refused > 0);
        Ok(ExitCode::from(match ended.report.as_ref().and_then(|report| report.end.as_ref()) {
            Some(End::Database(_) | End::Server(_) | End::Unreadable(_)) => 3,
            Some(End::Interrupted) => INTERRUPTED,
            None | Some(End::BadRow) => refused,
        }))
    }

    /// Whether the file of rejects that is read is the one that is written.
    fn rejects_itself(&self) -> bool {
        let (Some(from), Some(to)) = (&self.from_rejects, &self.rejects) else { return false };
        let same = |from: PathBuf| to.canonicalize().is_ok_and(|to| to == from);
        from == to || from.canonicalize().is_ok_and(same)
    }

    fn definition(&self, definitions: &Definitions) -> Result<Arc<Definition>, Failure> {
        let mut all = definitions.iter();
        let found = match &self.into {
            Some(name) => definitions.get(name),
            None => all.next().filter(|_| all.next().is_none()),
        };
        let names: Vec<_> = definitions.iter().map(|definition| &*definition.name).collect();
        let problem =
            || Failure::Usage(format!("name a history with --into (there are {})", names.join(", ")));
        found.cloned().ok_or_else(problem)
    }

    fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("{}.{}", self.from_database, self.collection))
    }

    fn reader(&self, definition: &Arc<Definition>, shape: Shape) -> Result<DocumentReader, Failure> {
        let rules = ReadingRules {
            shape,
            source: self.name(),
            map: &self.map,
            order: self.order.as_deref(),
            ignored: &self.ignore,
        };
        DocumentReader::new(definition, rules).map_err(|error| Failure::Usage(error.to_string()))
    }

    async fn source(&self, definition: &Definition) -> Result<(Arc<Source>, Shape), Failure> {
        let (preference, pool_size) = (self.read_preference, self.capacity.pool_size);
        let open = async |uri: &Option<MongodbUri>| {
            let uri = uri.as_ref().map(MongodbUri::expose).unwrap_or_default().to_owned();
            let database = self.from_database.clone();
            let connection = ConnectionSettings { uri, database, pool_size, observer: None };
            Source::open(&connection, &self.collection, preference).await
        };
        let source = open(&self.from).await.map_err(Stop::from)?;
        if (&self.from_database, &*self.collection) == (&self.database.database, &*definition.name)
            && let Ok(target) = open(&self.database.mongodb_uri).await
            && source.is(&target).await
        {
            let sentence =
                "the source is the collection of the history itself, whose items would be stored twice";
            return Err(Failure::Usage(sentence.to_owned()));
        }
        let shape = match self.shape {
            Some(shape) => shape.into(),
            None => Shape::of(&source).await.map_err(Stop::from)?,
        };
        Ok((Arc::new(source), shape))
    }
}

impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Source(
                adopt::SourceError::Shape(_)
                | adopt::SourceError::Standalone
                | adopt::SourceError::NotFollowed
                | adopt::SourceError::Unidentified(_),
            )
            | Stop::Rejects(_) => Self::Usage(stop.to_string()),
            _ => Self::Database(stop.to_string()),
        }
    }
}
