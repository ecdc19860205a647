//! Groups of marked items, by the store itself.

use pagebucket_engine::appends::{Append, Once};
use pagebucket_engine::internal::{COMMAND, IdentifiedSoFar, ItemKey, SourceKey};
use pagebucket_engine::{Deadline, Engine};

use crate::harness::{History, Setup, TRADES, engine, shared, stored};

/// Both processes have searched the empty history. The other one then stores two of three items; this one,
/// whose first call is refused for one of them, must find the other one, which its second call has.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_stores_meanwhile_is_not_doubled() {
    let history: &History = TRADES;
    let setup = Setup::on(shared().await).of(history);
    let (ours, theirs) = (setup.store().await, setup.store().await);
    let (ours, theirs) = (engine::histories(&ours, history), engine::histories(&theirs, history));
    let append = async |engine: &Engine, so_far: &mut IdentifiedSoFar, numbers: &[u8]| {
        let item = |number: &u8| engine::dated(history, u64::from(*number), 1_000);
        let key = |number: &u8| {
            let key = ItemKey::read(&[*number; ItemKey::LEN]).expect("a key");
            SourceKey { key, looked: 0, group: 1 }
        };
        let once = Some(Once::Identified { keys: numbers.iter().map(key).collect(), so_far });
        let items = numbers.iter().map(item).collect();
        let append = engine::append(engine::owner(history, 1), items, Deadline::within(COMMAND));
        engine.appends().append(Append { once, ..append }).await
    };
    append(theirs, &mut IdentifiedSoFar::default(), &[2, 3]).await.expect("stored");
    let mut so_far = IdentifiedSoFar::default();
    append(ours, &mut so_far, &[1, 2]).await.expect_err("one is stored");
    append(ours, &mut so_far, &[1, 2]).await.expect("stored");
    append(ours, &mut so_far, &[3]).await.expect_err("it is stored");
    append(ours, &mut so_far, &[3]).await.expect("found");
    let database = shared().await.client().await.database(&setup.connection.database);
    assert_eq!(stored(&database, history, 1).await.numbers, [2, 3, 1]);
}
