//! Damage keeps no owner from being erased.

use mongodb::bson::doc;

use super::{Place, damage, erase, is_erased_by_id, pages_left};
use crate::commands::program::{self, run};
use crate::harness::{History, fill, shared, test_over};

test_over!(a_bucket_of_another_owner_stays_and_is_named, SMALL);
/// It may be a part of the other's history.
async fn a_bucket_of_another_owner_stays_and_is_named(history: &'static History) {
    let place = Place::new(history).await;
    let store = place.store().await;
    for owner in [1, 2] {
        fill(&place.database, history, owner, 3, 1).await;
    }
    let (field, second) = (history.owner_field, history.owner_bson(2));
    let taken = doc! { field: history.owner_bson(1), "page": 2_i64 };
    damage(&place, taken, doc! { "$set": { field: second, "page": 4_i64 } }).await;
    erase(&place, &store, 1).await;
    place.is_erased(1).await;
    assert_eq!(pages_left(&place, 2).await, [1, 2, 3, 4]);
    let program = program::Place {
        history,
        uri: shared().await.uri().to_owned(),
        name: place.database.name().to_owned(),
    };
    let id = history.id(1);
    let erased =
        run(&mut program.pagebucket("erase", &["--owner", &format!("{}={id}", history.owners)])).await;
    assert_eq!(erased.status, Some(0), "{erased:?}");
    let (from, to) = (format!("bucket {id}_"), format!("{field}: is another owner's id: the bucket stays"));
    assert!(erased.err.contains(&from) && erased.err.contains(&to), "{erased:?}");
    assert_eq!(run(&mut program.pagebucket("migrate", &[])).await.status, Some(0), "old records are deleted");
    let found = run(&mut program.pagebucket("verify", &[])).await;
    let (named, why) = (format!("{} {id}_", history.name), "is left, though its owner is erased");
    assert!(found.out.starts_with(&named) && found.out.contains(why), "{found:?}");
    erase(&place, &store, 2).await;
    is_erased_by_id(&place, 2).await;
    is_erased_by_id(&place, 1).await;
}
