//! Rows that wait to be sent, each customer's in the order of the file.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Row;
use crate::domain::{CustomerId, PAGE_SIZE};

/// The most rows of one append, as of one request.
pub const BATCH: usize = 1_000;

/// The rows of one customer that are sent together: 1 to [`BATCH`].
#[derive(Debug)]
pub(super) struct Batch {
    pub customer: CustomerId,
    pub rows: Vec<Row>,
}

/// With no more customers than this waiting, each gives all it has.
const FEW: usize = 32;

/// From so many rows on, a customer's rows are worth a command of their own.
const OWN_COMMAND: usize = 50;

/// Customers of which is remembered how full their last page is, at some 20 bytes each.
const MOST_REMEMBERED: usize = 50_000;

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

/// Rows that wait, and whose rows are under way.
///
/// Never gives out a batch of a customer while another of that customer's is under way, so that the
/// order of a history is the order of the file.
///
/// Of many customers with few rows each, a batch ends where a page does: it is one statement then, and
/// goes in one command with hundreds of others. Two statements of a customer would need a command of
/// their own, and a page that is filled in two parts is written twice.
#[derive(Debug, Default)]
pub(super) struct Pending {
    customers: HashMap<CustomerId, Queue>,
    /// Customers with rows waiting and none under way, by the line of their first row: who has
    /// waited longest comes first.
    waiting: BTreeMap<u64, CustomerId>,
    /// Those of them with a whole batch, in the order in which it became one.
    whole: VecDeque<CustomerId>,
    /// Those with as many as their last page takes, in that order; and others that no longer are.
    filling: VecDeque<CustomerId>,
    /// How many trades the last page holds.
    filled: HashMap<CustomerId, usize>,
    rows: usize,
}

#[derive(Debug, Default)]
struct Queue {
    rows: VecDeque<Row>,
    under_way: bool,
}

impl Pending {
    /// How many rows wait.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The lines that wait, in no order.
    pub fn lines(&self) -> impl Iterator<Item = u64> {
        self.customers.values().flat_map(|queue| &queue.rows).map(|row| row.line)
    }

    /// Adds a row, which stands behind all that were added before.
    pub fn push(&mut self, row: Row) {
        let (customer, line) = (row.customer, row.line);
        let room = self.room(customer);
        let queue = self.customers.entry(customer).or_default();
        queue.rows.push_back(row);
        self.rows += 1;
        if !queue.under_way {
            if queue.rows.len() == 1 {
                self.waiting.insert(line, customer);
            }
            if queue.rows.len() == room {
                self.filling.push_back(customer);
            }
            if queue.rows.len() == BATCH {
                self.whole.push_back(customer);
            }
        }
    }

    /// A whole batch; or, when that will do and there is none, rows that fill a page; or else those of the
    /// customer that has waited longest. Its customer has nothing more to give before [`Pending::done`].
    pub fn take(&mut self, least: Least) -> Option<Batch> {
        let few = self.waiting.len() <= FEW;
        let customer = match self.whole.pop_front() {
            Some(customer) => customer,
            None if least == Least::Batch => return None,
            // Of few customers, who has waited longest gives all there is, whether it fills a page or not.
            None if few && least == Least::Row => *self.waiting.first_key_value()?.1,
            None => match self.next_filling() {
                Some(customer) => customer,
                None if least == Least::Page => return None,
                None => *self.waiting.first_key_value()?.1,
            },
        };
        let room = self.room(customer);
        let queue = self.customers.get_mut(&customer)?;
        if let Some(first) = queue.rows.front() {
            self.waiting.remove(&first.line);
        }
        queue.under_way = true;
        let most = if few || queue.rows.len() >= OWN_COMMAND { BATCH } else { room };
        let rows: Vec<_> = queue.rows.drain(..queue.rows.len().min(most)).collect();
        self.rows -= rows.len();
        Some(Batch { customer, rows })
    }

    /// The customer's batch is no longer under way, and the history holds so many trades, where that is known.
    pub fn done(&mut self, customer: CustomerId, trades: Option<u64>) {
        match trades {
            Some(trades) => self.remember(customer, (trades % PAGE_SIZE as u64) as usize),
            None => drop(self.filled.remove(&customer)),
        }
        let room = self.room(customer);
        let Some(queue) = self.customers.get_mut(&customer) else { return };
        queue.under_way = false;
        match queue.rows.front() {
            None => {
                self.customers.remove(&customer);
            }
            Some(first) => {
                self.waiting.insert(first.line, customer);
                if queue.rows.len() >= room {
                    self.filling.push_back(customer);
                }
                if queue.rows.len() >= BATCH {
                    self.whole.push_back(customer);
                }
            }
        }
    }

    /// How many trades the customer's last page takes; that of a new history, where nothing is known.
    fn room(&self, customer: CustomerId) -> usize {
        PAGE_SIZE - self.filled.get(&customer).copied().unwrap_or(0)
    }

    fn remember(&mut self, customer: CustomerId, filled: usize) {
        if self.filled.len() >= MOST_REMEMBERED
            && !self.filled.contains_key(&customer)
            && let Some(other) = self.filled.keys().next().copied()
        {
            self.filled.remove(&other);
        }
        self.filled.insert(customer, filled);
    }

    /// One that can fill a page now.
    fn next_filling(&mut self) -> Option<CustomerId> {
        loop {
            let customer = self.filling.pop_front()?;
            let room = self.room(customer);
            // It may have been taken otherwise since.
            let can = |queue: &Queue| !queue.under_way && queue.rows.len() >= room;
            if self.customers.get(&customer).is_some_and(can) {
                return Some(customer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Instant, Quantity, Side, Ticker, TradeDraft};

    fn row(line: u64, customer: u64) -> Row {
        let draft = TradeDraft {
            side: Side::Buy,
            ticker: Ticker::parse("MDB").unwrap(),
            qty: Quantity::new(1).unwrap(),
            price: None,
            date: Some(Instant::from_millis(0).unwrap()),
        };
        Row { line, size: 1, customer: CustomerId::new(customer).unwrap(), draft }
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
}
