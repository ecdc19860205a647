use std::collections::HashMap;

use mongodb::bson::doc;

use super::finding::{Finding, Mend, Rule};
use super::seen::Seen;
use crate::definition::Definition;
use crate::domain::{PageNumber, PageSize};
use crate::store::history::dedup::ItemKey;

/// Keys of one owner that are compared in one reading. Each takes 40 bytes or less.
const MOST_KEYS: u64 = 1_000_000;

/// Gaps of one owner that are remembered; more are counted as one.
const MOST_GAPS: usize = 1_000;

/// The keys that one reading compares: those whose first byte has a given remainder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyShare {
    of: u64,
    index: u64,
}

impl KeyShare {
    pub(super) const FIRST: Self = Self { of: 1, index: 0 };

    /// The first share of the keys, for a history of this many items.
    pub(super) fn of_items(items: u64) -> Self {
        Self { of: items.div_ceil(MOST_KEYS).clamp(1, 256), index: 0 }
    }

    pub(super) fn next(self) -> Option<Self> {
        Some(Self { index: self.index + 1, ..self }).filter(|next| next.index < self.of)
    }

    pub(super) fn is_first(self) -> bool {
        self.index == 0
    }

    fn has(self, key: ItemKey) -> bool {
        u64::from(key.last_byte()) % self.of == self.index
    }
}

/// Reads the buckets of one owner in the order of `_id`.
#[derive(Debug)]
pub(super) struct Checker {
    size: PageSize,
    /// The number that the next bucket should have.
    next: u64,
    /// The first page that stays, directly after a marker of the beginning: the pages before it are there until they are deleted.
    stays: Option<u64>,
    /// Whether the owner is erased, and then whether its tombstone is swept.
    erased: Option<bool>,
    /// Missing pages, from and to, with the `_id` of the bucket after them.
    gaps: Vec<(u64, u64, Seen)>,
    /// The last bucket, with the number that it has or should have.
    previous: Option<(Seen, u64)>,
    /// Findings about buckets without a number, since the last bucket with one: their number is certain only if the next
    /// bucket's fits. That of the last bucket is not: a page before it may be missing too.
    unnumbered: Vec<(usize, u64)>,
    share: KeyShare,
    keys: HashMap<ItemKey, u64>,
    /// Whether there were more keys than are compared at once.
    too_many_keys: bool,
    findings: Vec<Finding>,
}

impl Checker {
    pub(super) fn new(definition: &Definition, share: KeyShare) -> Self {
        let (size, next) = (definition.page_size, 1);
        let (stays, erased, gaps, previous, unnumbered, keys, too_many_keys, findings) = Default::default();
        Self { size, next, stays, erased, gaps, previous, unnumbered, share, keys, too_many_keys, findings }
    }

    /// The next bucket.
    pub(super) fn bucket(&mut self, mut seen: Seen) {
        match seen.marker {
            Some(marker) if marker.erased => return self.erased = Some(marker.swept),
            Some(marker) if self.next == 1 => {
                self.next = marker.first_page.get();
                self.stays = Some(self.next);
                return;
            }
            Some(_) => {
                let what = "is a marker of the beginning, and not at the beginning".to_owned();
                return self.findings.push(seen.finding(Rule::Invariant(3), what, Mend::ORDER));
            }
            None => {}
        }
        if let Some((previous, _)) = self.previous.take()
            && previous.items < self.size.get()
        {
            let what = format!("holds {} of {} items, and is not the last", previous.items, self.size.get());
            self.findings.push(previous.finding(Rule::Invariant(2), what, Mend::ITEMS));
        }
        let page = self.number(&seen);
        for (rule, what, mend) in std::mem::take(&mut seen.faults) {
            self.findings.push(seen.finding(rule, what, mend));
        }
        self.compare_keys(&seen, page);
        self.previous = Some((seen, page));
    }

    /// Checks the bucket's number, and returns the number that it has or should have.
    fn number(&mut self, seen: &Seen) -> u64 {
        if let Some(page) = seen.page
            && let Some(stays) = self.stays.take()
        {
            // Buckets without a number before it have the numbers before its own.
            let before = self.unnumbered.len() as u64;
            self.next = page.get().clamp(2, stays.max(2) + before);
            if self.next < 2 + before {
                self.unnumbered.clear();
            }
            for ((finding, number), counted) in self.unnumbered.iter_mut().rev().zip(1..) {
                *number = self.next - counted;
                self.findings[*finding].page = PageNumber::new(*number).ok();
            }
        }
        let expected = self.next;
        let Some(page) = seen.page.map(PageNumber::get) else {
            let what = "page is missing, or no positive int64".to_owned();
            let mut finding = seen.finding(Rule::Invariant(1), what, Mend::ORDER);
            finding.page = PageNumber::new(expected).ok();
            self.unnumbered.push((self.findings.len(), expected));
            self.findings.push(finding);
            self.next = expected + 1;
            return expected;
        };
        if page == expected {
            self.numbers_are_certain();
        }
        self.unnumbered.clear();
        if page > expected {
            if self.gaps.len() < MOST_GAPS {
                self.gaps.push((expected, page - 1, seen.clone()));
            }
            self.next = page + 1;
        } else if page < expected {
            if self.fill(page) {
                let what = format!("is page {page}, after page {} in the order of _id", expected - 1);
                self.findings.push(seen.finding(Rule::Invariant(3), what, Mend::ORDER));
            } else {
                let what = format!("is page {page} again, after page {}", expected - 1);
                self.findings.push(seen.finding(Rule::Invariant(1), what, Mend::ORDER));
            }
        } else {
            self.next = page + 1;
        }
        page
    }

    /// The buckets without a number have the one that their place gives them.
    fn numbers_are_certain(&mut self) {
        for (finding, page) in self.unnumbered.drain(..) {
            self.findings[finding].mend = Mend::Set(doc! { "page": page as i64 });
        }
    }

    /// Takes a page out of the gaps; false if it is in none.
    fn fill(&mut self, page: u64) -> bool {
        let Some(at) = self.gaps.iter().position(|(from, to, _)| (*from..=*to).contains(&page)) else {
            return false;
        };
        let (from, to, after) = self.gaps.remove(at);
        if page < to {
            self.gaps.insert(at, (page + 1, to, after.clone()));
        }
        if from < page {
            self.gaps.insert(at, (from, page - 1, after));
        }
        true
    }

    fn compare_keys(&mut self, seen: &Seen, page: u64) {
        for &(place, key) in seen.keys.iter().filter(|(_, key)| self.share.has(*key)) {
            if self.keys.len() as u64 >= 2 * MOST_KEYS {
                self.too_many_keys = true;
                return;
            }
            let seq = (page - 1).saturating_mul(self.size.get() as u64) + place as u64 + 1;
            if let Some(other) = self.keys.insert(key, seq) {
                let what = format!("its item {seq} has the key of item {other}: it is stored twice");
                let finding = seen.finding(Rule::Invariant(6), what, Mend::TWICE);
                self.findings.push(Finding { is_repeat: true, ..finding });
            }
        }
    }

    /// Whether the history must be read again, alone.
    pub(super) fn is_suspect(&self) -> bool {
        if let Some(swept) = self.erased {
            return swept && self.previous.is_some();
        }
        self.too_many_keys || !self.findings.is_empty() || !self.gaps.is_empty()
    }

    /// All findings, in the order of `_id`.
    pub(super) fn end(mut self) -> Vec<Finding> {
        if let Some(swept) = self.erased {
            let what = || "is left, though its owner is erased".to_owned();
            let left = self.previous.filter(|_| swept);
            let left = left.map(|(left, _)| left.finding(Rule::Model, what(), Mend::ERASED));
            return left.into_iter().collect();
        }
        for (from, to, after) in std::mem::take(&mut self.gaps) {
            let what = match from == to {
                true => format!("page {from} is missing before it"),
                false => format!("pages {from} to {to} are missing before it"),
            };
            let mut finding = after.finding(Rule::Invariant(1), what, Mend::LOST);
            finding.page = PageNumber::new(from).ok();
            self.findings.push(finding);
        }
        self.findings.sort_by(|one, other| one.id.cmp(&other.id));
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key is compared in one reading, so that two equal ones meet.
    #[test]
    fn the_readings_of_a_long_history_share_its_keys() {
        for items in [0, 1, MOST_KEYS, MOST_KEYS + 1, 3_000_000, u64::MAX] {
            let shares: Vec<_> =
                std::iter::successors(Some(KeyShare::of_items(items)), |share| share.next()).collect();
            assert_eq!(shares.len() as u64, items.div_ceil(MOST_KEYS).clamp(1, 256));
            assert_eq!(shares.iter().filter(|share| share.is_first()).count(), 1);
            // Those of one upload differ in their last bytes alone.
            let line = |number: u32| {
                let number = number.to_be_bytes();
                ItemKey::read(&[&[7; 8][..], &number].concat()).unwrap()
            };
            for share in &shares {
                assert!((0..256).any(|number| share.has(line(number))), "{items}: {share:?}");
            }
            for byte in 0..=255 {
                let key = ItemKey::read(&[byte; ItemKey::LEN]).unwrap();
                assert_eq!(shares.iter().filter(|share| share.has(key)).count(), 1, "{items}: {byte}");
            }
        }
    }
}
