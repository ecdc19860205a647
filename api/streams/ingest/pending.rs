//! Rows that wait to be sent, each owner's in the order of the file.

use std::collections::{BTreeMap, HashMap, VecDeque};

use pagebucket_engine::internal::{IdentifiedSoFar, UploadedSoFar};
use pagebucket_model::domain::{IdempotencyKey, OwnerId, PageSize, Seq};

use super::budget::OWN;
use super::stream::Row;

/// Maximum number of rows of one append, as of one request.
pub const BATCH: usize = 1_000;

/// The rows of one owner that are sent together: 1 to [`BATCH`].
#[derive(Debug)]
pub(crate) struct RowBatch {
    pub owner: OwnerId,
    pub rows: Vec<Row>,
    /// What is remembered of the owner's earlier batches.
    pub so_far: Option<SoFar>,
}

/// What a stream whose rows are stored once remembers of an owner.
#[derive(Debug)]
pub(crate) enum SoFar {
    /// The key of an upload, and its progress once it has begun.
    Lines(IdempotencyKey, Option<UploadedSoFar>),
    /// Of rows with identities of their own.
    Identified(IdentifiedSoFar),
}

/// Up to this number of owners with rows, waiting or under way, a batch takes all rows of its owner.
const FEW: usize = 32;

/// From this number on, the rows of an owner are worth a command of their own.
const OWN_COMMAND: usize = 50;

/// Maximum number of owners whose last page is remembered.
const MOST_REMEMBERED: usize = 50_000;

/// Maximum number of owners whose progress a keyed upload remembers, and the number when the budget has no
/// room.
const MOST_KEYED: usize = 10_000;
const FEW_KEYED: usize = 100;

// What a stream never forgets takes only a small part of its own share.
const _: () = assert!(8 * FEW_KEYED * size_of::<(OwnerId, SoFar)>() / 7 < OWN / 4);

/// An entry of a `BTreeMap` from a line to an owner, in bytes: a leaf has 11 places of 16 bytes, of which at
/// least half are taken, and there are few other nodes.
const BY_LINE: usize = 36;

/// The least that is worth sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Least {
    /// Anything.
    Row,
    /// What fills a page.
    Page,
    /// A whole batch.
    Batch,
}

/// Rows that wait, and the owners with a batch under way.
///
/// At most one batch of an owner is under way, so that the order of a history is the order of the file.
///
/// With many owners of few rows each, a batch ends at the end of a page: it is then one statement, which
/// shares a command with hundreds of others. Two statements of an owner would need a command of their own,
/// and a page that is filled in two parts is written twice.
#[derive(Debug)]
pub(crate) struct PendingRows {
    page_size: PageSize,
    owners: HashMap<OwnerId, OwnerQueue>,
    /// Owners with rows waiting and none under way, by the line of their first row: the longest wait comes
    /// first. For each [`Least`], those with so much: all, those with as many rows as their last page takes,
    /// those with a whole batch.
    waiting: [BTreeMap<u64, OwnerId>; 3],
    /// Number of items on the last page.
    filled: HashMap<OwnerId, u8>,
    /// What is remembered of owners whose rows are stored once.
    keyed: HashMap<OwnerId, SoFar>,
    rows: usize,
    /// Rows that the queues have memory for.
    capacity: usize,
    /// Memory of the waiting rows on the heap, in bytes.
    heap: usize,
}

#[derive(Debug)]
struct OwnerQueue {
    rows: VecDeque<Row>,
    under_way: bool,
}

impl PendingRows {
    /// Nothing yet, of histories with this page size.
    pub(crate) fn of(page_size: PageSize) -> Self {
        Self {
            page_size,
            owners: HashMap::new(),
            waiting: Default::default(),
            filled: HashMap::new(),
            keyed: HashMap::new(),
            rows: 0,
            capacity: 0,
            heap: 0,
        }
    }

    /// Number of waiting rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Memory of all of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let by_line = self.waiting.iter().map(|owners| owners.len() * BY_LINE).sum::<usize>();
        let remembered = table(&self.filled) + table(&self.keyed);
        self.capacity * size_of::<Row>() + self.heap + by_line + table(&self.owners) + remembered
    }

    /// The lines that wait, in no order.
    pub(crate) fn lines(&self) -> impl Iterator<Item = u64> {
        self.owners.values().flat_map(|queue| &queue.rows).map(|row| row.line)
    }

    /// Adds a row, which comes after all earlier ones.
    pub(crate) fn push(&mut self, row: Row) {
        let owner = row.owner.clone();
        self.heap += row.heap();
        // Room for one row: with many owners, most have no second one.
        let queue = self.owners.entry(owner.clone()).or_insert_with(|| {
            self.capacity += 1;
            OwnerQueue { rows: VecDeque::with_capacity(1), under_way: false }
        });
        self.capacity -= queue.rows.capacity();
        queue.rows.push_back(row);
        self.capacity += queue.rows.capacity();
        self.rows += 1;
        if !queue.under_way {
            self.wait(&owner, 1);
        }
    }

    /// The owner, who has none under way, waits with the rows that it has, of which `new` are new.
    fn wait(&mut self, owner: &OwnerId, new: usize) {
        let room = self.room(owner);
        let Some(OwnerQueue { rows, .. }) = self.owners.get(owner) else { return };
        let before = rows.len() - new;
        for (waiting, least) in self.waiting.iter_mut().zip([1, room, BATCH]) {
            if before < least && least <= rows.len() {
                waiting.insert(rows[0].line, owner.clone());
            }
        }
    }

    /// The first of these that waits, and is not less than `least`: a whole batch; rows that fill a page; the
    /// rows of the owner that has waited longest. The owner gives no more before [`PendingRows::done`].
    pub(crate) fn take(&mut self, least: Least) -> Option<RowBatch> {
        let few = self.owners.len() <= FEW;
        // Of few owners, the one that has waited longest gives all its rows, even if they fill no page.
        let skips_pages = few && least == Least::Row;
        let (&first, owner) = [Least::Batch, Least::Page, Least::Row]
            .into_iter()
            .filter(|much| *much >= least && !(skips_pages && *much == Least::Page))
            .find_map(|much| self.waiting[much as usize].first_key_value())?;
        let owner = owner.clone();
        self.waiting.iter_mut().for_each(|waiting| drop(waiting.remove(&first)));
        let room = self.room(&owner);
        let queue = self.owners.get_mut(&owner)?;
        queue.under_way = true;
        // It ends where a page does: the next one then begins with a new page, and its pages are inserted.
        let batch = BATCH - BATCH.saturating_sub(room) % self.page_size.get();
        let most = if few || queue.rows.len() >= OWN_COMMAND { batch } else { room };
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
        self.heap -= rows.iter().map(Row::heap).sum::<usize>();
        let so_far = self.keyed.remove(&owner);
        Some(RowBatch { owner, rows, so_far })
    }

    /// The owner's batch has ended. The history now ends with `last`, if that is known.
    pub(crate) fn done(&mut self, owner: &OwnerId, last: Option<Seq>) {
        match last.map(|last| (self.page_size.index_of(last) + 1) % self.page_size.get()) {
            Some(filled) => remember(&mut self.filled, owner, filled as u8, MOST_REMEMBERED),
            None => drop(self.filled.remove(owner)),
        }
        let Some(queue) = self.owners.get_mut(owner) else { return };
        queue.under_way = false;
        if !queue.rows.is_empty() {
            let all = queue.rows.len();
            return self.wait(owner, all);
        }
        self.capacity -= queue.rows.capacity();
        self.owners.remove(owner);
        // Shrinking moves the rest, so it waits until the rest is small.
        if self.owners.capacity() > FEW.max(8 * self.owners.len()) {
            self.owners.shrink_to(2 * self.owners.len());
        }
    }

    /// Remembers the progress of the owner's keyed upload, or of its rows with source keys. Without it a
    /// search begins where the upload did, which only takes longer.
    pub(crate) fn keep(&mut self, owner: &OwnerId, so_far: SoFar) {
        remember(&mut self.keyed, owner, so_far, MOST_KEYED);
    }

    /// Forgets how full last pages are, and most progress. Batches may then end in worse places, and searches
    /// begin earlier.
    pub(crate) fn forget(&mut self) {
        self.filled = HashMap::new();
        let mut kept = 0..FEW_KEYED;
        // Those with rows that wait need it next.
        self.keyed.retain(|owner, _| self.owners.contains_key(owner) && kept.next().is_some());
        self.keyed.shrink_to_fit();
    }

    /// Room on the owner's last page, in items; a whole page if that is unknown.
    fn room(&self, owner: &OwnerId) -> usize {
        self.page_size.get() - self.filled.get(owner).copied().map_or(0, usize::from)
    }
}

/// Remembers something of an owner. If that makes more than `most` owners, any other is forgotten.
fn remember<V>(known: &mut HashMap<OwnerId, V>, owner: &OwnerId, value: V, most: usize) {
    if known.len() >= most
        && !known.contains_key(owner)
        && let Some(other) = known.keys().next().cloned()
    {
        known.remove(&other);
    }
    known.insert(owner.clone(), value);
}

/// Memory of the table of a map, in bytes: it is at most 7/8 full, and has one extra byte for each place.
fn table<K, V>(map: &HashMap<K, V>) -> usize {
    map.capacity() * 8 / 7 * (size_of::<(K, V)>() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::domain::Instant;
    use pagebucket_model::item::Item;

    fn row(line: u64, owner: u64) -> Row {
        Row {
            line,
            size: 1,
            owner: OwnerId::Integer(owner),
            draft: Item::new(Default::default(), Instant::MIN).into(),
            source_key: None,
        }
    }

    fn id(owner: &OwnerId) -> u64 {
        let OwnerId::Integer(id) = owner else { unreachable!() };
        *id
    }

    fn lines(batch: Option<RowBatch>) -> (u64, Vec<u64>) {
        let batch = batch.unwrap();
        (id(&batch.owner), batch.rows.iter().map(|row| row.line).collect())
    }

    #[test]
    fn who_has_waited_longest_goes_first_and_alone() {
        let mut pending = PendingRows::of(PageSize::DEFAULT);
        for (line, owner) in [(1, 5), (2, 9), (3, 5), (4, 7)] {
            pending.push(row(line, owner));
        }
        assert!(pending.take(Least::Batch).is_none());
        assert_eq!(lines(pending.take(Least::Row)), (5, vec![1, 3]));
        pending.push(row(5, 5));
        assert_eq!(lines(pending.take(Least::Row)), (9, vec![2]));
        assert_eq!(pending.lines().min(), Some(4));
        assert_eq!(lines(pending.take(Least::Row)), (7, vec![4]));
        // Owner 5 is under way.
        assert!(pending.take(Least::Row).is_none());
        assert_eq!(pending.len(), 1);
        pending.done(&OwnerId::Integer(5), None);
        assert_eq!(lines(pending.take(Least::Row)), (5, vec![5]));
        for owner in [5, 7, 9] {
            pending.done(&OwnerId::Integer(owner), None);
        }
        assert!(pending.owners.is_empty() && pending.waiting[0].is_empty() && pending.len() == 0);
    }

    #[test]
    fn whole_batches_go_before_all_others() {
        let mut pending = PendingRows::of(PageSize::DEFAULT);
        pending.push(row(1, 1));
        for line in 2..=2_501 {
            pending.push(row(line, 2));
        }
        let (owner, batch) = lines(pending.take(Least::Batch));
        assert_eq!((owner, batch.len(), batch[0]), (2, BATCH, 2));
        assert!(pending.take(Least::Batch).is_none());
        pending.done(&OwnerId::Integer(2), None);
        assert_eq!(lines(pending.take(Least::Batch)).1[0], 1_002);
        pending.done(&OwnerId::Integer(2), None);
        assert!(pending.take(Least::Batch).is_none());
        assert_eq!(lines(pending.take(Least::Row)), (1, vec![1]));
        assert_eq!(lines(pending.take(Least::Row)).1.len(), 500);
    }

    #[test]
    fn of_many_owners_a_batch_ends_where_a_page_does() {
        let mut pending = PendingRows::of(PageSize::DEFAULT);
        let owners = FEW as u64 + 3;
        let mut line = 0;
        let mut push = |pending: &mut PendingRows, owner, rows| {
            for _ in 0..rows {
                line += 1;
                pending.push(row(line, owner));
            }
        };
        for owner in 1..=owners {
            push(&mut pending, owner, if owner == 3 { 25 } else { 4 });
        }
        assert!(pending.take(Least::Batch).is_none());
        let of = |batch: Option<RowBatch>| batch.map(|batch| (id(&batch.owner), batch.rows.len()));
        // Those that fill a page come first.
        assert_eq!(of(pending.take(Least::Row)), Some((3, 10)));
        assert_eq!(of(pending.take(Least::Page)), None);
        assert_eq!(of(pending.take(Least::Row)), Some((1, 4)));
        pending.done(&OwnerId::Integer(1), Seq::new(4).ok());
        push(&mut pending, 1, 5);
        assert_eq!(of(pending.take(Least::Page)), None);
        push(&mut pending, 1, 1);
        assert_eq!(of(pending.take(Least::Page)), Some((1, 6)));
        // Another writer has filled the page.
        pending.done(&OwnerId::Integer(3), Seq::new(17).ok());
        assert_eq!(of(pending.take(Least::Page)), Some((3, 3)));
        pending.done(&OwnerId::Integer(3), Seq::new(20).ok());
        assert_eq!(of(pending.take(Least::Page)), Some((3, 10)));
        pending.done(&OwnerId::Integer(3), Seq::new(30).ok());
        // Enough of one owner's goes as one.
        push(&mut pending, 3, OWN_COMMAND as u64);
        assert_eq!(of(pending.take(Least::Page)), Some((3, OWN_COMMAND + 2)));
        // With few left, each gives all it has.
        pending.done(&OwnerId::Integer(3), None);
        while pending.owners.len() > FEW {
            let batch = pending.take(Least::Row).unwrap();
            assert!(batch.rows.len() <= 10 || batch.owner == OwnerId::Integer(3));
            pending.done(&batch.owner, None);
        }
        push(&mut pending, owners, 30);
        assert_eq!(of(pending.take(Least::Page)), Some((owners, 34)));
    }

    #[test]
    fn what_it_takes_is_what_waits() {
        let mut pending = PendingRows::of(PageSize::DEFAULT);
        let owners = 10_000;
        for line in 1..=owners {
            pending.push(row(line, line));
        }
        // A row, its owner, and where it is in the order.
        let each = pending.bytes() / owners as usize;
        assert!((size_of::<Row>() + BY_LINE..3 * size_of::<Row>()).contains(&each), "{each} bytes a row");
        while let Some(batch) = pending.take(Least::Row) {
            pending.done(&batch.owner, Some(Seq::FIRST));
        }
        assert!(pending.bytes() > 10 * owners as usize, "it remembers last pages");
        pending.forget();
        assert!(pending.bytes() < 10_000, "{} bytes for nothing", pending.bytes());
        // One owner of many rows.
        for line in 1..=5_000 {
            pending.push(row(line, 1));
        }
        while let Some(batch) = pending.take(Least::Batch) {
            pending.done(&batch.owner, None);
        }
        assert!(pending.len() == 0 && pending.bytes() < 10_000, "{} bytes for nothing", pending.bytes());
    }
}
