//! Which items of a request are placed: the address of each, or why it has none.

use pagebucket_model::domain::{Seq, SeqRange};

/// Why a line of an upload is not stored and will never be stored under this key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
pub enum LineRefusal {
    /// An earlier attempt has stored another item under the line's number.
    #[display("it differs from the line that an earlier upload with the same `Idempotency-Key` has stored")]
    Differs,
    /// An earlier attempt has not stored this line but has stored later lines.
    #[display(
        "an earlier upload with the same `Idempotency-Key` has not stored it, but later lines: send it with another key, or none"
    )]
    OutOfOrder,
    /// The line's number is greater than 2^32 - 1.
    #[display("only the first 4,294,967,295 lines may have an `Idempotency-Key`")]
    BeyondNumbers,
}

/// The addresses of the first items of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Placed {
    /// In the order of the items. Adjacent items are in one range.
    pub ranges: Vec<SeqRange>,
    /// The number of items in `ranges` and `refused`.
    pub count: usize,
    /// The refused lines of an upload, by their index.
    pub refused: Vec<(usize, LineRefusal)>,
}

impl Placed {
    /// Notes that the next items are stored at `range`.
    pub(crate) fn push(&mut self, range: SeqRange) {
        self.count += range.count();
        match self.ranges.last_mut() {
            Some(last) if last.last.plus(1) == range.first => last.last = range.last,
            _ => self.ranges.push(range),
        }
    }

    /// Notes that the next item is not stored and will never be.
    pub(crate) fn refuse(&mut self, why: LineRefusal) {
        self.refused.push((self.count, why));
        self.count += 1;
    }

    /// The outcome of each item. `seqs` are the addresses of the stored ones, in order.
    pub(crate) fn ends(
        &self,
        mut seqs: impl Iterator<Item = Seq>,
    ) -> impl Iterator<Item = Result<Seq, LineRefusal>> {
        let mut refused = self.refused.iter().peekable();
        (0..self.count).filter_map(move |index| match refused.next_if(|(refused, _)| *refused == index) {
            Some((_, why)) => Some(Err(*why)),
            None => seqs.next().map(Ok),
        })
    }
}
