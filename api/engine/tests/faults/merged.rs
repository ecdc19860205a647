//! Appends of several owners in one commit: what is wrong with one of them concerns no other.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join_all, join3};
use mongodb::bson::doc;
use pagebucket_engine::appends::{Append, AppendCause, Once};
use pagebucket_engine::{Deadline, Error};
use pagebucket_model::domain::{Clock, IdempotencyKey};
use tokio::sync::oneshot;

use super::rig::{LONG, Rig, Told, Update};
use crate::harness::{Harm, History, Proxy, Setup, Way, engine, shared, test_over};

/// Owners of one committer, however many committers there are, if their number divides 64.
fn of_one_committer(history: &History, count: usize) -> Vec<u64> {
    (1..).filter(|owner| engine::spread(history, *owner).is_multiple_of(64)).take(count).collect()
}

/// Queues `appends` of one committer, which then go into one commit: `busy`, an append of an owner of the
/// same committer, is held on the wire until they are queued. `after` begins when they are; it has to let go
/// what is held.
async fn in_one_commit<T>(
    proxy: &Proxy,
    busy: impl Future<Output = Told>,
    appends: impl Future<Output = T>,
    after: impl Future<Output = ()>,
) -> (Told, T) {
    let held = proxy.strikes() + 1;
    proxy.harm("write", Way::Back, Harm::Hold, 1);
    let queued = async {
        proxy.struck(held).await;
        // An append is queued when it is polled for the first time.
        join(appends, after).await.0
    };
    join(busy, queued).await
}

test_over!(a_stale_tail_costs_its_owner_one_retry, NOTES);
async fn a_stale_tail_costs_its_owner_one_retry(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let first = Rig::through(history, &proxy, mongod).await;
    let second = first.sibling(mongod).await;
    let owners = of_one_committer(history, 21);
    let (busy, others) = (owners[0], &owners[1..]);
    let stale = others[19];
    let mut told: Vec<Told> = Vec::new();
    // The tail that is known has room, or is just full; the other instance stays on its page, or goes on.
    for (turn, (held, behind)) in (1..).zip([(0.3, 0.1), (0.5, 0.3), (0.7, 1.2), (0.6, 2.5)]) {
        let [held, behind] = [held, behind].map(|pages| history.pages(pages).max(1));
        let base = turn * 10_000;
        told.extend(first.append_to_all(owners.clone(), base, held, LONG).await);
        let behind_its_back = second.append(stale, base + 1_000, behind, LONG).await;
        first.sent.forget();
        let appends = first.append_to_all(others.iter().copied(), base + 2_000, 1, LONG);
        let before = first.append(busy, base + 2_000, 1, LONG);
        let (before, last) = in_one_commit(&proxy, before, appends, async { proxy.relent() }).await;
        let after = last.last().expect("some").seqs()[0];
        assert_eq!(after, behind_its_back.seqs().last().expect("some") + 1);
        told.extend([before, behind_its_back]);
        told.extend(last);
        told.iter().for_each(Told::stored);

        let updates = first.sent.updates();
        let times = |owner| updates.iter().filter(|update| update.owners().contains(&owner)).count();
        assert_eq!(times(stale), 2, "refused, and stored");
        assert!(others.iter().filter(|owner| **owner != stale).all(|owner| times(*owner) == 1));
        let merged = updates.iter().find(|update| update.owners().contains(&stale)).expect("one");
        assert_eq!(merged.owners(), others.iter().copied().collect(), "it was merged with the others");
        assert_eq!(first.sent.tail_reads(), [[stale].into()], "the one tail is read, and no other");
    }
    let stored = first.check(&told).await;
    assert_eq!(stored.len(), told.iter().map(|told| told.seqs().len()).sum::<usize>());
}

test_over!(an_inserted_page_that_is_there_refuses_its_owner_alone, NOTES);
async fn an_inserted_page_that_is_there_refuses_its_owner_alone(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let first = Rig::through(history, &proxy, mongod).await;
    let second = first.sibling(mongod).await;
    let owners = of_one_committer(history, 8);
    let (busy, others) = (owners[0], &owners[1..]);
    let (stale, full) = (others[3], history.page_size);
    let mut told = first.append_to_all(others.iter().copied(), 1, full, LONG).await;
    told.push(first.append(busy, 1, 1, LONG).await);
    told.push(second.append(stale, 1_001, 1, LONG).await);
    first.sent.forget();
    let appends = first.append_to_all(others.iter().copied(), 2_001, 1, LONG);
    let before = first.append(busy, 2_001, 1, LONG);
    let (before, last) = in_one_commit(&proxy, before, appends, async { proxy.relent() }).await;
    for told in &last {
        let expected = if told.owner == stale { full + 2 } else { full + 1 };
        assert_eq!(told.seqs(), [expected], "{told:?}");
    }
    let sent = first.sent.all();
    let sent: Vec<_> =
        sent.iter().map(|(name, _)| name.as_str()).filter(|name| *name != "aggregate").collect();
    assert_eq!(sent, ["update", "insert", "update"], "of the busy one, of all others, of the refused one");
    told.push(before);
    told.extend(last);
    first.check(&told).await;
}

test_over!(an_expected_total_is_judged_in_its_turn, NOTES);
/// Each request of a commit is judged in its turn, by the tail of its own attempt: also if that of the
/// catalogue is old.
async fn an_expected_total_is_judged_in_its_turn(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::through(history, &proxy, mongod).await;
    let other = rig.sibling(mongod).await;
    let owners = of_one_committer(history, 2);
    let (busy, own) = (owners[0], owners[1]);
    let mut told = rig.append_to_all(owners.clone(), 1, 1, LONG).await;
    let mut known = 1;
    // What the other instance has appended meanwhile: nothing, on the same page, and further.
    for (turn, behind) in (1..).zip([0, 1, history.pages(1.5)]) {
        let base = turn * 10_000;
        if behind > 0 {
            told.push(other.append(own, base + 1_000, behind, LONG).await);
        }
        let total = known + behind;
        rig.sent.forget();
        let appends = join_all([
            // Two items, then those that expect them, and those that do not.
            rig.append_after(own, total, base, 2),
            rig.append_after(own, total, base + 10, 1),
            rig.append_after(own, total + 2, base + 20, 1),
            rig.append_after(own, total + 2, base + 30, 1),
            rig.append_after(own, total + 3, base + 100, history.pages(2.2)),
        ]);
        let unconditional = rig.append(own, base + 50, 1, LONG);
        let never = rig.append_after(own, 9_000_000, base + 60, 1);
        let appends = join3(appends, unconditional, never);
        let before = rig.append(busy, base, 1, LONG);
        let (before, (all, unconditional, never)) =
            in_one_commit(&proxy, before, appends, async { proxy.relent() }).await;
        known = total + 4 + history.pages(2.2);
        for (index, first) in [(0, total + 1), (2, total + 3), (4, total + 4)] {
            all[index].stored();
            assert_eq!(all[index].seqs()[0], first);
        }
        assert_eq!(unconditional.seqs(), [known]);
        all[1].unexpected(known);
        all[3].unexpected(total);
        never.unexpected(total);
        assert_eq!(rig.stored(own).await.numbers.len() as u64, known);
        let placed = rig.sent.updates();
        let refused = |number: u64| !placed.iter().any(|update| update.places(number as i64));
        assert!(refused(base + 10) && refused(base + 30) && refused(base + 60), "they are never sent");
        // A request that expects more than was read may have seen what the primary does not know yet that a
        // majority has.
        assert_eq!(rig.sent.tail_levels(), ["majority", "linearizable", "majority"]);
        told.extend([before, unconditional, never]);
        told.extend(all);
    }
    rig.check(&told).await;
    // What is expected is not what is remembered: the tail is read before anything is sent, and nothing is
    // refused.
    told.push(other.append(own, 90_000, 1, LONG).await);
    rig.sent.forget();
    let after = rig.append_after(own, known + 1, 90_001, 1).await;
    assert_eq!(after.seqs(), [known + 2]);
    assert_eq!((rig.sent.updates().len(), rig.sent.tail_reads().len()), (1, 1));
    // What is remembered is what is expected, and is old: the database refuses it, and it is judged by what
    // is read then.
    told.push(other.append(own, 90_002, 1, LONG).await);
    rig.sent.forget();
    rig.append_after(own, known + 2, 90_003, 1).await.unexpected(known + 3);
    assert_eq!((rig.sent.updates().len(), rig.sent.tail_reads().len()), (1, 1));
    told.push(after);
    rig.check(&told).await;
}

/// The number of an item that the validator refuses.
const REFUSED: u64 = 1_000_000;

/// Makes the validator refuse buckets with this item, by its schema: the engine's own leaves items alone.
async fn refuse(rig: &Rig, number: u64) {
    let collections = rig.database.list_collections().filter(doc! { "name": rig.history.name }).await;
    let mut collections = collections.expect("collections");
    assert!(collections.advance().await.expect("collections"));
    let collection = collections.deserialize_current().expect("a collection");
    let mut validator = collection.options.validator.expect("a validator");
    let schema = validator.get_document_mut("$jsonSchema").expect("a schema");
    let item = rig
        .history
        .number_path()
        .rsplit('.')
        .fold(doc! { "maximum": number as i64 - 1 }, |within, name| doc! { "properties": { name: within } });
    let buckets = doc! { "properties": { "history": { "items": item } } };
    schema.insert("allOf", vec![buckets]);
    let command = doc! { "collMod": rig.history.name, "validator": validator };
    rig.database.run_command(command).await.expect("collMod");
}

test_over!(an_item_that_the_validator_refuses_fails_alone, NOTES);
async fn an_item_that_the_validator_refuses_fails_alone(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::through(history, &proxy, mongod).await;
    refuse(&rig, REFUSED).await;
    let owners = of_one_committer(history, 6);
    let (busy, own, others) = (owners[0], owners[1], &owners[2..]);
    let mut told: Vec<Told> = Vec::new();
    // Where it would open a history, in a page that is there, and with its neighbours over the page's end.
    for turn in 1..=5 {
        let first = turn * 100;
        rig.sent.forget();
        let of_its_owner = join3(
            rig.append(own, first, 1, LONG),
            rig.append(own, REFUSED, 1, LONG),
            rig.append(own, first + 1, 1, LONG),
        );
        let appends = join(of_its_owner, rig.append_to_all(others.iter().copied(), first, 2, LONG));
        let before = rig.append(busy, first, 1, LONG);
        let (before, ((earlier, refused, later), neighbours)) =
            in_one_commit(&proxy, before, appends, async { proxy.relent() }).await;
        let Err(error) = &refused.outcome else { panic!("{refused:?}") };
        assert!(matches!(error.cause, AppendCause::Database(Error::Internal(_))), "{refused:?}");
        assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0));
        let stored: Vec<Told> = [before, earlier, later].into_iter().chain(neighbours).collect();
        stored.iter().for_each(Told::stored);
        let together = &rig.sent.updates()[1..];
        let sent: BTreeSet<u64> = together.iter().flat_map(super::rig::Update::owners).collect();
        assert_eq!(sent, others.iter().copied().chain([own]).collect());
        let statement =
            |update: &Update| update.statements.iter().any(|(owner, items)| *owner == own && items.len() > 1);
        assert!(together.iter().any(statement), "it was merged with others of its owner");
        told.extend(stored);
        told.push(refused);
    }
    rig.check(&told).await;
}

test_over!(an_append_with_little_time_left_fails_alone, NOTES);
async fn an_append_with_little_time_left_fails_alone(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::with(Setup::at(&proxy.uri()).of(history), mongod).await;
    let owners = of_one_committer(history, 12);
    let (busy, own, others) = (owners[0], owners[1], &owners[1..]);
    let (tell, answered) = oneshot::channel();
    let late = async {
        let late = rig.append(own, 101, 1, Duration::from_secs(1)).await;
        tell.send(()).expect("the test goes on");
        late
    };
    let second = proxy.strikes() + 2;
    let after = async {
        // The commit of all of these is held until the one with little time left is answered.
        proxy.relent_but("write", Way::Back, Harm::Hold, 1);
        proxy.struck(second).await;
        answered.await.expect("an answer");
        proxy.relent();
    };
    let appends = join(late, rig.append_to_all(others.iter().copied(), 1, 1, LONG));
    let (before, (late, told)) = in_one_commit(&proxy, rig.append(busy, 1, 1, LONG), appends, after).await;
    told.iter().chain([&before]).for_each(Told::stored);
    let Err(error) = &late.outcome else { panic!("{late:?}") };
    assert!(matches!(error.cause, AppendCause::Late), "{late:?}");
    assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0));
    let sent = rig.sent.updates();
    assert!(sent.iter().flat_map(|update| &update.statements).all(|(_, items)| !items.contains(&101)));
    assert_eq!(rig.check(told.iter().chain([&before, &late])).await.len(), 12);
}

test_over!(a_commit_that_panics_leaves_its_owners_usable, NOTES);
/// The clock panics, which a commit reads before it sends anything.
async fn a_commit_that_panics_leaves_its_owners_usable(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let panics = Arc::new(AtomicBool::new(false));
    let mut setup = Setup::at(&proxy.uri()).of(history);
    let (panicking, system) = (Arc::clone(&panics), Clock::system());
    setup.clock = Clock::from_fn(move || {
        assert!(!panicking.swap(false, Ordering::SeqCst), "the clock of the test panics");
        system.now()
    });
    let rig = Rig::with(setup, mongod).await;
    let owners = of_one_committer(history, 4);
    let (busy, others) = (owners[0], &owners[1..]);
    let mut told = rig.append_to_all(owners.clone(), 1, 3, LONG).await;
    rig.sent.forget();
    let appends = rig.append_to_all(others.iter().copied(), 101, 1, LONG);
    let (before, lost) = in_one_commit(&proxy, rig.append(busy, 101, 1, LONG), appends, async {
        panics.store(true, Ordering::SeqCst);
        proxy.relent();
    })
    .await;
    before.stored();
    lost.iter().for_each(|told| told.unknown_after(0));
    assert_eq!(rig.sent.updates().len(), 1, "nothing of them was sent");
    told.push(before);
    told.extend(lost);
    let count = history.pages(1.2);
    let after = rig.append_to_all(owners.clone(), 201, count, LONG).await;
    after.iter().for_each(Told::stored);
    assert_eq!(after[1].seqs(), (4..4 + count).collect::<Vec<_>>());
    let read: BTreeSet<u64> = rig.sent.tail_reads().into_iter().flatten().collect();
    assert_eq!(read, others.iter().copied().collect(), "their tails are read again");
    told.extend(after);
    assert_eq!(rig.check(&told).await.len() as u64, 4 * (3 + count) + 1);
}

test_over!(a_key_with_little_time_left_fails_alone, NOTES);
/// Keys are registered together, too.
async fn a_key_with_little_time_left_fails_alone(history: &'static History) {
    let mongod = shared().await;
    let proxy = Proxy::before(mongod).await;
    let rig = Rig::through(history, &proxy, mongod).await;
    let owners = of_one_committer(history, 12);
    let (first, own, others) = (owners[0], owners[1], &owners[2..]);
    let told = rig.append_to_all(owners.clone(), 1, 1, LONG).await;
    told.iter().for_each(Told::stored);
    let append = |owner: u64, within: Duration| {
        let id = engine::owner(history, owner);
        let key = IdempotencyKey::parse(b"k").expect("a key");
        let (drafts, arrived) = (vec![engine::draft(history, 2)], Clock::system().now());
        let append = Append::new(id, drafts, arrived, Deadline::within(within));
        let append = Append { once: Some(Once::Request { key, canonical: &[] }), ..append };
        engine::histories(&rig.store, history).appends().append(append)
    };
    let held = proxy.strikes() + 1;
    proxy.harm("insert", Way::There, Harm::Hold, u32::MAX);
    // The others wait for the first one's registration, until that takes long, and are registered together
    // then.
    let late = async {
        let late = append(own, Duration::from_secs(4)).await;
        proxy.relent();
        late
    };
    let rest = async {
        proxy.struck(held).await;
        join(late, join_all(others.iter().map(|owner| append(*owner, LONG)))).await
    };
    let (before, (late, stored)) = join(append(first, LONG), rest).await;
    stored.iter().chain([&before]).for_each(|stored| assert!(stored.is_ok(), "{stored:?}"));
    let error = late.expect_err("too late");
    assert!(matches!(error.cause, AppendCause::Database(Error::Unavailable(_))), "{error:?}");
    assert_eq!((error.progress.ranges().len(), error.unknown), (0, 0));
    for owner in owners {
        let expected = if owner == own { &[1][..] } else { &[1, 2] };
        assert_eq!(rig.stored(owner).await.numbers, expected, "owner {owner}");
    }
}
