//! The lines of a keyed upload, and the keys under which they are stored.
//!
//! A request's items are all valid and are stored in order without omissions. A line of an upload may be
//! invalid in one attempt and valid in another, and an attempt does not know which lines were valid in the
//! previous one. So a line's key contains the upload's tag and the line's number ([`Tag`]). A search that
//! finds a stored line knows how far the upload had come, even if the line is not one of the lines that it
//! searches for.
//!
//! *Order*: the lines of an upload are stored in the order of their numbers. A line is appended only if
//! everything before its place has been examined and no line of the upload there has an equal or greater
//! number. So no line is ever stored twice, and after the append the order still holds.
//!
//! It follows what a search decides about its lines. Those with numbers up to the greatest number that it has
//! found are done: each is either found or permanently skipped. The lines after that may be appended.

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{IdempotencyKey, OwnerId};
use sha2::Digest;

use crate::store::buckets::identity::{ItemKey, begin};

/// Identifies an upload among the items of one owner: the first 8 bytes of SHA-256 of owner and key.
/// With 64 bits and 10^9 keyed items of one owner, an item of another request has the same bytes with a
/// probability of 10^-10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag([u8; Tag::LEN]);

impl Tag {
    const LEN: usize = 8;

    pub(crate) fn new(definition: &Definition, owner: &OwnerId, key: &IdempotencyKey) -> Self {
        let digest = begin(definition, b"upload", owner).chain_update(key.as_str()).finalize();
        Self(*digest.first_chunk().expect("a digest has 32 bytes"))
    }

    /// The key of a line.
    pub(crate) fn key(self, number: u32) -> ItemKey {
        let mut key = [0; ItemKey::LEN];
        key[..Self::LEN].copy_from_slice(&self.0);
        key[Self::LEN..].copy_from_slice(&number.to_be_bytes());
        ItemKey(key)
    }

    /// The line number in this key, if the key belongs to this upload.
    pub(crate) fn number(self, key: ItemKey) -> Option<u32> {
        let number = key.0.strip_prefix(&self.0)?;
        number.try_into().ok().map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, LazyLock};

    use mongodb::bson::rawdoc;

    use super::*;
    use crate::append::keys::KeySearch;
    use crate::append::placed::LineRefusal;
    use pagebucket_model::domain::{Instant, Seq, SeqRange};
    use pagebucket_model::item::Item;

    fn tag() -> Tag {
        static TAG: LazyLock<Tag> = LazyLock::new(|| {
            let key = IdempotencyKey::parse(b"k").unwrap();
            Tag::new(&Definition::trades(), &OwnerId::Integer(7), &key)
        });
        *TAG
    }

    /// The item of a line. Its quantity distinguishes it from those of other lines with the same number.
    fn item(qty: u64) -> Item {
        Item::new(rawdoc! { "qty": qty as i64 }, Instant::MIN)
    }

    fn qty_of(item: &Item) -> u64 {
        item.document().get_i64("qty").unwrap() as u64
    }

    /// A history as the quantities and keys of its items.
    type StoredLines = Vec<(u64, Option<ItemKey>)>;

    /// One attempt with lines of a number and a quantity, in chunks of `chunk` lines. Returns the end of each
    /// line. `interrupt` is called before the rest of each chunk is appended, and may act as another attempt.
    fn attempt(
        history: &mut StoredLines,
        lines: &[(u32, u64)],
        chunk: usize,
        mut interrupt: impl FnMut(&mut StoredLines),
    ) -> Vec<Result<u64, LineRefusal>> {
        let mut ends = Vec::new();
        let mut looked = 0;
        for chunk in lines.chunks(chunk) {
            let numbers = chunk.iter().map(|(number, _)| *number).collect();
            let items: Arc<[_]> = chunk.iter().map(|(_, qty)| item(*qty)).collect();
            let mut search = KeySearch::of_lines(tag(), numbers, Arc::clone(&items), looked);
            let look = |search: &mut KeySearch, history: &StoredLines| {
                while !search.is_over() && search.looked() < history.len() as u64 {
                    let (qty, key) = history[search.looked() as usize];
                    search.look(key, |item, _| qty_of(item) == qty);
                }
            };
            look(&mut search, history);
            interrupt(history);
            // The append compares its position: the search continues over what was added in between.
            look(&mut search, history);
            if !search.is_over() {
                assert!(search.covers(history.len() as u64));
                for index in search.placed.count..items.len() {
                    history.push((qty_of(&items[index]), search.key(index)));
                    let seq = Seq::new(history.len() as u64).unwrap();
                    search.placed.push(SeqRange { first: seq, last: seq });
                }
                search.known_through(history.len() as u64);
            }
            looked = search.looked();
            let placed = search.placed;
            let seqs = placed.ranges.iter().flat_map(|range| range.first.get()..=range.last.get());
            ends.extend(placed.ends(seqs.map(|seq| Seq::new(seq).unwrap())).map(|end| end.map(Seq::get)));
        }
        ends
    }

    fn quantities(history: &StoredLines) -> Vec<u64> {
        history.iter().map(|(qty, _)| *qty).collect()
    }

    #[test]
    fn a_key_identifies_upload_and_line() {
        for number in [0, 1, 255, 256, u32::MAX] {
            assert_eq!(tag().number(tag().key(number)), Some(number));
        }
        let other =
            Tag::new(&Definition::trades(), &OwnerId::Integer(8), &IdempotencyKey::parse(b"k").unwrap());
        assert_eq!(tag().number(other.key(1)), None);
    }

    #[test]
    fn an_upload_interrupted_anywhere_continues_without_doubles() {
        let lines: Vec<_> = (1..=7).map(|number| (number, u64::from(number) * 10)).collect();
        for chunk in 1..=8 {
            for cut in 0..=lines.len() {
                let mut history = vec![(1, None), (2, Some(ItemKey([9; ItemKey::LEN])))];
                attempt(&mut history, &lines[..cut], 3, |_| {});
                history.push((3, None));
                let ends = attempt(&mut history, &lines, chunk, |_| {});
                let (first, second) = lines.split_at(cut);
                let qty = |line: &(u32, u64)| line.1;
                let expected = [1, 2].into_iter().chain(first.iter().map(qty)).chain([3]);
                let expected: Vec<_> = expected.chain(second.iter().map(qty)).collect();
                assert_eq!(quantities(&history), expected, "{chunk} {cut}");
                assert_eq!(ends.len(), lines.len());
                for (end, line) in ends.into_iter().zip(&lines) {
                    assert_eq!(history[end.unwrap() as usize - 1].0, line.1);
                }
            }
        }
    }

    #[test]
    fn a_line_corrected_in_the_repeat_never_causes_later_lines_to_be_stored_twice() {
        let all: Vec<_> = (1..=8).map(|number| (number, u64::from(number) * 10)).collect();
        // Every set of lines that were invalid the first time, every interruption, every size of chunks.
        for bad in 0_u32..1 << all.len() {
            let first: Vec<_> =
                all.iter().copied().filter(|(number, _)| bad & (1 << (number - 1)) == 0).collect();
            for cut in 0..=first.len() {
                for chunk in [1, 2, 3, 8] {
                    let mut history = StoredLines::new();
                    attempt(&mut history, &first[..cut], 2, |_| {});
                    let stored = quantities(&history);
                    let ends = attempt(&mut history, &all, chunk, |_| {});
                    let last = first[..cut].last().map_or(0, |line| line.0);
                    // Lines that were skipped are never stored; later lines are.
                    let later = all.iter().filter(|line| line.0 > last).map(|line| line.1);
                    let expected: Vec<_> = stored.iter().copied().chain(later).collect();
                    assert_eq!(quantities(&history), expected, "{bad:b} {cut} {chunk}");
                    for (end, line) in ends.into_iter().zip(&all) {
                        let index = expected.iter().position(|qty| *qty == line.1);
                        assert_eq!(end.ok(), index.map(|index| index as u64 + 1));
                    }
                }
            }
        }
    }

    #[test]
    fn a_line_that_differs_is_refused_alone() {
        let mut history = StoredLines::new();
        attempt(&mut history, &[(1, 10), (2, 20), (4, 40)], 10, |_| {});
        let ends = attempt(&mut history, &[(1, 10), (2, 21), (3, 30), (4, 40), (5, 50)], 2, |_| {});
        assert_eq!(ends, [Ok(1), Err(LineRefusal::Differs), Err(LineRefusal::OutOfOrder), Ok(3), Ok(4)]);
        assert_eq!(quantities(&history), [10, 20, 40, 50]);
    }

    #[test]
    fn attempts_at_once_store_each_line_once() {
        let lines: Vec<_> = (1..=6).map(|number| (number, u64::from(number) * 10)).collect();
        // Before each chunk of this attempt, another attempt stores up to `ahead` more lines in its own
        // chunks.
        for ahead in 0..=3 {
            for chunk in 1..=6 {
                let (mut history, mut turn) = (StoredLines::new(), 0);
                let ends = attempt(&mut history, &lines, chunk, |history| {
                    turn += ahead;
                    attempt(history, &lines[..turn.min(lines.len())], 2, |_| {});
                });
                assert_eq!(quantities(&history), [10, 20, 30, 40, 50, 60], "{ahead} {chunk}");
                assert_eq!(ends, (1..=6).map(Ok).collect::<Vec<_>>());
            }
        }
    }
}
