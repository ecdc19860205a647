//! Rows that wait to be sent, each customer's in the order of the file.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::stream::Row;
use crate::domain::{CustomerId, PAGE_SIZE};

/// Maximum number of rows of one append, as of one request.
pub const BATCH: usize = 1_000;

/// The rows of one customer that are sent together: 1 to [`BATCH`].
#[derive(Debug)]
pub(super) struct Batch {
    pub customer: CustomerId,
    pub rows: Vec<Row>,
}

/// Up to this number of waiting customers, a batch takes all rows of its customer.
const FEW: usize = 32;

/// From this number on, the rows of a customer are worth a command of their own.
const OWN_COMMAND: usize = 50;

/// Maximum number of customers whose last page is remembered.
const MOST_REMEMBERED: usize = 50_000;

/// An entry of a `BTreeMap` from a line to a customer, in bytes: a leaf has 11 places of 16 bytes, of which at least
/// half are taken, and there are few other nodes.
const BY_LINE: usize = 36;

/// The least that is worth sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Least {
    /// Anything.
    Row,
    /// What fills a page.
    Page,
    /// A whole batch.
    Batch,
}

/// Rows that wait, and the customers with a batch under way.
///
/// At most one batch of a customer is under way, so that the order of a history is the order of the file.
///
/// With many customers of few rows each, a batch ends at the end of a page: it is then one statement, which shares a
/// command with hundreds of others. Two statements of a customer would need a command of their own, and a page that is
/// filled in two parts is written twice.
#[derive(Debug, Default)]
pub(super) struct Pending {
    customers: HashMap<CustomerId, Queue>,
    /// Customers with rows waiting and none under way, by the line of their first row: the longest wait comes first.
    waiting: BTreeMap<u64, CustomerId>,
    /// Those of them with as many rows as their last page takes, in the same order.
    filling: BTreeMap<u64, CustomerId>,
    /// Those of them with a whole batch, in the same order.
    whole: BTreeMap<u64, CustomerId>,
    /// Number of trades on the last page.
    filled: HashMap<CustomerId, u8>,
    rows: usize,
    /// Rows that the queues have memory for.
    capacity: usize,
}

#[derive(Debug)]
struct Queue {
    rows: VecDeque<Row>,
    under_way: bool,
}

impl Pending {
    /// Number of waiting rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Memory of all of it, in bytes.
    pub fn bytes(&self) -> usize {
        let by_line = self.waiting.len() + self.filling.len() + self.whole.len();
        self.capacity * size_of::<Row>() + by_line * BY_LINE + table(&self.customers) + table(&self.filled)
    }

    /// The lines that wait, in no order.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.customers.values().flat_map(|queue| &queue.rows).map(|row| row.line)
    }

    /// Adds a row, which comes after all earlier ones.
    pub fn push(&mut self, row: Row) {
        let customer = row.customer;
        let room = self.room(customer);
        // Room for one row: with many customers, most have no second one.
        let queue = self.customers.entry(customer).or_insert_with(|| {
            self.capacity += 1;
            Queue { rows: VecDeque::with_capacity(1), under_way: false }
        });
        self.capacity -= queue.rows.capacity();
        queue.rows.push_back(row);
        self.capacity += queue.rows.capacity();
        self.rows += 1;
        if !queue.under_way {
            let (first, rows) = (queue.rows[0].line, queue.rows.len());
            if rows == 1 {
                self.waiting.insert(first, customer);
            }
            if rows == room {
                self.filling.insert(first, customer);
            }
            if rows == BATCH {
                self.whole.insert(first, customer);
            }
        }
    }

    /// The first of these that waits, and is not less than `least`: a whole batch; rows that fill a page; the rows of the
    /// customer that has waited longest. The customer gives no more before [`Pending::done`].
    pub fn take(&mut self, least: Least) -> Option<Batch> {
        let few = self.waiting.len() <= FEW;
        let (&first, &customer) = match self.whole.first_key_value() {
            Some(whole) => whole,
            None if least == Least::Batch => return None,
            // Of few customers, the one that has waited longest gives all its rows, even if they fill no page.
            None if few && least == Least::Row => self.waiting.first_key_value()?,
            None => match self.filling.first_key_value() {
                Some(filling) => filling,
                None if least == Least::Page => return None,
                None => self.waiting.first_key_value()?,
            },
        };
        for waiting in [&mut self.waiting, &mut self.filling, &mut self.whole] {
            waiting.remove(&first);
        }
        let room = self.room(customer);
        let queue = self.customers.get_mut(&customer)?;
        queue.under_way = true;
        let most = if few || queue.rows.len() >= OWN_COMMAND { BATCH } else { room };
        self.capacity -= queue.rows.capacity();
        let rows: Vec<_> = if queue.rows.len() <= most {
            std::mem::take(&mut queue.rows).into()
        } else {
            queue.rows.drain(..most).collect()
        };
        if queue.rows.capacity() > BATCH.max(4 * queue.rows.len()) {
            queue.rows.shrink_to(2 * queue.rows.len());
        }
        self.capacity += queue.rows.capacity();
        self.rows -= rows.len();
        Some(Batch { customer, rows })
    }

    /// The customer's batch has ended. The history now has `trades` trades, if that is known.
    pub fn done(&mut self, customer: CustomerId, trades: Option<u64>) {
        match trades {
            Some(trades) => self.remember(customer, (trades % PAGE_SIZE as u64) as u8),
            None => drop(self.filled.remove(&customer)),
        }
        let room = self.room(customer);
        let Some(queue) = self.customers.get_mut(&customer) else { return };
        queue.under_way = false;
        let (first, rows) = (queue.rows.front().map(|row| row.line), queue.rows.len());
        let Some(first) = first else {
            self.capacity -= queue.rows.capacity();
            self.customers.remove(&customer);
            // Shrinking moves the rest, so it waits until the rest is small.
            if self.customers.capacity() > FEW.max(8 * self.customers.len()) {
                self.customers.shrink_to(2 * self.customers.len());
            }
            return;
        };
        self.waiting.insert(first, customer);
        if rows >= room {
            self.filling.insert(first, customer);
        }
        if rows >= BATCH {
            self.whole.insert(first, customer);
        }
    }

    /// Forgets how full last pages are. Batches may then end in worse places.
    pub fn forget(&mut self) {
        self.filled = HashMap::new();
    }

    /// Room on the customer's last page, in trades; a whole page if that is unknown.
    fn room(&self, customer: CustomerId) -> usize {
        PAGE_SIZE - self.filled.get(&customer).copied().map_or(0, usize::from)
    }

    fn remember(&mut self, customer: CustomerId, filled: u8) {
        if self.filled.len() >= MOST_REMEMBERED
            && !self.filled.contains_key(&customer)
            && let Some(other) = self.filled.keys().next().copied()
        {
            self.filled.remove(&other);
        }
        self.filled.insert(customer, filled);
    }
}

/// Memory of the table of a map, in bytes: it is at most 7/8 full, and has one extra byte for each place.
pub(super) fn table<K, V>(map: &HashMap<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::TradeDraft;

    fn row(line: u64, customer: u64) -> Row {
        Row { line, size: 1, customer: CustomerId::new(customer).unwrap(), draft: TradeDraft::example(1) }
    }

    fn lines(batch: Option<Batch>) -> (u64, Vec<u64>) {
        let batch = batch.unwrap();
        (batch.customer.get(), batch.rows.iter().map(|row| row.line).collect())
    }

    #[test]
    fn who_has_waited_longest_goes_first_and_alone() {
        let mut pending = Pending::default();
        for (line, customer) in [(1, 5), (2, 9), (3, 5), (4, 7)] {
            pending.push(row(line, customer));
        }
        assert!(pending.take(Least::Batch).is_none());
        assert_eq!(lines(pending.take(Least::Row)), (5, vec![1, 3]));
        pending.push(row(5, 5));
        assert_eq!(lines(pending.take(Least::Row)), (9, vec![2]));
        assert_eq!(pending.lines().min(), Some(4));
        assert_eq!(lines(pending.take(Least::Row)), (7, vec![4]));
        // Customer 5 is under way.
        assert!(pending.take(Least::Row).is_none());
        assert_eq!(pending.len(), 1);
        pending.done(CustomerId::new(5).unwrap(), None);
        assert_eq!(lines(pending.take(Least::Row)), (5, vec![5]));
        for customer in [5, 7, 9] {
            pending.done(CustomerId::new(customer).unwrap(), None);
        }
        assert!(pending.customers.is_empty() && pending.waiting.is_empty() && pending.len() == 0);
    }

    #[test]
    fn whole_batches_go_before_all_others() {
        let mut pending = Pending::default();
        pending.push(row(1, 1));
        for line in 2..=2_501 {
            pending.push(row(line, 2));
        }
        let (customer, batch) = lines(pending.take(Least::Batch));
        assert_eq!((customer, batch.len(), batch[0]), (2, BATCH, 2));
        assert!(pending.take(Least::Batch).is_none());
        pending.done(CustomerId::new(2).unwrap(), None);
        assert_eq!(lines(pending.take(Least::Batch)).1[0], 1_002);
        pending.done(CustomerId::new(2).unwrap(), None);
        assert!(pending.take(Least::Batch).is_none());
        assert_eq!(lines(pending.take(Least::Row)), (1, vec![1]));
        assert_eq!(lines(pending.take(Least::Row)).1.len(), 500);
    }

    #[test]
    fn of_many_customers_a_batch_ends_where_a_page_does() {
        let mut pending = Pending::default();
        let customers = FEW as u64 + 3;
        let mut line = 0;
        let mut push = |pending: &mut Pending, customer, rows| {
            for _ in 0..rows {
                line += 1;
                pending.push(row(line, customer));
            }
        };
        for customer in 1..=customers {
            push(&mut pending, customer, if customer == 3 { 25 } else { 4 });
        }
        assert!(pending.take(Least::Batch).is_none());
        let of = |batch: Option<Batch>| batch.map(|batch| (batch.customer.get(), batch.rows.len()));
        // Those that fill a page come first.
        assert_eq!(of(pending.take(Least::Row)), Some((3, 10)));
        assert_eq!(of(pending.take(Least::Page)), None);
        assert_eq!(of(pending.take(Least::Row)), Some((1, 4)));
        pending.done(CustomerId::new(1).unwrap(), Some(4));
        push(&mut pending, 1, 5);
        assert_eq!(of(pending.take(Least::Page)), None);
        push(&mut pending, 1, 1);
        assert_eq!(of(pending.take(Least::Page)), Some((1, 6)));
        // A page of somebody else's trades is in its way.
        pending.done(CustomerId::new(3).unwrap(), Some(17));
        assert_eq!(of(pending.take(Least::Page)), Some((3, 3)));
        pending.done(CustomerId::new(3).unwrap(), Some(20));
        assert_eq!(of(pending.take(Least::Page)), Some((3, 10)));
        pending.done(CustomerId::new(3).unwrap(), Some(30));
        // Enough of one customer's goes as one.
        push(&mut pending, 3, OWN_COMMAND as u64);
        assert_eq!(of(pending.take(Least::Page)), Some((3, OWN_COMMAND + 2)));
        // With few left, each gives all it has.
        while pending.waiting.len() > FEW {
            pending.take(Least::Row);
        }
        push(&mut pending, customers, 30);
        assert_eq!(of(pending.take(Least::Page)), Some((customers, 34)));
    }

    #[test]
    fn what_it_takes_is_what_waits() {
        let mut pending = Pending::default();
        let customers = 10_000;
        for line in 1..=customers {
            pending.push(row(line, line));
        }
        // A row, its customer, and where it is in the order.
        let each = pending.bytes() / customers as usize;
        assert!((size_of::<Row>() + BY_LINE..3 * size_of::<Row>()).contains(&each), "{each} bytes a row");
        while let Some(batch) = pending.take(Least::Row) {
            pending.done(batch.customer, Some(1));
        }
        assert!(pending.bytes() > 10 * customers as usize, "it remembers last pages");
        pending.forget();
        assert!(pending.bytes() < 10_000, "{} bytes for nothing", pending.bytes());
        // One customer of many rows.
        for line in 1..=5_000 {
            pending.push(row(line, 1));
        }
        while let Some(batch) = pending.take(Least::Batch) {
            pending.done(batch.customer, None);
        }
        assert!(pending.len() == 0 && pending.bytes() < 10_000, "{} bytes for nothing", pending.bytes());
    }
}
