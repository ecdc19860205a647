//! Checks the buckets of one owner, one after the other.

use std::collections::HashMap;

use mongodb::bson::{Bson, doc};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{PageNumber, PageSize};

use super::bucket_check::Seen;
use super::finding::{Finding, Mend, Rule};
use super::key_share::{KeyShare, MOST_KEYS};
use super::kind::DocumentKind;
use crate::mongo::values::{int64, whole_number};
use crate::store::buckets::identity::ItemKey;

/// Gaps of one owner that are remembered; more are counted as one.
const MOST_GAPS: usize = 1_000;

/// Reads the buckets of one owner in the order of `_id`.
#[derive(Debug)]
pub(crate) struct Checker {
    size: PageSize,
    /// The number that the next bucket should have.
    next: u64,
    /// The first page that stays, directly after a marker of the beginning: the pages before it are there
    /// until they are deleted.
    stays: Option<u64>,
    beginning: Option<Seen>,
    /// Pages before the first that stays, though the marker says that all of them are deleted.
    left_behind: Vec<Finding>,
    /// Whether the owner is erased, and then whether its tombstone is swept.
    erased: Option<bool>,
    /// What is wrong with the tombstone.
    of_tombstone: Vec<Finding>,
    /// Missing pages, from and to, with the `_id` of the bucket after them.
    gaps: Vec<(u64, u64, Seen)>,
    /// The last bucket, with the number that it has or should have.
    previous: Option<(Seen, u64)>,
    /// Buckets of items whose `_id` has no place in the order.
    misplaced: Vec<Seen>,
    /// Buckets without a number, since the last bucket with one.
    unnumbered: Vec<Unnumbered>,
    share: KeyShare,
    keys: HashMap<ItemKey, u64>,
    /// Whether there were more keys than are compared at once.
    too_many_keys: bool,
    findings: Vec<Finding>,
}

/// A bucket without a number. Its number is certain only if that of the next bucket fits. That of the last
/// bucket is not: a page before it may be missing too.
#[derive(Debug)]
struct Unnumbered {
    /// The index of the finding.
    finding: usize,
    /// The number that its place gives it.
    number: u64,
    /// What it has instead.
    stored: Option<Bson>,
}

impl Checker {
    pub(crate) fn new(definition: &Definition, share: KeyShare) -> Self {
        Self {
            size: definition.page_size,
            next: 1,
            stays: None,
            beginning: None,
            left_behind: Vec::new(),
            erased: None,
            of_tombstone: Vec::new(),
            gaps: Vec::new(),
            previous: None,
            misplaced: Vec::new(),
            unnumbered: Vec::new(),
            share,
            keys: HashMap::new(),
            too_many_keys: false,
            findings: Vec::new(),
        }
    }

    /// The next bucket.
    pub(crate) fn bucket(&mut self, mut seen: Seen) {
        let faults = seen.take_findings();
        match seen.kind {
            DocumentKind::Tombstone { swept } => {
                self.erased = Some(swept);
                return self.of_tombstone.extend(faults);
            }
            DocumentKind::Beginning { first_page, .. } if self.next == 1 && self.beginning.is_none() => {
                self.findings.extend(faults);
                // If it does not say which page is the first, that which is there is.
                self.next = first_page.map_or(2, PageNumber::get);
                self.stays = Some(first_page.map_or(u64::MAX, PageNumber::get));
                return self.beginning = Some(seen);
            }
            DocumentKind::Beginning { .. } => {
                self.findings.extend(faults);
                let what = "is a marker of the beginning, and not at the beginning".to_owned();
                return self.findings.push(seen.finding(Rule::Invariant(3), what, Mend::ORDER));
            }
            DocumentKind::Page if !seen.is_placed => {
                self.findings.extend(faults);
                return self.misplaced.push(seen);
            }
            DocumentKind::Page => {}
        }
        if let Some((previous, _)) = self.previous.take()
            && previous.items < self.size.get()
        {
            let what = format!("holds {} of {} items, and is not the last", previous.items, self.size.get());
            self.findings.push(previous.finding(Rule::Invariant(2), what, Mend::ITEMS));
        }
        let page = self.number(&seen);
        self.findings.extend(faults);
        if let Some(DocumentKind::Beginning { first_page: Some(first), swept: true }) = self.beginning_kind()
            && page < first.get()
        {
            let what = format!("is left, though the pages before page {first} are deleted");
            self.left_behind.push(seen.finding(Rule::Invariant(1), what, Mend::RETIRED));
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
            self.next = page.get().clamp(2, stays.max(2).saturating_add(before));
            if self.next < 2 + before {
                self.unnumbered.clear();
            }
            for (Unnumbered { finding, number, .. }, counted) in self.unnumbered.iter_mut().rev().zip(1..) {
                *number = self.next - counted;
                self.findings[*finding].page = PageNumber::new(*number).ok();
            }
        }
        let expected = self.next;
        let Some(page) = seen.page.map(PageNumber::get) else {
            let what = "page is missing, or no positive int64".to_owned();
            let mut finding = seen.finding(Rule::Invariant(1), what, Mend::ORDER);
            finding.page = PageNumber::new(expected).ok();
            let stored = seen.stored_page.clone();
            self.unnumbered.push(Unnumbered { finding: self.findings.len(), number: expected, stored });
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
        for Unnumbered { finding, number, stored } in self.unnumbered.drain(..) {
            let is_it = |stored: Bson| whole_number(&stored) == Some(int64(number));
            self.findings[finding].mend = match stored.is_none_or(is_it) {
                true => Mend::Set(doc! { "page": int64(number) }),
                false => Mend::NUMBER,
            };
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
    pub(crate) fn is_suspect(&self) -> bool {
        if let Some(swept) = self.erased {
            let is_left = self.previous.is_some() || !self.misplaced.is_empty();
            return !self.of_tombstone.is_empty() || swept && is_left;
        }
        let is_broken = [&self.findings, &self.left_behind].iter().any(|found| !found.is_empty());
        let is_broken = is_broken || !self.gaps.is_empty();
        self.too_many_keys || is_broken || self.too_late_a_beginning().is_some()
    }

    fn beginning_kind(&self) -> Option<DocumentKind> {
        self.beginning.as_ref().map(|marker| marker.kind)
    }

    /// The finding that the marker of the beginning says that all pages are deleted. The last page always
    /// stays.
    fn too_late_a_beginning(&self) -> Option<Finding> {
        let Some(DocumentKind::Beginning { first_page: Some(first), .. }) = self.beginning_kind() else {
            return None;
        };
        let misplaced = self.misplaced.iter().filter_map(|seen| seen.page).map(PageNumber::get).max();
        let last = self.previous.as_ref().map(|(_, page)| *page).max(misplaced)?;
        // Without the number of the last page: appends may raise it between two readings.
        let what = format!("firstPage is {first}, after the last page");
        let marker = self.beginning.as_ref().filter(|_| last < first.get())?;
        Some(marker.finding(Rule::Invariant(1), what, Mend::DELETED))
    }

    /// All findings, in the order of `_id`.
    pub(crate) fn end(mut self) -> Vec<Finding> {
        if let Some(swept) = self.erased {
            let what = || "is left, though its owner is erased".to_owned();
            let left = self.previous.map(|(left, _)| left).or(self.misplaced.pop()).filter(|_| swept);
            let left = left.map(|left| left.finding(Rule::Model, what(), Mend::ERASED));
            return left.into_iter().chain(self.of_tombstone).collect();
        }
        match self.too_late_a_beginning() {
            Some(finding) => self.findings.push(finding),
            None => self.findings.append(&mut self.left_behind),
        }
        for page in std::mem::take(&mut self.misplaced).iter().filter_map(|seen| seen.page) {
            self.fill(page.get());
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
