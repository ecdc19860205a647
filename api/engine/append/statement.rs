//! Plans where items go: from a known tail to the statements of an `update` command.

use std::ops::Range;

use mongodb::bson::{RawDocumentBuf, Timestamp};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId, PageNumber, PageSize, SeqRange};

use crate::mongo::values::{DocumentWriter, document, int64};
use crate::store::buckets::bucket_id::{BucketId, Tail};
use crate::store::buckets::document::KeyedItem;
use crate::store::collection::fence::Fence;

/// One conditional upsert: appends items to a bucket that holds exactly as many as it expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    /// The bucket, with the number of items that it must hold; 0 opens the bucket.
    pub(crate) bucket: Tail,
    /// The items to append, as indexes into the append's items.
    pub(crate) items: Range<usize>,
}

impl Statement {
    pub(crate) fn opens(&self) -> bool {
        self.bucket.count == 0
    }

    /// The addresses that the items get.
    pub(crate) fn range(&self) -> SeqRange {
        let Tail { page, count, page_size, .. } = self.bucket;
        let first = page_size.first_seq(page).plus(count.into());
        SeqRange { first, last: first.plus(self.items.len() - 1) }
    }

    pub(crate) fn tail_after(&self) -> Tail {
        Tail { count: self.bucket.count + self.items.len() as u16, ..self.bucket }
    }
}

/// The last bucket of a history has the last possible second, [`BucketId::LAST_SECOND`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no bucket second is left after the last bucket of this history")]
pub struct SecondsExhausted;

/// The bucket second of a new bucket: `max(previous + 1, min(item's own, now))`, at least 0.
///
/// It is the first item's own second, as in the manual, unless that second is taken, precedes an earlier
/// bucket, or lies in the future. Seconds are since 1970.
pub fn next_second(previous: Option<u64>, item: i64, now: i64) -> Result<u64, SecondsExhausted> {
    let earliest = previous.map_or(0, |second| second + 1);
    let second = u64::try_from(item.min(now)).unwrap_or(0).max(earliest);
    if second <= BucketId::LAST_SECOND { Ok(second) } else { Err(SecondsExhausted) }
}

/// Fills the tail, then opens as many buckets as the rest of the items need.
pub(crate) fn plan(
    page_size: PageSize,
    mut tail: Option<Tail>,
    items: &[KeyedItem<'_>],
    now: Instant,
) -> Result<Vec<Statement>, SecondsExhausted> {
    let mut statements = Vec::with_capacity(items.len().div_ceil(page_size.get()) + 1);
    let mut start = 0;
    while start < items.len() {
        let bucket = match tail {
            Some(tail) if tail.free() > 0 => tail,
            _ => {
                let previous = tail.map(|tail| tail.second);
                let second = next_second(previous, items[start].item.date().seconds(), now.seconds())?;
                let page = tail.map_or(PageNumber::FIRST, |tail| tail.page.next());
                Tail { second, page, count: 0, page_size }
            }
        };
        let end = items.len().min(start + bucket.free());
        let statement = Statement { bucket, items: start..end };
        tail = Some(statement.tail_after());
        statements.push(statement);
        start = end;
    }
    Ok(statements)
}

/// The statement as a part of an `update` command. `items` are all items of the append to the history of
/// `owner`. `fence` says until when the statement may open its bucket, if it opens it.
pub(crate) fn update(
    definition: &Definition,
    owner: &OwnerId,
    statement: &Statement,
    items: &[KeyedItem<'_>],
    fence: Fence,
) -> RawDocumentBuf {
    match statement.opens() {
        true => open(definition, owner, statement, items, fence),
        false => push(definition, owner, statement, items),
    }
}

/// The statement that appends to an open bucket.
///
/// The types in `q` decide the types in the stored bucket, `count` int32 and the owner's: the server copies
/// them on insert, and the validator refuses what is inserted.
fn push(
    definition: &Definition,
    owner: &OwnerId,
    statement: &Statement,
    items: &[KeyedItem<'_>],
) -> RawDocumentBuf {
    let (bucket, items) = (statement.bucket, &items[statement.items.clone()]);
    let (first, last) = dates(items);
    let id = bucket.id(owner).to_string();
    document(|update| {
        update.document("q", |query| compare(query, definition, owner, &id, bucket));
        update.document("u", |change| {
            change.document("$push", |push| {
                push.document("history", |each| history(each, "$each", definition, items));
            });
            change.document("$inc", |inc| inc.i32("count", items.len() as i32));
            change.document("$min", |min| min.date("first", first));
            change.document("$max", |max| max.date("last", last));
            change.document("$setOnInsert", |set| set.i64("page", int64(bucket.page.get())));
        });
        upsert(update);
    })
}

/// The statement that opens a bucket while its fence is open. Later it would store a bucket without its
/// items, and the validator refuses that by its `$expr` alone, as it refuses every statement from an old
/// tail.
fn open(
    definition: &Definition,
    owner: &OwnerId,
    statement: &Statement,
    items: &[KeyedItem<'_>],
    fence: Fence,
) -> RawDocumentBuf {
    let in_time = RawDocumentBuf::try_from(&fence.is_open()).expect("no NUL in it");
    let (bucket, items) = (statement.bucket, &items[statement.items.clone()]);
    let stored = |branches: &mut DocumentWriter<'_>, name: &str, held: &[KeyedItem<'_>]| {
        branches.document(name, |literal| {
            literal.document("$literal", |stored| {
                beginning(stored, definition, owner, bucket, items);
                history(stored, "history", definition, held);
            });
        });
    };
    document(|update| {
        update.document("q", |query| {
            compare(query, definition, owner, &bucket.id(owner).to_string(), bucket);
            // A marker of the beginning may have this `_id`, and no items: it must be refused, not replaced.
            query.document("firstPage", |exists| exists.bool("$exists", false));
        });
        update.array("u", [()], |stages, name, ()| {
            stages.document(name, |stage| {
                stage.document("$replaceWith", |with| {
                    with.array("$cond", 0..3, |branches, name, branch| match branch {
                        0 => branches.copy(name, &in_time),
                        1 => stored(branches, name, items),
                        _ => stored(branches, name, &[]),
                    });
                });
            });
        });
        upsert(update);
    })
}

/// The bucket that a statement opens, as a part of an `insert` command: the server refuses it after
/// `openable` ([`fence`](mod@crate::store::collection::fence)).
pub(crate) fn insert(
    definition: &Definition,
    owner: &OwnerId,
    statement: &Statement,
    items: &[KeyedItem<'_>],
    openable: Timestamp,
) -> RawDocumentBuf {
    let items = &items[statement.items.clone()];
    document(|stored| {
        beginning(stored, definition, owner, statement.bucket, items);
        history(stored, "history", definition, items);
        // The server puts its own time in the place of an empty one.
        stored.timestamp("opened", Timestamp { time: 0, increment: 0 });
        stored.timestamp("openable", openable);
    })
}

/// What a bucket that is opened with these items has before them.
fn beginning(
    stored: &mut DocumentWriter<'_>,
    definition: &Definition,
    owner: &OwnerId,
    bucket: Tail,
    items: &[KeyedItem<'_>],
) {
    let (first, last) = dates(items);
    stored.text("_id", &bucket.id(owner).to_string());
    stored.owner(&definition.owner.field, owner);
    stored.i64("page", int64(bucket.page.get()));
    stored.i32("count", items.len() as i32);
    stored.date("first", first);
    stored.date("last", last);
}

/// Finds a bucket that holds exactly as many items as are expected.
fn compare(query: &mut DocumentWriter<'_>, definition: &Definition, owner: &OwnerId, id: &str, bucket: Tail) {
    query.text("_id", id);
    query.owner(&definition.owner.field, owner);
    query.i32("count", bucket.count.into());
}

fn upsert(update: &mut DocumentWriter<'_>) {
    update.bool("upsert", true);
    // Without the hint 6.0.5 chooses the unique index and examines every page of the owner.
    update.document("hint", |hint| hint.i32("_id", 1));
}

fn history(of: &mut DocumentWriter<'_>, name: &str, definition: &Definition, items: &[KeyedItem<'_>]) {
    of.array(name, items, |history, name, keyed| match keyed.key {
        None => history.copy(name, keyed.item.document()),
        Some(key) => history.copy_with(name, keyed.item.document(), |item| {
            item.binary(definition.key_field(), &key.to_bson());
        }),
    });
}

/// The least and the greatest date of the items.
fn dates(items: &[KeyedItem<'_>]) -> (Instant, Instant) {
    let dates = || items.iter().map(|item| item.item.date());
    dates().min().zip(dates().max()).expect("a statement has an item")
}

#[cfg(test)]
mod tests {
    use mongodb::bson::rawdoc;
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use pagebucket_model::item::Item;

    fn item(millis: i64) -> Item {
        Item::new(rawdoc! {}, Instant::from_millis(millis).unwrap())
    }

    #[test]
    fn the_first_items_own_second_if_possible() {
        assert_eq!(next_second(None, 1_698_349_623, 1_800_000_000), Ok(1_698_349_623));
        assert_eq!(next_second(Some(1_698_349_623), 1_698_349_623, 1_800_000_000), Ok(1_698_349_624));
        assert_eq!(next_second(Some(1_700_000_000), 1_698_349_623, 1_800_000_000), Ok(1_700_000_001));
        assert_eq!(next_second(None, 1_900_000_000, 1_800_000_000), Ok(1_800_000_000));
        assert_eq!(next_second(None, -86_400, 1_800_000_000), Ok(0));
        assert_eq!(next_second(Some(BucketId::LAST_SECOND), 0, 0), Err(SecondsExhausted));
        assert_eq!(next_second(None, i64::MAX, i64::MAX), Err(SecondsExhausted));
    }

    /// A million buckets in histories of a thousand, whose dates are seconds to thousands of years from now.
    /// Seconds rise and stay within ten digits. They are the item's own if that is free. They are in the
    /// future only if an earlier bucket's second is.
    #[test]
    fn the_rule_holds_by_the_million() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..1_000 {
            let now = random.random_range(0_i64..9_000_000_000);
            let reach = 10_i64.pow(random.random_range(1..=11));
            let mut previous = None;
            for _ in 0..1_000 {
                let item = now + random.random_range(-reach..reach);
                let second = next_second(previous, item, now).unwrap();
                assert!(second <= BucketId::LAST_SECOND && previous.is_none_or(|previous| second > previous));
                let own = u64::try_from(item).ok().filter(|_| item <= now);
                let free = own.filter(|own| previous.is_none_or(|previous| *own > previous));
                assert!(free.is_none_or(|free| second == free), "{previous:?}, {item}, {now}: {second}");
                assert!(second as i64 <= now || previous.is_some_and(|previous| second == previous + 1));
                previous = Some(second);
            }
        }
    }

    proptest! {
        #[test]
        fn a_plan_leaves_no_hole_and_no_ragged_page(
            count in 1_usize..=1000, (size, held) in (2_u16..=200).prop_flat_map(|size| (Just(size), 0..=size)), page in 1_u64..1_000_000, millis in -1_000_000_i64..2_000_000_000_000,
        ) {
            let page_size = PageSize::new(size.into()).unwrap();
            let tail = (held > 0).then(|| Tail {
                second: 1_000_000_000, page: PageNumber::new(page).unwrap(), count: held, page_size,
            });
            let item = item(millis);
            let items = vec![KeyedItem { item: &item, key: None }; count];
            let plan = plan(page_size, tail, &items, Instant::from_millis(1_500_000_000_000).unwrap()).unwrap();
            let mut expected = Tail::items(tail) + 1;
            let mut place = 0;
            for statement in &plan {
                prop_assert_eq!(statement.range().first.get(), expected);
                prop_assert_eq!(statement.items.start, place);
                prop_assert_eq!(page_size.page_of(statement.range().first), statement.bucket.page);
                prop_assert_eq!(page_size.page_of(statement.range().last), statement.bucket.page);
                expected = statement.range().last.get() + 1;
                place = statement.items.end;
            }
            prop_assert_eq!(place, count);
            prop_assert!(plan.windows(2).all(|pair| pair[0].bucket.second < pair[1].bucket.second));
        }
    }
}
