//! A store, what it sends, what appends were told, and whether that was true.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::Database;
use mongodb::bson::{Bson, Document};
use pagebucket::domain::{CustomerId, Instant, Quantity, Seq, SeqRange, Side, Ticker, Trade};
use pagebucket::store::history::{AppendError, Cause, Progress};
use pagebucket::store::{CommandObserver, Deadline, Store};

use crate::harness::{Mongod, Proxy, Setup, history};

/// Long enough for any append that is to be answered, on a slow machine.
pub const LONG: Duration = Duration::from_secs(25);

/// For appends that are not to be answered.
pub const SHORT: Duration = Duration::from_millis(700);

/// For appends that wait behind one that is not answered: a committer goes on without it after a
/// second.
pub const SHORT_BUT_PATIENT: Duration = Duration::from_millis(2200);

/// The driver looks after a server that said it is shutting down again so soon. One that really is
/// closes its connections, which says more; a fail point does not.
const HEARTBEAT: &str = "&heartbeatFrequencyMS=500";

/// A store on a database of its own, watched.
pub struct Rig {
    pub store: Store,
    pub database: Database,
    pub sent: Sent,
}

impl Rig {
    pub async fn on(mongod: &Mongod) -> Self {
        Self::with(at_any_time(Setup::on(mongod)), mongod).await
    }

    /// Over a wire that can be cut; what is checked does not go over it.
    pub async fn through(proxy: &Proxy, mongod: &Mongod) -> Self {
        let mut setup = Setup::on(mongod);
        setup.connection.uri = proxy.uri();
        Self::with(at_any_time(setup), mongod).await
    }

    /// Another instance, on the same database.
    pub async fn sibling(&self, mongod: &Mongod) -> Self {
        let mut setup = Setup::on(mongod);
        setup.connection.database = self.database.name().to_owned();
        Self::with(at_any_time(setup), mongod).await
    }

    pub async fn with(mut setup: Setup, mongod: &Mongod) -> Self {
        setup.connection.uri.push_str(HEARTBEAT);
        let sent = Sent::default();
        let commands = Arc::clone(&sent.0);
        setup.connection.observer = Some(CommandObserver::new(move |name, command| {
            if command.get_str(name).is_ok_and(|collection| collection == "trades") {
                commands.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
            }
        }));
        let database = mongod.client().await.database(&setup.connection.database);
        let store = Store::connect(setup.connection, setup.capacity, setup.clock).await;
        let store = store.expect("the test's mongod");
        store.migrate().await.expect("the migrations");
        sent.forget();
        Self { store, database, sent }
    }

    /// Appends so many trades, told apart by their quantities, from `first` on.
    pub async fn append(&self, customer: u64, first: u64, count: u64, within: Duration) -> Told {
        let trades = (first..first + count).map(trade).collect();
        let id = CustomerId::new(customer).expect("a customer");
        let outcome = self.store.trades().append(id, trades, Deadline::within(within)).await;
        Told { customer, first, count, outcome }
    }

    /// The same for each of these customers at once, with quantities from `first` on for each.
    pub async fn append_to_all(
        &self,
        customers: impl IntoIterator<Item = u64>,
        first: u64,
        count: u64,
        within: Duration,
    ) -> Vec<Told> {
        join_all(customers.into_iter().map(|customer| self.append(customer, first, count, within))).await
    }

    /// Holds what appends were told against what is stored: invariants 1 to 6.
    #[track_caller]
    pub fn check<'a>(&self, told: impl IntoIterator<Item = &'a Told>) -> impl Future<Output = Vec<i64>> {
        let told: Vec<&Told> = told.into_iter().collect();
        async move {
            let mut all = Vec::new();
            for customer in told.iter().map(|told| told.customer).collect::<BTreeSet<_>>() {
                let stored = history(&self.database, customer).await.quantities;
                let mut allowed = BTreeSet::new();
                for told in told.iter().filter(|told| told.customer == customer) {
                    let mut quantities = told.quantities();
                    for seq in told.seqs() {
                        let quantity = quantities.next().expect("no more is stored than was sent");
                        assert_eq!(
                            stored.get(seq as usize - 1),
                            Some(&quantity),
                            "acknowledged at {seq} of customer {customer}"
                        );
                        allowed.insert(quantity);
                    }
                    allowed.extend(quantities.by_ref().take(told.unknown()));
                    if told.outcome.is_ok() {
                        assert_eq!(quantities.next(), None, "stored means all of it");
                    }
                }
                let found: BTreeSet<_> = stored.iter().copied().collect();
                assert_eq!(found.len(), stored.len(), "a trade of customer {customer} is there twice");
                assert!(
                    found.is_subset(&allowed),
                    "told not stored, but stored for customer {customer}: {:?}",
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

pub fn trade(quantity: u64) -> Trade {
    Trade {
        side: Side::Buy,
        ticker: Ticker::parse("MDB").expect("a ticker"),
        qty: Quantity::new(quantity).expect("a quantity"),
        price: None,
        date: Instant::from_millis(1_698_349_623_000).expect("a date"),
    }
}

/// What an append was told.
#[derive(Debug)]
pub struct Told {
    pub customer: u64,
    first: u64,
    count: u64,
    pub outcome: Result<Progress, AppendError>,
}

impl Told {
    /// Where the first of the trades are, as far as they are told to be stored.
    pub fn seqs(&self) -> Vec<u64> {
        let progress = self.outcome.as_ref().unwrap_or_else(|error| &error.progress);
        progress.ranges().iter().flat_map(SeqRange::seqs).map(|seq: Seq| seq.get()).collect()
    }

    pub fn quantities(&self) -> std::ops::Range<i64> {
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

    /// So many stored, and of all the others nothing is known.
    #[track_caller]
    pub fn unknown_after(&self, stored: u64) {
        let Err(error) = &self.outcome else { panic!("{self:?}") };
        assert!(matches!(error.cause, Cause::OutcomeUnknown), "{self:?}");
        assert_eq!(
            (self.seqs().len() as u64, error.unknown as u64),
            (stored, self.count - stored),
            "{self:?}"
        );
    }

    /// So many stored, and none of the others; the database is to blame.
    #[track_caller]
    pub fn unavailable_after(&self, stored: u64) {
        let Err(error) = &self.outcome else { panic!("{self:?}") };
        let unavailable = matches!(error.cause, Cause::Database(pagebucket::store::Error::Unavailable(_)));
        assert!(unavailable, "{self:?}");
        assert_eq!((self.seqs().len() as u64, error.unknown), (stored, 0), "{self:?}");
    }
}

/// Commands on `trades` of one store, in the order in which they were sent.
#[derive(Clone, Default)]
pub struct Sent(Arc<Mutex<Vec<(String, Document)>>>);

/// An `update` command.
pub struct Update {
    pub session: String,
    pub number: i64,
    /// What it does, all of it.
    content: (Bson, Bson),
    /// For each statement its customer, and the quantities it places.
    pub statements: Vec<(u64, Vec<i64>)>,
}

impl Sent {
    pub fn forget(&self) {
        self.0.lock().expect("no test panics here").clear();
    }

    fn named(&self, name: &str) -> Vec<Document> {
        let sent = self.0.lock().expect("no test panics here");
        sent.iter().filter(|(sent, _)| sent == name).map(|(_, command)| command.clone()).collect()
    }

    /// The customers of each read of tails.
    pub fn tail_reads(&self) -> Vec<BTreeSet<u64>> {
        let customers = |command: &Document| {
            let stage = command.get_array("pipeline").expect("a pipeline")[0].as_document().expect("a stage");
            let by = stage.get_document("$match").and_then(|filter| filter.get_document("customerId"));
            let ids = by.and_then(|by| by.get_array("$in")).expect("customers");
            ids.iter().map(|id| id.as_i64().expect("an int64") as u64).collect()
        };
        self.named("aggregate").iter().map(customers).collect()
    }

    pub fn updates(&self) -> Vec<Update> {
        self.named("update").iter().map(Update::read).collect()
    }

    /// The rules of numbered commands: the same number never with other content, and no number twice
    /// for other trades. Returns how often each number was sent, in order of their first use.
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

    /// Without another writer no statement is refused, so that no trade may be placed anew: it has
    /// one number for ever.
    #[track_caller]
    pub fn nothing_is_placed_anew(&self) -> Vec<usize> {
        let mut placed = BTreeMap::new();
        for update in self.updates() {
            for (customer, quantities) in update.statements {
                for quantity in quantities {
                    let number = (update.session.clone(), update.number);
                    let first = placed.entry((customer, quantity)).or_insert_with(|| number.clone());
                    assert_eq!(*first, number, "trade {quantity} of customer {customer} was placed anew");
                }
            }
        }
        self.replays_are_identical()
    }
}

impl Update {
    fn read(command: &Document) -> Self {
        let updates = command.get_array("updates").expect("updates");
        let statement = |update: &Bson| {
            let update = update.as_document().expect("a statement");
            let customer =
                update.get_document("q").and_then(|q| q.get_i64("customerId")).expect("a customer");
            let pushed = update.get_document("u").and_then(|u| u.get_document("$push"));
            let pushed = pushed.and_then(|push| push.get_document("history"));
            let each = pushed.and_then(|history| history.get_array("$each")).expect("trades");
            let quantity = |trade: &Bson| trade.as_document().and_then(|trade| trade.get_i64("qty").ok());
            (customer as u64, each.iter().map(|trade| quantity(trade).expect("qty")).collect())
        };
        Self {
            session: command.get_document("lsid").expect("a session").to_string(),
            number: command.get_i64("txnNumber").unwrap_or(0),
            content: (
                command.get("updates").cloned().expect("updates"),
                command.get("ordered").cloned().expect("ordered"),
            ),
            statements: updates.iter().map(statement).collect(),
        }
    }

    pub fn customers(&self) -> BTreeSet<u64> {
        self.statements.iter().map(|(customer, _)| *customer).collect()
    }
}
