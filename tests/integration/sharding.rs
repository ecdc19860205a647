//! What a sharded cluster relies on. No test runs on one: what it would do follows from the commands and the
//! indexes.

use crate::commands::program::{Place, run};

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_set_has_nothing_to_shard() {
    let place = Place::new().await;
    for _ in 0..2 {
        let ended = run(&mut place.pagebucket("migrate", &["--shard", "64"])).await;
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let last = ended.out.lines().last();
        assert_eq!(last, Some("nothing is sharded: the server is not the mongos of a sharded cluster"));
    }
    for (arguments, part) in [
        (&["--shard", "0"][..], "0 is not in 1..=4096"),
        (&["--shard", "2", "--check"], "cannot be used with"),
    ] {
        let ended = run(&mut place.pagebucket("migrate", arguments)).await;
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert!(ended.err.contains(part), "{ended:?}");
    }
}
