//! A store, what it sends, what appends were told, and whether that was true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use pagebucket_engine::appends::{AppendCause, AppendError, AppendProgress, AppendTerms};
use pagebucket_engine::internal::CommandObserver;
use pagebucket_engine::{Deadline, Store};
use pagebucket_model::domain::{Position, Seq, SeqRange};

use crate::{History, Mongod, Proxy, Setup, Stored, engine, stored};

/// Long enough for any append that is to be answered, on a slow machine.
pub const LONG: Duration = Duration::from_secs(25);

/// For appends that are not to be answered, and are sent at once, on a slow machine too.
pub const SHORT: Duration = Duration::from_millis(1500);

/// For appends that wait behind one that is not answered: a committer goes on without it after a
/// second.
pub const SHORT_BUT_PATIENT: Duration = Duration::from_secs(6);

/// The driver looks after a server that said it is shutting down again so soon. One that really is
/// closes its connections, which says more; a fail point does not.
const HEARTBEAT: &str = "&heartbeatFrequencyMS=500";

/// A store on a database of its own, watched.
pub struct Rig {
    pub history: &'static History,
    pub store: Store,
    pub database: Database,
    pub sent: Sent,
}

impl Rig {
    pub async fn on(history: &'static History, mongod: &Mongod) -> Self {
        Self::with(at_any_time(Setup::on(mongod).of(history)), mongod).await
    }

    /// Over a wire that can be cut; what is checked does not go over it.
    pub async fn through(history: &'static History, proxy: &Proxy, mongod: &Mongod) -> Self {
        Self::with(at_any_time(Setup::at(&proxy.uri()).of(history)), mongod).await
    }

    /// Another instance, on the same database.
    pub async fn sibling(&self, mongod: &Mongod) -> Self {
        let setup = Setup::on(mongod).of(self.history).in_database(&self.database);
        Self::with(at_any_time(setup), mongod).await
    }

    pub async fn with(mut setup: Setup, mongod: &Mongod) -> Self {
        setup.connection.uri.push_str(HEARTBEAT);
        let history = setup.history;
        let sent = Sent { history, commands: Arc::default() };
        let commands = Arc::clone(&sent.commands);
        setup.connection.observer = Some(CommandObserver::new(move |name, command| {
            if command.get_str(name).is_ok_and(|collection| collection == history.name) {
                commands.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
            }
        }));
        let database = mongod.client().await.database(&setup.connection.database);
        let store = setup.store().await;
        sent.forget();
        Self { history, store, database, sent }
    }

    /// What the database holds of an owner; fails the test when it breaks an invariant.
    #[track_caller]
    pub fn stored(&self, owner: u64) -> impl Future<Output = Stored> {
        stored(&self.database, self.history, owner)
    }

    /// Appends `count` items, which are numbered from `first` on.
    pub async fn append(&self, owner: u64, first: u64, count: u64, within: Duration) -> Told {
        self.append_on(owner, first, count, Deadline::within(within).into()).await
    }

    /// The same, if the history has this total.
    pub async fn append_after(&self, owner: u64, total: u64, first: u64, count: u64) -> Told {
        let expected = Some(Position::parse(&total.to_string()).expect("a total"));
        self.append_on(owner, first, count, AppendTerms { deadline: Deadline::within(LONG), expected }).await
    }

    async fn append_on(&self, owner: u64, first: u64, count: u64, terms: AppendTerms) -> Told {
        let items = (first..first + count).map(|number| engine::dated(self.history, number, DATE));
        let histories = engine::histories(&self.store, self.history);
        let id = engine::owner(self.history, owner);
        let outcome = histories.appends().append(engine::append(id, items.collect(), terms)).await;
        Told { owner, first, count, outcome }
    }

    /// The same for each of these owners at once, with numbers from `first` on for each.
    pub async fn append_to_all(
        &self,
        owners: impl IntoIterator<Item = u64>,
        first: u64,
        count: u64,
        within: Duration,
    ) -> Vec<Told> {
        join_all(owners.into_iter().map(|owner| self.append(owner, first, count, within))).await
    }

    /// Holds what appends were told against what is stored: invariants 1 to 6.
    #[track_caller]
    pub fn check<'a>(&self, told: impl IntoIterator<Item = &'a Told>) -> impl Future<Output = Vec<i64>> {
        let told: Vec<&Told> = told.into_iter().collect();
        async move {
            let mut all = Vec::new();
            for owner in told.iter().map(|told| told.owner).collect::<BTreeSet<_>>() {
                let stored = self.stored(owner).await.numbers;
                let mut allowed = BTreeSet::new();
                for told in told.iter().filter(|told| told.owner == owner) {
                    let mut numbers = told.numbers();
                    for seq in told.seqs() {
                        let number = numbers.next().expect("no more is stored than was sent");
                        assert_eq!(
                            stored.get(seq as usize - 1),
                            Some(&number),
                            "acknowledged at {seq} of owner {owner}"
                        );
                        allowed.insert(number);
                    }
                    allowed.extend(numbers.by_ref().take(told.unknown()));
                    if told.outcome.is_ok() {
                        assert_eq!(numbers.next(), None, "stored means all of it");
                    }
                }
                let found: BTreeSet<_> = stored.iter().copied().collect();
                assert_eq!(found.len(), stored.len(), "an item of owner {owner} is there twice");
                assert!(
                    found.is_subset(&allowed),
                    "told not stored, but stored for owner {owner}: {:?}",
                    found.difference(&allowed).collect::<Vec<_>>()
                );
                all.extend(stored);
            }
            all
        }
    }
}

/// Commits requests however little time they have left, so that a test need not wait for long until one is
/// given up.
fn at_any_time(mut setup: Setup) -> Setup {
    setup.capacity.commit_time = Duration::ZERO;
    setup
}

/// The date of every item, in milliseconds.
const DATE: i64 = 1_698_349_623_000;

/// What an append was told.
#[derive(Debug)]
pub struct Told {
    pub owner: u64,
    first: u64,
    count: u64,
    pub outcome: Result<AppendProgress, AppendError>,
}

impl Told {
    /// Where the first of the items are, as far as they are told to be stored.
    pub fn seqs(&self) -> Vec<u64> {
        let progress = self.outcome.as_ref().unwrap_or_else(|error| &error.progress);
        progress.ranges().iter().flat_map(SeqRange::seqs).map(|seq: Seq| seq.get()).collect()
    }

    pub fn numbers(&self) -> std::ops::Range<i64> {
        self.first as i64..(self.first + self.count) as i64
    }

    fn unknown(&self) -> usize {
        self.outcome.as_ref().err().map_or(0, |error| error.unknown)
    }

    #[track_caller]
    pub fn stored(&self) {
        assert!(self.outcome.is_ok(), "{self:?}");
        assert_eq!(self.seqs().len() as u64, self.count, "{self:?}");
    }

    /// Nothing is stored: the history has this total, and another one was expected.
    #[track_caller]
    pub fn unexpected(&self, total: u64) {
        let Err(error) = &self.outcome else { panic!("{self:?}") };
        assert!(
            matches!(error.cause, AppendCause::UnexpectedTotal(found) if found == total),
            "{total}: {self:?}"
        );
        assert_eq!((self.seqs().len(), error.unknown), (0, 0), "{self:?}");
    }

    /// So many stored, and of all the others nothing is known.
    #[track_caller]
    pub fn unknown_after(&self, stored: u64) {
        let Err(error) = &self.outcome else { panic!("{self:?}") };
        assert!(matches!(error.cause, AppendCause::OutcomeUnknown), "{self:?}");
        assert_eq!(
            (self.seqs().len() as u64, error.unknown as u64),
            (stored, self.count - stored),
            "{self:?}"
        );
    }

    /// Of all nothing is known; or nothing was sent, since on a slow machine it may not come to its turn.
    /// Returns whether it was sent.
    #[track_caller]
    pub fn unknown_or_not_sent(&self) -> bool {
        let sent = !matches!(&self.outcome, Err(error) if error.unknown == 0 && self.seqs().is_empty());
        if sent {
            self.unknown_after(0);
        }
        sent
    }

    /// So many stored, and none of the others; the database is to blame.
    #[track_caller]
    pub fn unavailable_after(&self, stored: u64) {
        let Err(error) = &self.outcome else { panic!("{self:?}") };
        let unavailable =
            matches!(error.cause, AppendCause::Database(pagebucket_engine::Error::Unavailable(_)));
        assert!(unavailable, "{self:?}");
        assert_eq!((self.seqs().len() as u64, error.unknown), (stored, 0), "{self:?}");
    }
}

/// The commands that store items: an `insert` has new pages alone.
pub const WRITES: [&str; 2] = ["update", "insert"];

/// Commands on the history of one store, in the order in which they were sent.
#[derive(Clone)]
pub struct Sent {
    history: &'static History,
    commands: Arc<Mutex<Vec<(String, Document)>>>,
}

/// A command that stores items: an `update`, or an `insert` of new pages.
pub struct Update {
    pub session: String,
    pub number: i64,
    /// What it does, all of it.
    content: (Bson, Bson),
    /// For each statement its owner, and the numbers of the items it places.
    pub statements: Vec<(u64, Vec<i64>)>,
}

impl Sent {
    pub fn forget(&self) {
        self.commands.lock().expect("no test panics here").clear();
    }

    /// The commands, each with its name.
    pub fn all(&self) -> Vec<(String, Document)> {
        self.commands.lock().expect("no test panics here").clone()
    }

    fn named(&self, name: &str) -> Vec<Document> {
        let sent = self.commands.lock().expect("no test panics here");
        sent.iter().filter(|(sent, _)| sent == name).map(|(_, command)| command.clone()).collect()
    }

    /// The owners of each read of tails.
    pub fn tail_reads(&self) -> Vec<BTreeSet<u64>> {
        let owners = |command: &Document| {
            let stage = command.get_array("pipeline").expect("a pipeline")[0].as_document().expect("a stage");
            let by =
                stage.get_document("$match").and_then(|filter| filter.get_document(self.history.owner_field));
            let ids = by.and_then(|by| by.get_array("$in")).expect("owners");
            ids.iter().map(|id| self.history.owner_of(id)).collect()
        };
        self.named("aggregate").iter().map(owners).collect()
    }

    /// The read concern of each read of tails.
    pub fn tail_levels(&self) -> Vec<String> {
        let level = |command: &Document| {
            command
                .get_document("readConcern")
                .and_then(|concern| concern.get_str("level"))
                .map(str::to_owned)
        };
        self.named("aggregate").iter().map(|command| level(command).expect("a level")).collect()
    }

    pub fn updates(&self) -> Vec<Update> {
        let sent = self.all();
        let writes = sent.iter().filter(|(name, _)| WRITES.contains(&name.as_str()));
        writes.map(|(_, command)| Update::read(self.history, command)).collect()
    }

    /// The rules of numbered commands: the same number never with other content, and no number twice
    /// for other items. Returns how often each number was sent, in order of their first use.
    #[track_caller]
    pub fn replays_are_identical(&self) -> Vec<usize> {
        let updates = self.updates();
        let mut numbers: Vec<(&Update, usize)> = Vec::new();
        for update in &updates {
            let key = (&update.session, update.number);
            match numbers.iter_mut().find(|(seen, _)| (&seen.session, seen.number) == key) {
                Some((seen, times)) => {
                    assert_eq!(seen.content, update.content, "one number, two contents");
                    *times += 1;
                }
                None => numbers.push((update, 1)),
            }
        }
        numbers.into_iter().map(|(_, times)| times).collect()
    }

    /// Without another writer no statement is refused, so no item may be placed a second time: the command
    /// that has it keeps its number.
    #[track_caller]
    pub fn nothing_is_placed_anew(&self) -> Vec<usize> {
        let mut placed = BTreeMap::new();
        for update in self.updates() {
            for (owner, items) in update.statements {
                for item in items {
                    let number = (update.session.clone(), update.number);
                    let first = placed.entry((owner, item)).or_insert_with(|| number.clone());
                    assert_eq!(*first, number, "item {item} of owner {owner} was placed twice");
                }
            }
        }
        self.replays_are_identical()
    }
}

impl Update {
    fn read(history: &History, command: &Document) -> Self {
        let inserted = command.get("documents");
        let updates = inserted.or(command.get("updates")).and_then(Bson::as_array).expect("statements");
        let numbers = |items: &[Bson]| {
            items.iter().map(|item| history.stored_number(item.as_document().expect("an item"))).collect()
        };
        let statement = |update: &Bson| {
            let update = update.as_document().expect("a statement");
            if inserted.is_some() {
                let owner = update.get(history.owner_field).expect("an owner");
                return (history.owner_of(owner), numbers(update.get_array("history").expect("items")));
            }
            let owner = update.get_document("q").expect("q").get(history.owner_field).expect("an owner");
            let each = match update.get_array("u") {
                // It opens a page.
                Ok(pipeline) => {
                    let stage =
                        pipeline[0].as_document().and_then(|stage| stage.get_document("$replaceWith").ok());
                    let branches =
                        stage.and_then(|replaced| replaced.get_array("$cond").ok()).expect("a fence");
                    let in_time =
                        branches[1].as_document().and_then(|branch| branch.get_document("$literal").ok());
                    in_time.and_then(|bucket| bucket.get_array("history").ok())
                }
                Err(_) => {
                    let pushed = update.get_document("u").and_then(|u| u.get_document("$push"));
                    let pushed = pushed.and_then(|push| push.get_document("history"));
                    pushed.and_then(|history| history.get_array("$each")).ok()
                }
            };
            (history.owner_of(owner), numbers(each.expect("items")))
        };
        Self {
            session: command.get_document("lsid").expect("a session").to_string(),
            number: command.get_i64("txnNumber").unwrap_or(0),
            content: (updates.clone().into(), command.get("ordered").cloned().expect("ordered")),
            statements: updates.iter().map(statement).collect(),
        }
    }

    /// Whether it has an item with this number.
    pub fn places(&self, number: i64) -> bool {
        self.statements.iter().any(|(_, items)| items.contains(&number))
    }

    pub fn owners(&self) -> BTreeSet<u64> {
        self.statements.iter().map(|(owner, _)| *owner).collect()
    }
}

/// `failCommand` for the store's own commands: other clients have other names. `write` is each command that
/// stores items.
pub async fn fail(mongod: &Mongod, command: &str, mode: impl Into<Bson>, how: Document) {
    let commands = if command == "write" { WRITES.to_vec() } else { vec![command] };
    let mut data = doc! { "failCommands": commands, "appName": "pagebucket" };
    data.extend(how);
    mongod.fail_point("failCommand", mode, data).await;
}

pub async fn heal(mongod: &Mongod) {
    mongod.fail_point("failCommand", "off", doc! {}).await;
}

/// A failure of the change streams of a database alone: tails are read by other commands.
pub fn of_streams(database: &mongodb::Database, commands: &[&str], how: Document) -> Document {
    let mut failure = doc! { "failCommands": commands.to_vec(), "namespace": format!("{}.$cmd.aggregate", database.name()) };
    failure.extend(how);
    failure
}
