//! Tiles of summaries are forgotten with the pages that they are of, also one that is late.

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};

use super::{Place, documents, keep_summaries, retire_to};
use crate::commands::program::{self, run};
use crate::harness::{TRADES, fill, shared};

/// The pages are deleted, so only what is left of a kept tile can be checked.
#[tokio::test(flavor = "multi_thread")]
async fn verify_reads_kept_tiles() {
    let place = Place::new(TRADES).await;
    let store = place.store().await;
    fill(&place.database, TRADES, 1, 140, 1).await;
    retire_to(&place, &store, 1, keep_summaries(20), 65).await;
    let (uri, name) = (shared().await.uri().to_owned(), place.database.name().to_owned());
    let program = program::Place { history: TRADES, uri, name };
    let verify = async |arguments: &[&str]| run(&mut program.pagebucket("verify", arguments)).await;
    let healthy = verify(&[]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
    let tiles = place.database.collection::<Document>("kept_summaries");
    let [before] = &documents(&place, "kept_summaries").await[..] else { panic!("one tile") };
    let id = before.get_str("_id").expect("a text");
    let line = format!("kept_summaries {id}: data model: does not count the items that its pages had");
    let other = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 12] };
    for damage in [
        doc! { "$set": { "points": other } },
        doc! { "$set": { "size": 7 } },
        doc! { "$set": { "firstPage": 2_i64 } },
        doc! { "$unset": { "points": 1 } },
    ] {
        tiles.update_one(doc! {}, damage.clone()).await.expect("an answer");
        for arguments in [&[][..], &["--owner", "1"], &["--repair"]] {
            let found = verify(arguments).await;
            assert!(found.status == Some(1) && found.out.starts_with(&line), "{damage}: {found:?}");
        }
        tiles.replace_one(doc! {}, before).await.expect("an answer");
    }
    let healthy = verify(&["--owner", "1"]).await;
    assert_eq!((healthy.status, healthy.out.as_str()), (Some(0), ""), "{healthy:?}");
}
