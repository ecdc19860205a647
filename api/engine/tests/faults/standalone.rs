//! Without a replica set there are no numbers: a lost answer is an unknown outcome at once. What HTTP
//! makes of it is seen best here, where nothing is waited for.

use mongodb::bson::doc;

use super::rig::{LONG, Rig, Told};
use crate::harness::rig::fail;
use crate::harness::{History, Mongod, test_over};

test_over!(a_standalone_server_has_one_attempt, TRADES);
async fn a_standalone_server_has_one_attempt(history: &'static History) {
    let mongod = Mongod::failing_standalone().await;
    let rig = Rig::on(history, &mongod).await;
    let mut told: Vec<Told> = Vec::new();
    told.push(rig.append(7, 1, history.pages(2.5), LONG).await);
    told.extend(rig.append_to_all(101..=140, 1, history.pages(1.2), LONG).await);
    told.iter().for_each(Told::stored);
    let mut next = 1_001;
    for how in [
        doc! { "closeConnection": true },
        doc! { "errorCode": 91 },
        doc! { "writeConcernError": { "code": 64, "errmsg": "of the test" } },
    ] {
        for count in [1, history.pages(2.5)] {
            rig.sent.forget();
            fail(&mongod, "update", doc! { "times": 1 }, how.clone()).await;
            let unknown = rig.append(7, next, count, LONG).await;
            unknown.unknown_after(0);
            assert_eq!(rig.sent.updates().len(), 1, "no attempt but one: {how}");
            let after = rig.append(7, next + 500, 1, LONG).await;
            after.stored();
            let total = told.iter().chain([&after]).filter(|told| told.owner == 7);
            let known: usize = total.map(|told| told.seqs().len()).sum();
            let stored = rig.stored(7).await.numbers;
            let came = stored.contains(&(next as i64));
            assert_eq!(came, how.contains_key("writeConcernError"), "{how}");
            assert!(stored.len() >= known);
            told.extend([unknown, after]);
            next += 1_000;
        }
    }
    // A lost read is tried again all the same.
    let cold = rig.sibling(&mongod).await;
    fail(&mongod, "aggregate", doc! { "times": 3 }, doc! { "closeConnection": true }).await;
    told.push(cold.append(7, next, 1, LONG).await);
    told.last().expect("one").stored();
    rig.check(&told).await;
    mongod.remove().await;
}
