//! Plans where trades go: from a known tail to the statements of an `update` command.

use std::ops::Range;

use mongodb::bson::{Bson, DateTime, Document, doc};

use super::bucket_id::BucketId;
use super::document::{self, Item};
use super::tail::Tail;
use crate::domain::{CustomerId, Instant, PAGE_SIZE, PageNumber, SeqRange};

/// One conditional upsert: appends trades to a bucket that holds exactly `expects` trades.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) id: BucketId,
    pub(super) page: PageNumber,
    /// The number of trades that the bucket must hold; 0 opens the bucket.
    pub(super) expects: usize,
    /// The trades to append, as indexes into the append's trades.
    pub(super) trades: Range<usize>,
}

impl Statement {
    /// The addresses that the trades get.
    pub(super) fn range(&self) -> SeqRange {
        let first = self.page.first_seq().plus(self.expects);
        SeqRange { first, last: first.plus(self.trades.len() - 1) }
    }

    /// The tail after the statement is stored.
    pub(super) fn tail_after(&self) -> Tail {
        Tail { id: self.id, page: self.page, count: self.expects + self.trades.len() }
    }
}

/// The last bucket of a history has the last possible second, [`BucketId::LAST_SECOND`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no bucket second is left after the last bucket of this history")]
pub struct SecondsExhausted;

/// The bucket second of a new bucket: `max(previous + 1, min(trade's own, now))`, at least 0.
///
/// It is the first trade's own second, as in the manual, unless that second is taken, precedes an earlier
/// bucket, or lies in the future. Seconds are since 1970.
///
/// # Errors
/// The second would be after [`BucketId::LAST_SECOND`].
pub fn next_second(previous: Option<u64>, trade: i64, now: i64) -> Result<u64, SecondsExhausted> {
    let earliest = previous.map_or(0, |second| second + 1);
    let second = u64::try_from(trade.min(now)).unwrap_or(0).max(earliest);
    if second <= BucketId::LAST_SECOND { Ok(second) } else { Err(SecondsExhausted) }
}

/// Fills the tail, then opens as many buckets as the rest of the trades need.
pub(super) fn plan(
    customer: CustomerId,
    tail: Option<Tail>,
    trades: &[Item<'_>],
    now: Instant,
) -> Result<Vec<Statement>, SecondsExhausted> {
    let mut statements = Vec::with_capacity(trades.len().div_ceil(PAGE_SIZE) + 1);
    let mut start = 0;
    let mut tail = tail;
    while start < trades.len() {
        let (id, page, expects) = match tail {
            Some(tail) if tail.room() > 0 => (tail.id, tail.page, tail.count),
            _ => {
                let previous = tail.map(|tail| tail.id.second);
                let second = next_second(previous, trades[start].trade.date.seconds(), now.seconds())?;
                let page = tail.map_or(PageNumber::FIRST, |tail| tail.page.next());
                (BucketId { customer, second }, page, 0)
            }
        };
        let end = trades.len().min(start + PAGE_SIZE - expects);
        let statement = Statement { id, page, expects, trades: start..end };
        tail = Some(statement.tail_after());
        statements.push(statement);
        start = end;
    }
    Ok(statements)
}

/// The statement as a part of an `update` command. `trades` are all trades of the append.
///
/// The types in `q` decide the types in the stored bucket, `customerId` int64 and `count` int32: the server
/// copies them on insert.
pub(super) fn upsert(statement: &Statement, trades: &[Item<'_>]) -> Document {
    let trades = &trades[statement.trades.clone()];
    let dates = || trades.iter().map(|item| item.trade.date);
    let millis =
        |date: Option<Instant>| DateTime::from_millis(date.expect("a statement has a trade").millis());
    let history: Vec<Bson> = trades.iter().map(|item| document::of_trade(item).into()).collect();
    doc! {
        "q": {
            "_id": statement.id.to_string(),
            "customerId": statement.id.customer.get() as i64,
            "count": statement.expects as i32,
        },
        "u": {
            "$push": { "history": { "$each": history } },
            "$inc": { "count": trades.len() as i32 },
            "$min": { "first": millis(dates().min()) },
            "$max": { "last": millis(dates().max()) },
            "$setOnInsert": { "page": statement.page.get() as i64 },
        },
        "upsert": true,
        // Without the hint 6.0.5 chooses {customerId, page} and examines every page of the customer.
        "hint": { "_id": 1 },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::domain::Trade;

    fn trade(millis: i64) -> Trade {
        Trade { date: Instant::from_millis(millis).unwrap(), ..Trade::example(1) }
    }

    #[test]
    fn the_first_trades_own_second_if_possible() {
        assert_eq!(next_second(None, 1_698_349_623, 1_800_000_000), Ok(1_698_349_623));
        assert_eq!(next_second(Some(1_698_349_623), 1_698_349_623, 1_800_000_000), Ok(1_698_349_624));
        assert_eq!(next_second(Some(1_700_000_000), 1_698_349_623, 1_800_000_000), Ok(1_700_000_001));
        assert_eq!(next_second(None, 1_900_000_000, 1_800_000_000), Ok(1_800_000_000));
        assert_eq!(next_second(None, -86_400, 1_800_000_000), Ok(0));
        assert_eq!(next_second(Some(BucketId::LAST_SECOND), 0, 0), Err(SecondsExhausted));
        assert_eq!(next_second(None, i64::MAX, i64::MAX), Err(SecondsExhausted));
    }

    /// A million buckets in histories of a thousand. Seconds rise and stay within ten digits. They are the
    /// trade's own if that is free. They are in the future only if an earlier bucket's second is.
    #[test]
    fn the_rule_holds_by_the_million() {
        let seed = rand::random();
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        for _ in 0..1_000 {
            let now = random.random_range(0_i64..9_000_000_000);
            let mut previous = None;
            for _ in 0..1_000 {
                let trade = now + random.random_range(-3_000_i64..2_000);
                let second = next_second(previous, trade, now).unwrap();
                assert!(second <= BucketId::LAST_SECOND && previous.is_none_or(|previous| second > previous));
                let own = u64::try_from(trade).ok().filter(|_| trade <= now);
                let free = own.filter(|own| previous.is_none_or(|previous| *own > previous));
                assert!(free.is_none_or(|free| second == free), "{previous:?}, {trade}, {now}: {second}");
                assert!(second as i64 <= now || previous.is_some_and(|previous| second == previous + 1));
                previous = Some(second);
            }
        }
    }

    proptest! {
        #[test]
        fn seconds_only_rise_and_never_run_ahead_of_the_clock_without_need(
            dates in prop::collection::vec(-100_000_000_000_i64..100_000_000_000, 1..100),
            now in 0_i64..9_000_000_000,
        ) {
            let mut previous = None;
            for date in dates {
                let second = next_second(previous, date, now).unwrap();
                prop_assert!(previous.is_none_or(|previous| second > previous));
                prop_assert!(second <= now as u64 || Some(second) == previous.map(|p| p + 1));
                previous = Some(second);
            }
        }

        #[test]
        fn a_plan_leaves_no_hole_and_no_ragged_page(
            count in 1_usize..=1000, held in 0_usize..=10, page in 1_u64..1_000_000, millis in -1_000_000_i64..2_000_000_000_000,
        ) {
            let customer = CustomerId::new(7).unwrap();
            let tail = (held > 0).then(|| Tail {
                id: BucketId { customer, second: 1_000_000_000 }, page: PageNumber::new(page).unwrap(), count: held,
            });
            let trade = trade(millis);
            let trades = vec![Item { trade: &trade, key: None }; count];
            let plan = plan(customer, tail, &trades, Instant::from_millis(1_500_000_000_000).unwrap()).unwrap();
            let mut expected = Tail::totals(tail).last_seq().map_or(1, |seq| seq.get() + 1);
            let mut place = 0;
            for statement in &plan {
                prop_assert_eq!(statement.range().first.get(), expected);
                prop_assert_eq!(statement.trades.start, place);
                prop_assert_eq!(statement.range().first.page(), statement.page);
                prop_assert_eq!(statement.range().last.page(), statement.page);
                expected = statement.range().last.get() + 1;
                place = statement.trades.end;
            }
            prop_assert_eq!(place, count);
            prop_assert!(plan.windows(2).all(|pair| pair[0].id.second < pair[1].id.second));
        }
    }
}
