//! Live readers of the store itself: two stores on one database, of which each appends and each has readers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use mongodb::bson::{Bson, DateTime, Document, doc};
use pagebucket_engine::erasures::Erasure;
use pagebucket_engine::internal::{Ages, COMMAND, Retention};
use pagebucket_engine::live::{LiveReader, LiveStart, OwnersReader};
use pagebucket_engine::{Deadline, Engine, Error, Gone, Store};
use pagebucket_model::domain::Position;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::harness::engine::read_to;
use crate::harness::rig::of_streams;
use crate::harness::rig::{fail, heal};
use crate::harness::{
    History, Mongod, PATIENCE, Setup, TRADES, amount, engine, eventually, fill, shared, test_over,
};

fn deadline() -> Deadline {
    Deadline::within(COMMAND)
}

fn position(after: u64) -> Position {
    Position::parse(&after.to_string()).expect("a position")
}

/// Ages with which pages are soon retired.
fn short_ages() -> Ages {
    let ages = Ages { marker: Duration::from_secs(5), tail: Duration::from_millis(300), ..Ages::default() };
    Ages { poll: Duration::from_millis(50), command: Duration::from_secs(1), ..ages }
}

/// The commands that a store has sent, and when.
#[derive(Clone, Default)]
pub(super) struct Sent(Arc<Mutex<Vec<(String, Document)>>>, Arc<Mutex<Vec<Instant>>>);

impl Sent {
    /// Those for which this holds.
    fn count(&self, is_counted: impl Fn(&str, &Document) -> bool) -> usize {
        self.0
            .lock()
            .expect("no test panics here")
            .iter()
            .filter(|(name, sent)| is_counted(name, sent))
            .count()
    }

    pub(super) fn streams(&self) -> usize {
        self.openings().len()
    }

    /// When the commands were sent that open change streams.
    pub(super) fn opened_at(&self) -> Vec<Instant> {
        self.1.lock().expect("no test panics here").clone()
    }

    fn note(&self, name: &str, command: &Document) {
        self.0.lock().expect("no test panics here").push((name.to_owned(), command.clone()));
        if name == "aggregate" && opens_stream(command) {
            self.1.lock().expect("no test panics here").push(Instant::now());
        }
    }

    /// The commands that open change streams.
    fn openings(&self) -> Vec<Document> {
        self.since(0)
            .into_iter()
            .filter(|(name, sent)| name == "aggregate" && opens_stream(sent))
            .map(|(_, sent)| sent)
            .collect()
    }

    /// All but the first `before` commands.
    fn since(&self, before: usize) -> Vec<(String, Document)> {
        self.0.lock().expect("no test panics here")[before..].to_vec()
    }

    /// Reads of buckets.
    fn reads(&self, history: &History) -> usize {
        self.count(|name, sent| name == "find" && sent.get_str("find").is_ok_and(|find| find == history.name))
    }
}

fn opens_stream(sent: &Document) -> bool {
    let stages = sent.get_array("pipeline").ok();
    let first = stages.and_then(|stages| stages.first()).and_then(Bson::as_document);
    first.is_some_and(|stage| stage.contains_key("$changeStream"))
}

/// What a command that opens a change stream asks it for.
fn options(opened: &Document) -> &Document {
    let stage =
        opened.get_array("pipeline").ok().and_then(|stages| stages.first()).and_then(Bson::as_document);
    stage.and_then(|stage| stage.get_document("$changeStream").ok()).expect("it opens a stream")
}

/// Two stores on one database.
pub(super) struct Pair {
    history: &'static History,
    stores: [Store; 2],
    pub(super) sent: [Sent; 2],
    pub(super) database: mongodb::Database,
}

impl Pair {
    pub(super) async fn on(mongod: &Mongod, history: &'static History) -> Self {
        Self::at([mongod.uri(), mongod.uri()], history).await
    }

    /// Each store reaches the database by its own connection string.
    pub(super) async fn at(uris: [&str; 2], history: &'static History) -> Self {
        let sent = [Sent::default(), Sent::default()];
        let setup = |store: usize| Setup::at(uris[store]).of(history);
        let observed = |setup: Setup, sent: &Sent| {
            let sent = sent.clone();
            setup.observed(move |name, command| sent.note(name, command))
        };
        let one = observed(setup(0), &sent[0]);
        let client = mongodb::Client::with_uri_str(uris[1]).await.expect("a connection string");
        let database = client.database(&one.connection.database);
        let other = observed(setup(1).in_database(&database), &sent[1]);
        let stores = [one.store().await, other.store().await];
        Self { history, stores, sent, database }
    }

    fn engine(&self, store: usize) -> &Engine {
        engine::histories(&self.stores[store], self.history)
    }

    /// Appends items with these numbers by a store.
    pub(super) async fn append(&self, store: usize, owner: u64, numbers: std::ops::RangeInclusive<u64>) {
        let items = numbers.map(|number| engine::dated(self.history, number, number as i64)).collect();
        let owner = engine::owner(self.history, owner);
        let append = engine::append(owner, items, deadline());
        self.engine(store).appends().append(append).await.expect("to append");
    }

    pub(super) async fn watch(&self, store: usize, owner: u64, after: Option<u64>) -> LiveReader {
        self.try_watch(store, owner, after).await.expect("a live reader")
    }

    async fn try_watch(&self, store: usize, owner: u64, after: Option<u64>) -> Result<LiveReader, Error> {
        let start = LiveStart::of(after.map(position));
        self.engine(store).live().watch(engine::owner(self.history, owner), start, deadline()).await
    }
}

test_over!(readers_of_two_stores_get_all_in_order, ALL);
async fn readers_of_two_stores_get_all_in_order(history: &'static History) {
    let pair = Pair::on(shared().await, history).await;
    let begin = history.pages(1.5);
    pair.append(0, 7, 1..=begin).await;
    let end = begin + history.pages(3.0) + 25;
    let mut readers = Vec::new();
    for store in [0, 1] {
        for after in [Some(0), Some(1), Some(begin - 1), Some(begin), Some(begin + 5), None] {
            let reader = pair.watch(store, 7, after).await;
            assert_eq!(reader.totals().items(), begin);
            assert_eq!(reader.position().get(), after.unwrap_or(begin));
            readers.push(reader);
        }
    }
    let append = async {
        let mut next = begin + 1;
        // One item, a few, and more than a page.
        for (turn, items) in [1, 2, history.page_size + 3, 1].into_iter().cycle().enumerate() {
            let last = (next + items - 1).min(end);
            pair.append(turn % 2, 7, next..=last).await;
            next = last + 1;
            if last == end {
                break;
            }
        }
    };
    let read = join_all(readers.iter_mut().map(|reader| read_to(history, reader, end)));
    tokio::join!(append, read);
    for sent in &pair.sent {
        let opened = sent.openings();
        assert_eq!(opened.len(), 1, "one stream for all readers of a store");
        let level = opened[0].get_document("readConcern").and_then(|concern| concern.get_str("level"));
        assert_eq!(level.ok(), Some("majority"), "{:?}", opened[0]);
        let options = options(&opened[0]);
        assert!(
            options.contains_key("startAtOperationTime") && !options.contains_key("fullDocument"),
            "{options}"
        );
    }
}

/// Each time that it breaks it goes on later, although there are no changes: its token would be too old one
/// day.
#[tokio::test(flavor = "multi_thread")]
async fn a_quiet_stream_keeps_a_token_of_now() {
    let mongod = Mongod::failing().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut reader = pair.watch(0, 7, None).await;
    let token = |opened: &Document| {
        let token = options(opened).get_document("resumeAfter").and_then(|token| token.get_str("_data"));
        token.map(str::to_owned).ok()
    };
    let again = async || {
        let before = pair.sent[0].streams();
        // A change to another database, so that the log goes on. InterruptedAtShutdown.
        let other = mongod.client().await.database("other").collection::<Document>("other");
        other.insert_one(doc! {}).await.expect("to write");
        let broken = doc! { "failCommands": ["getMore"], "errorCode": 11600 };
        fail(&mongod, "getMore", doc! { "times": 1 }, broken).await;
        eventually("the stream is opened again", PATIENCE, || async { pair.sent[0].streams() > before })
            .await;
        pair.sent[0].openings().last().and_then(token)
    };
    // At first it has none.
    let first = loop {
        if let Some(token) = again().await {
            break token;
        }
    };
    eventually("its token is of a later time", PATIENCE, async || again().await.as_ref() > Some(&first))
        .await;
    heal(&mongod).await;
    pair.append(1, 7, 1..=3).await;
    read_to(TRADES, &mut reader, 3).await;
    mongod.remove().await;
}

/// Of what others append it is the time since their commit, by the clocks of both, not since this process
/// learned of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_lag_of_what_others_append_begins_with_their_commit() {
    let mongod = shared().await;
    let (clock, put_ahead) = crate::harness::markers::clock();
    let writer = Setup::on(mongod);
    let database = mongod.client().await.database(&writer.connection.database);
    let writer = writer.store().await;
    let mut reader = Setup::on(mongod).in_database(&database);
    reader.clock = clock;
    let reader = reader.store().await;
    put_ahead(3_600_000);
    let seven = || engine::owner(TRADES, 7);
    let mut reader = engine::histories(&reader, TRADES)
        .live()
        .watch(seven(), LiveStart::End, deadline())
        .await
        .expect("a reader");
    let items = vec![engine::dated(TRADES, 1, 1)];
    let append = engine::append(seven(), items, deadline());
    engine::histories(&writer, TRADES).appends().append(append).await.expect("to append");
    let page = tokio::time::timeout(PATIENCE, reader.next()).await.expect("more").expect("a page");
    assert!(page.lag() >= Some(Duration::from_secs(3_600)), "{:?}", page.lag());
}

/// A reader that is behind a retirement does not go on where the history begins now: it is told.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_behind_a_retirement_is_told() {
    let mongod = shared().await;
    let setup = Setup::on(mongod).aging(short_ages());
    let database = mongod.client().await.database(&setup.connection.database);
    let store = setup.store().await;
    let (trades, seven) = (engine::histories(&store, TRADES), engine::owner(TRADES, 7));
    fill(&database, TRADES, 7, 40, 10).await;
    let after = |seq| LiveStart::After(position(seq));
    let mut behind = trades.live().watch(seven.clone(), after(5), deadline()).await.expect("a reader");
    let mut ahead = trades.live().watch(seven.clone(), after(395), deadline()).await.expect("a reader");
    let keep = Retention { pages: std::num::NonZero::new(5), ..Default::default() };
    eventually("pages are retired", PATIENCE, async || {
        // What takes too long is done again.
        trades.retirement().retire(keep, deadline()).await.ok();
        let history = trades.reads().history(seven.clone(), deadline()).await.expect("a history");
        history.first_page().get() > 1
            && trades.live().watch(seven.clone(), after(5), deadline()).await.is_err()
    })
    .await;
    let told = tokio::time::timeout(PATIENCE, behind.next()).await.expect("an end");
    assert!(matches!(told, Err(Error::Gone(Gone::Retired { .. }))), "{told:?}");
    let page = tokio::time::timeout(PATIENCE, ahead.next()).await.expect("more").expect("a page");
    assert_eq!(page.last_seq().get(), 400);
}

/// A stream is open while there are readers, and no owner is remembered after the last.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_open_while_there_are_readers() {
    let mongod = shared().await;
    let pair = Pair::on(mongod, TRADES).await;
    let open = || async {
        let mine = doc! {
            "ns": { "$regex": format!("^{}\\.", pair.database.name()) },
            "cursor.originatingCommand.pipeline.0.$changeStream": { "$exists": true },
        };
        let ask = doc! {
            "aggregate": 1, "cursor": {},
            "pipeline": [{ "$currentOp": { "idleCursors": true } }, { "$match": mine }],
        };
        let found = mongod.client().await.database("admin").run_command(ask).await.expect("operations");
        found.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch")).expect("a batch").len()
    };
    assert_eq!((pair.sent[0].streams(), open().await), (0, 0), "no reader, no stream");
    let mut first = pair.watch(0, 7, None).await;
    let mut second = pair.watch(0, 8, Some(0)).await;
    eventually("the stream is open", PATIENCE, || async { open().await == 1 }).await;
    pair.append(1, 7, 1..=3).await;
    pair.append(1, 8, 1..=3).await;
    read_to(TRADES, &mut first, 3).await;
    drop(first);
    read_to(TRADES, &mut second, 3).await;
    drop(second);
    eventually("the stream is closed", PATIENCE, || async { open().await == 0 }).await;
    let mut again = pair.watch(0, 7, Some(1)).await;
    pair.append(1, 7, 4..=4).await;
    read_to(TRADES, &mut again, 4).await;
    assert_eq!(pair.sent[0].streams(), 2);
}

/// What is new is read once for all readers of an owner, whichever store has appended it.
#[tokio::test(flavor = "multi_thread")]
async fn reads_do_not_grow_with_readers() {
    let pair = Pair::on(shared().await, TRADES).await;
    pair.append(0, 7, 1..=5).await;
    let mut reads = Vec::new();
    let mut last = 5;
    for readers in [1, 50] {
        let mut readers = join_all((0..readers).map(|_| pair.watch(0, 7, None))).await;
        let before = pair.sent[0].reads(TRADES);
        for store in [0, 1].repeat(20) {
            last += 1;
            pair.append(store, 7, last..=last).await;
            join_all(readers.iter_mut().map(|reader| read_to(TRADES, reader, last))).await;
        }
        reads.push(pair.sent[0].reads(TRADES) - before);
    }
    // At most one for each append of its own, none for those of the other: the change says what they are.
    assert!(reads.iter().all(|reads| *reads <= 20), "{reads:?}");
}

test_over!(what_another_store_appends_needs_no_read, ALL);
/// What opens the next bucket, or is appended to the last one, is delivered as the change says it. What is
/// too large for that is read.
async fn what_another_store_appends_needs_no_read(history: &'static History) {
    let pair = Pair::on(shared().await, history).await;
    let mut reader = pair.watch(0, 7, None).await;
    let mut reads_of = async |numbers: std::ops::RangeInclusive<u64>| {
        let (before, last) = (pair.sent[0].reads(history), *numbers.end());
        pair.append(1, 7, numbers).await;
        read_to(history, &mut reader, last).await;
        pair.sent[0].reads(history) - before
    };
    for number in 1..=12 {
        assert_eq!(reads_of(number..=number).await, 0, "{number}");
    }
    assert_eq!(reads_of(13..=14).await, 0);
    if history.page_size > 100 {
        assert_eq!(reads_of(15..=80).await, 1);
    }
}

/// A bucket that was changed in another way than by an append is read again: who is slow gets what is stored.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_repaired_is_not_delivered_as_it_was() {
    let pair = Pair::on(shared().await, TRADES.holding_any()).await;
    let buckets = pair.database.collection::<Document>(TRADES.name);
    for (owner, is_replaced) in [(7, false), (8, true)] {
        let [mut first, mut slow] = [pair.watch(0, owner, None).await, pair.watch(0, owner, None).await];
        pair.append(1, owner, 1..=3).await;
        read_to(TRADES, &mut first, 3).await;
        let (before, own) = (pair.sent[0].reads(TRADES), doc! { "customerId": owner as i64 });
        if is_replaced {
            let mut bucket = buckets.find_one(own.clone()).await.expect("an answer").expect("a bucket");
            let items = bucket.get_array_mut("history").expect("items");
            items[1].as_document_mut().expect("an item").insert("qty", 70_i64);
            buckets.replace_one(own, bucket).await.expect("an answer");
        } else {
            let other = doc! { "$set": { "history.1.qty": 70_i64 } };
            buckets.update_one(own, other).await.expect("an answer");
        }
        eventually("it is looked at", PATIENCE, || async { pair.sent[0].reads(TRADES) > before }).await;
        let before = pair.sent[0].reads(TRADES);
        pair.append(1, owner, 4..=4).await;
        read_to(TRADES, &mut first, 4).await;
        assert_eq!(pair.sent[0].reads(TRADES), before, "the page is known again");
        let mut shown = Vec::new();
        while slow.position().get() < 4 {
            let page = tokio::time::timeout(PATIENCE, slow.next()).await.expect("more").expect("a page");
            let items = page.items().map(|item| Document::try_from(item.document()).expect("a document"));
            shown.extend(items.map(|item| item.get_i64("qty").expect("a number")));
        }
        assert_eq!(shown, [1, 70, 3, 4]);
    }
}

/// Readers of items that are deleted by hand are told that positions mean nothing. Those that come later get
/// what is stored.
#[tokio::test(flavor = "multi_thread")]
async fn items_that_were_deleted_by_hand_end_their_readers() {
    let pair = Pair::on(shared().await, TRADES.holding_any()).await;
    let [mut first, mut slow] = [pair.watch(0, 7, None).await, pair.watch(0, 7, None).await];
    for (from, to) in [(1, 10), (11, 12)] {
        pair.append(1, 7, from..=to).await;
        read_to(TRADES, &mut first, to).await;
    }
    let before = pair.sent[0].reads(TRADES);
    let buckets = pair.database.collection::<Document>(TRADES.name);
    buckets.delete_one(doc! { "customerId": 7, "page": 2 }).await.expect("an answer");
    eventually("it is looked for", PATIENCE, || async { pair.sent[0].reads(TRADES) > before }).await;
    for reader in [&mut first, &mut slow] {
        let end = tokio::time::timeout(PATIENCE, reader.next()).await.expect("an end");
        assert!(matches!(end, Err(Error::OtherEpoch)), "{end:?}");
    }
    let mut again = pair.watch(0, 7, Some(10)).await;
    pair.append(1, 7, 11..=13).await;
    read_to(TRADES, &mut again, 13).await;
}

/// A reader that has read nothing of a history whose first pages are retired does not begin after them.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_from_the_beginning_is_told_of_a_retirement() {
    let store = Setup::on(shared().await).aging(short_ages()).store().await;
    let (trades, seven) = (engine::histories(&store, TRADES), engine::owner(TRADES, 7));
    let mut slow = trades.live().watch(seven.clone(), LiveStart::End, deadline()).await.expect("a reader");
    let items = (1..=300).map(|number| engine::dated(TRADES, number, number as i64)).collect();
    trades.appends().append(engine::append(seven.clone(), items, deadline())).await.expect("to append");
    let keep = Retention { pages: std::num::NonZero::new(5), ..Default::default() };
    eventually("pages are retired", PATIENCE, async || {
        // What takes too long is done again.
        trades.retirement().retire(keep, deadline()).await.ok();
        trades.reads().history(seven.clone(), deadline()).await.expect("a history").first_page().get() > 1
    })
    .await;
    let told = tokio::time::timeout(PATIENCE, slow.next()).await.expect("an end");
    assert!(matches!(told, Err(Error::Gone(Gone::Retired { .. }))), "{told:?}");
}

/// Of a history that was empty, the position is 0. What has resumed there does not begin after items that it
/// never got; what asks for the first item that is there gets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_resumes_at_0_is_told_of_a_retirement() {
    let store = Setup::on(shared().await).aging(short_ages()).store().await;
    let (trades, seven) = (engine::histories(&store, TRADES), engine::owner(TRADES, 7));
    let items = (1..=300).map(|number| engine::dated(TRADES, number, number as i64)).collect();
    trades.appends().append(engine::append(seven.clone(), items, deadline())).await.expect("to append");
    let keep = Retention { pages: std::num::NonZero::new(5), ..Default::default() };
    let first = async || {
        trades.reads().history(seven.clone(), deadline()).await.expect("a history").first_seq().get()
    };
    let mut begun = trades.live().watch(seven.clone(), LiveStart::First, deadline()).await.expect("a reader");
    assert_eq!(begun.position().get(), 0);
    eventually("pages are retired", PATIENCE, async || {
        // What takes too long is done again.
        trades.retirement().retire(keep, deadline()).await.ok();
        first().await > 1
    })
    .await;
    let told = trades.live().watch(seven.clone(), LiveStart::After(Position::BEGINNING), deadline()).await;
    assert!(matches!(told, Err(Error::Gone(Gone::Retired { .. }))), "{told:?}");
    let mut late = trades.live().watch(seven.clone(), LiveStart::First, deadline()).await.expect("a reader");
    for reader in [&mut begun, &mut late] {
        let page = tokio::time::timeout(PATIENCE, reader.next()).await.expect("more").expect("a page");
        assert_eq!(page.items().next().expect("an item").seq.get(), first().await);
        read_to(TRADES, reader, 300).await;
    }
}

/// What was read of a history means nothing when a backup was restored.
#[tokio::test(flavor = "multi_thread")]
async fn readers_end_when_the_database_gets_another_epoch() {
    let pair = Pair::on(shared().await, TRADES).await;
    pair.append(1, 7, 1..=3).await;
    let mut reader = pair.watch(0, 7, None).await;
    pair.append(1, 7, 4..=4).await;
    read_to(TRADES, &mut reader, 4).await;
    pair.stores[1].renew_epoch().await.expect("to renew");
    let end = tokio::time::timeout(PATIENCE, reader.next()).await.expect("an end");
    assert!(matches!(end, Err(Error::OtherEpoch)), "{end:?}");
    // Those that begin later read what there is.
    let mut reader = pair.watch(0, 7, Some(1)).await;
    pair.append(1, 7, 5..=5).await;
    read_to(TRADES, &mut reader, 5).await;
}

/// However many readers a client has, they have the pages of one in memory: each delivers one before the next
/// one does.
#[tokio::test(flavor = "multi_thread")]
async fn readers_of_one_client_that_are_behind_take_turns() {
    let pair = Pair::on(shared().await, TRADES).await;
    let total = 40 * TRADES.page_size + 1;
    for owner in [7, 8, 9] {
        fill(&pair.database, TRADES, owner, 40, TRADES.page_size).await;
    }
    let turns = Arc::new(Semaphore::new(1));
    let of = async |owner| pair.watch(0, owner, Some(0)).await.among(3, &turns);
    let (mut first, mut second, mut third) = (of(7).await, of(8).await, of(9).await);
    assert_eq!(first.next().await.expect("a page").last_seq().get(), TRADES.page_size);
    assert_eq!(turns.available_permits(), 1, "it has delivered a page");
    for owner in [7, 8, 9] {
        pair.append(1, owner, total..=total).await;
    }
    tokio::join!(
        read_to(TRADES, &mut first, total),
        read_to(TRADES, &mut second, total),
        read_to(TRADES, &mut third, total)
    );
    assert_eq!(turns.available_permits(), 1);
}

/// As a repair of its dates, while the service runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_no_append_deafens_no_reader() {
    let pair = Pair::on(shared().await, TRADES).await;
    pair.append(0, 7, 1..=5).await;
    let mut reader = pair.watch(1, 7, None).await;
    let before = pair.sent[1].reads(TRADES);
    let pages = pair.database.collection::<Document>(TRADES.name);
    let last = doc! { "$set": { "last": DateTime::from_millis(4_000_000_000_000) } };
    pages.update_one(doc! { "customerId": 7 }, last).await.expect("an answer");
    eventually("it is looked at", PATIENCE, || async { pair.sent[1].reads(TRADES) > before }).await;
    pair.append(0, 7, 6..=6).await;
    read_to(TRADES, &mut reader, 6).await;
}

test_over!(who_is_behind_reads_the_history, SMALL);
async fn who_is_behind_reads_the_history(history: &'static History) {
    let pair = Pair::on(shared().await, history).await;
    let pages = amount(60, 600);
    fill(&pair.database, history, 7, pages, 1).await;
    let total = (pages - 1) * history.page_size + 1;
    let mut behind = pair.watch(0, 7, Some(0)).await;
    let mut middle = pair.watch(0, 7, Some(total / 2)).await;
    let mut beyond = pair.watch(0, 7, Some(total + 2)).await;
    pair.append(1, 7, total + 1..=total + 3).await;
    for reader in [&mut behind, &mut middle, &mut beyond] {
        read_to(history, reader, total + 3).await;
    }
    // One that does not read for a while finds all of it.
    let more = history.pages(40.0);
    for page in 0..40 {
        let first = total + 4 + page * history.page_size;
        pair.append(0, 7, first..=first + history.page_size - 1).await;
    }
    for reader in [&mut behind, &mut beyond] {
        read_to(history, reader, total + 3 + more).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_owner_is_gone() {
    let pair = Pair::on(shared().await, TRADES).await;
    pair.append(0, 7, 1..=25).await;
    let mut readers = [pair.watch(0, 7, None).await, pair.watch(1, 7, None).await];
    let erased =
        pair.engine(1).erasures().erase(&engine::owner(TRADES, 7), deadline()).await.expect("to erase");
    assert!(matches!(erased, Erasure::Erased | Erasure::Erasing), "{erased:?}");
    for reader in &mut readers {
        let next = tokio::time::timeout(PATIENCE, reader.next()).await.expect("an end");
        assert!(matches!(next, Err(Error::Gone(Gone::Erased { .. }))), "{next:?}");
    }
    let again = pair.try_watch(0, 7, Some(25)).await;
    assert!(matches!(again, Err(Error::Gone(Gone::Erased { .. }))), "{again:?}");
}

/// Of how many owners a command reads the tails, if it does.
fn owners_of_tails(name: &str, sent: &Document) -> Option<usize> {
    let stages = sent.get_array("pipeline").ok().filter(|_| name == "aggregate")?;
    let asked =
        stages.first()?.as_document()?.get_document("$match").ok()?.get_document(TRADES.owner_field).ok()?;
    asked.get_array("$in").ok().map(Vec::len)
}

/// Without change streams, the tails of the watched owners are read every second, all in one command.
#[tokio::test(flavor = "multi_thread")]
async fn a_standalone_server_is_asked_again_and_again() {
    let mongod = Mongod::standalone().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut readers = join_all((1..=5).map(|owner| pair.watch(0, owner, None))).await;
    let before = pair.sent[0].count(|_, _| true);
    for store in [1, 0] {
        let numbers = if store == 1 { 1..=12 } else { 13..=14 };
        for owner in 1..=5 {
            pair.append(store, owner, numbers.clone()).await;
        }
        for reader in &mut readers {
            read_to(TRADES, reader, *numbers.end()).await;
        }
        if store == 1 {
            let sent = pair.sent[0].since(before);
            let asked: Vec<_> = sent.iter().filter_map(|(name, sent)| owners_of_tails(name, sent)).collect();
            assert!(!asked.is_empty() && asked.iter().all(|owners| *owners == 5), "{asked:?}");
        }
    }
    assert_eq!(pair.sent[0].streams(), 0);
    pair.engine(1).erasures().erase(&engine::owner(TRADES, 1), deadline()).await.expect("to erase");
    let next = tokio::time::timeout(PATIENCE, readers[0].next()).await.expect("an end");
    assert!(matches!(next, Err(Error::Gone(Gone::Erased { .. }))), "{next:?}");
    mongod.remove().await;
}

/// Codes of errors that end a stream, and how often it fails: the stream itself, then also its resumption, so
/// that it loses its place.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_misses_nothing() {
    // ChangeStreamHistoryLost, InterruptedAtShutdown.
    const BREAKS: [(i32, i32); 4] = [(286, 1), (286, 2), (11600, 1), (11600, 2)];
    let mongod = Mongod::failing().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut readers = [pair.watch(0, 7, None).await, pair.watch(0, 8, Some(0)).await];
    let mut last = 0;
    for (code, times) in BREAKS {
        let streams = pair.sent[0].streams();
        let how = of_streams(&pair.database, &["getMore", "aggregate"], doc! { "errorCode": code });
        fail(&mongod, "getMore", doc! { "times": times }, how).await;
        eventually("the stream is opened again", PATIENCE, || async { pair.sent[0].streams() > streams })
            .await;
        let reads = pair.sent[0].reads(TRADES);
        for owner in [7, 8] {
            pair.append(1, owner, last + 1..=last + 4).await;
        }
        last += 4;
        for reader in &mut readers {
            read_to(TRADES, reader, last).await;
        }
        // What is known of pages may be old by then.
        assert!(pair.sent[0].reads(TRADES) >= reads + 2 || (code, times) != (286, 2));
        heal(&mongod).await;
    }
    mongod.remove().await;
}

/// What is appended while the stream cannot be opened is found.
#[tokio::test(flavor = "multi_thread")]
async fn appends_while_there_is_no_stream_are_found() {
    let mongod = Mongod::failing().await;
    let pair = Pair::on(&mongod, TRADES).await;
    let mut reader = pair.watch(0, 7, None).await;
    // The stream of this store alone: commits need no aggregate while the tail is known.
    pair.append(1, 7, 1..=1).await;
    read_to(TRADES, &mut reader, 1).await;
    let broken = of_streams(&pair.database, &["getMore", "aggregate"], doc! { "errorCode": 11600 });
    let streams = pair.sent[0].streams();
    fail(&mongod, "getMore", "alwaysOn", broken).await;
    eventually("it is tried again", PATIENCE, || async { pair.sent[0].streams() > streams + 1 }).await;
    pair.append(1, 7, 2..=5).await;
    heal(&mongod).await;
    read_to(TRADES, &mut reader, 5).await;
    mongod.remove().await;
}

/// Clients that do not take what they have missed, more of them than may read the log at once, keep no others
/// from that.
#[tokio::test(flavor = "multi_thread")]
async fn slow_readers_of_all_owners_keep_no_others_from_resuming() {
    const OWNERS: u64 = 350;
    let pair = Pair::on(shared().await, TRADES).await;
    let follow =
        async |after| pair.engine(0).live().follow_owners(after, deadline()).await.expect("a reader");
    // Reads until all owners have come.
    let read = async |reader: &mut OwnersReader| {
        let mut owners = HashSet::new();
        while owners.len() < OWNERS as usize {
            let news = tokio::time::timeout(PATIENCE, reader.next()).await.expect("more").expect("news");
            owners.extend(news.owners.into_iter().map(|(owner, _)| owner));
        }
    };
    let mut first = follow(None).await;
    let place = first.next().await.expect("news").place.expect("a place");
    for owner in 1..=OWNERS {
        pair.append(1, owner, 1..=1).await;
    }
    read(&mut first).await;
    let mut slow = Vec::new();
    for _ in 0..8 {
        slow.push(follow(Some(place.clone())).await);
    }
    read(&mut follow(Some(place)).await).await;
    for mut reader in slow {
        read(&mut reader).await;
    }
}
