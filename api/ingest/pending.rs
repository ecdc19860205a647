//! Rows that wait to be sent, each customer's in the order of the file.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::Row;
use crate::domain::CustomerId;

/// The most rows of one append, as of one request.
pub const BATCH: usize = 1_000;

/// The rows of one customer that are sent together: 1 to [`BATCH`].
#[derive(Debug)]
pub(super) struct Batch {
    pub customer: CustomerId,
    pub rows: Vec<Row>,
}

/// Rows that wait, and whose rows are under way.
///
/// Never gives out a batch of a customer while another of that customer's is under way, so that the
/// order of a history is the order of the file.
#[derive(Debug, Default)]
pub(super) struct Pending {
    customers: HashMap<CustomerId, Queue>,
    /// Customers with rows waiting and none under way, by the line of their first row: who has
    /// waited longest comes first.
    waiting: BTreeMap<u64, CustomerId>,
    /// Those of them with a whole batch, in the order in which it became one.
    whole: VecDeque<CustomerId>,
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
        let queue = self.customers.entry(customer).or_default();
        queue.rows.push_back(row);
        self.rows += 1;
        if !queue.under_way {
            if queue.rows.len() == 1 {
                self.waiting.insert(line, customer);
            }
            if queue.rows.len() == BATCH {
                self.whole.push_back(customer);
            }
        }
    }

    /// A whole batch; or, when `any` will do and there is none, the rows of the customer that has
    /// waited longest. Its customer has nothing more to give before [`Pending::done`].
    pub fn take(&mut self, any: bool) -> Option<Batch> {
        let customer = match self.whole.pop_front() {
            Some(customer) => customer,
            None if any => *self.waiting.first_key_value()?.1,
            None => return None,
        };
        let queue = self.customers.get_mut(&customer)?;
        if let Some(first) = queue.rows.front() {
            self.waiting.remove(&first.line);
        }
        queue.under_way = true;
        let rows: Vec<_> = queue.rows.drain(..queue.rows.len().min(BATCH)).collect();
        self.rows -= rows.len();
        Some(Batch { customer, rows })
    }

    /// The customer's batch is no longer under way.
    pub fn done(&mut self, customer: CustomerId) {
        let Some(queue) = self.customers.get_mut(&customer) else { return };
        queue.under_way = false;
        match queue.rows.front() {
            None => {
                self.customers.remove(&customer);
            }
            Some(first) => {
                self.waiting.insert(first.line, customer);
                if queue.rows.len() >= BATCH {
                    self.whole.push_back(customer);
                }
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
        assert!(pending.take(false).is_none());
        assert_eq!(lines(pending.take(true)), (5, vec![1, 3]));
        pending.push(row(5, 5));
        assert_eq!(lines(pending.take(true)), (9, vec![2]));
        assert_eq!(pending.lines().min(), Some(4));
        assert_eq!(lines(pending.take(true)), (7, vec![4]));
        // Customer 5 is under way.
        assert!(pending.take(true).is_none());
        assert_eq!(pending.len(), 1);
        pending.done(CustomerId::new(5).unwrap());
        assert_eq!(lines(pending.take(true)), (5, vec![5]));
        for customer in [5, 7, 9] {
            pending.done(CustomerId::new(customer).unwrap());
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
        let (customer, batch) = lines(pending.take(false));
        assert_eq!((customer, batch.len(), batch[0]), (2, BATCH, 2));
        assert!(pending.take(false).is_none());
        pending.done(CustomerId::new(2).unwrap());
        assert_eq!(lines(pending.take(false)).1[0], 1_002);
        pending.done(CustomerId::new(2).unwrap());
        assert!(pending.take(false).is_none());
        assert_eq!(lines(pending.take(true)), (1, vec![1]));
        assert_eq!(lines(pending.take(true)).1.len(), 500);
    }
}
