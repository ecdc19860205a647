//! Holds what clients were told and readers were shown against what is stored.
//!
//! It knows nothing of the store: only what an answer means. Invariants 1 to 3 and 5, which are about
//! buckets, are checked where these are read (`harness::history`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::record::{Item, Log, Reply, Seen, Sight, Stored, Told, Wanted, seqs};

/// The items of each owner at the end, in order of `seq`.
pub type Histories = BTreeMap<u64, Vec<Item>>;

/// One way in which a promise was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: Kind,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Acknowledged, and nowhere.
    Lost,
    /// There more than once.
    Doubled,
    /// Acknowledged at a `seq` where something else is, or with a date that it does not have.
    Misplaced,
    /// Stored, though nobody asked for it, or though every answer said that it is not.
    Unasked,
    /// An answer that does not add up in itself: ranges, totals.
    Absurd,
    /// A repeat was answered otherwise than the first time.
    ReplayDiffers,
    /// Who stores a request says so, and nobody else.
    ReplayedWrongly,
    /// An answer other than 201 and 503.
    Refused,
    /// A page that was shown is not the beginning of what is there.
    PageChanged,
    /// A total that was shown was greater.
    TotalShrank,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

/// All that is wrong.
pub fn judge(log: &Log, stored: &Histories, page_size: u64) -> Vec<Finding> {
    let mut judge = Judge { page_size, stored, places: BTreeMap::new(), findings: Vec::new() };
    for (owner, items) in stored {
        for (seq, item) in (1..).zip(items) {
            judge.places.entry(item.number).or_default().push((*owner, seq));
        }
    }
    judge.each_item_is_there_once(&log.wanted);
    for wanted in &log.wanted {
        judge.what_was_acknowledged_is_stored(wanted);
        if wanted.key.is_some() {
            judge.replays_agree(wanted);
        }
    }
    log.seen.iter().for_each(|seen| judge.what_was_seen_is_still_there(seen));
    judge.totals_never_shrink(&log.seen);
    judge.findings
}

struct Judge<'a> {
    page_size: u64,
    stored: &'a Histories,
    /// By quantity.
    places: BTreeMap<i64, Vec<(u64, u64)>>,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn find(&mut self, kind: Kind, what: String) {
        self.findings.push(Finding { kind, what });
    }

    fn each_item_is_there_once(&mut self, wanted: &[Wanted]) {
        let mut allowed = BTreeSet::new();
        for wanted in wanted {
            let possible = wanted.told.iter().map(|told| match &told.reply {
                Reply::Stored(_) | Reply::Silence => wanted.count,
                Reply::Again { ranges, unknown, .. } => seqs(ranges).count() as u64 + unknown,
                Reply::Other(_) => 0,
            });
            let possible = possible.max().unwrap_or(0).min(wanted.count);
            allowed
                .extend((wanted.first..wanted.first + possible).map(|number| (wanted.owner, number as i64)));
        }
        for (number, places) in self.places.clone() {
            if places.len() > 1 {
                self.find(Kind::Doubled, format!("item {number} is at {places:?} (owner, seq)"));
            }
            let (owner, seq) = places[0];
            if !allowed.contains(&(owner, number)) {
                self.find(Kind::Unasked, format!("item {number} is at {seq} of owner {owner}"));
            }
        }
    }

    fn what_was_acknowledged_is_stored(&mut self, wanted: &Wanted) {
        for told in &wanted.told {
            if let Reply::Other(answer) = &told.reply {
                self.find(Kind::Refused, format!("{}: {answer}", named(wanted)));
            }
            let ranges = told.reply.ranges();
            let rising = ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
            let length = seqs(ranges).count() as u64;
            let whole = match &told.reply {
                Reply::Stored(stored) => {
                    let last = stored.ranges.last().map_or(0, |(_, last)| *last);
                    length == wanted.count
                        && (stored.items, stored.pages) == (last, last.div_ceil(self.page_size))
                }
                Reply::Again { unknown, .. } => length + unknown <= wanted.count,
                Reply::Other(_) | Reply::Silence => true,
            };
            if !rising || !whole {
                self.find(Kind::Absurd, format!("{}: {:?}", named(wanted), told.reply));
            }
            for (number, seq) in (wanted.first as i64..).zip(seqs(ranges)) {
                self.is_at(wanted, told, number, seq);
            }
        }
    }

    /// Whether a item is at the `seq` that it was given to, with the date that was named.
    fn is_at(&mut self, wanted: &Wanted, told: &Told, number: i64, seq: u64) {
        let there = self.stored.get(&wanted.owner).and_then(|items| items.get(seq as usize - 1));
        let (instance, heard) = (told.instance, told.heard);
        let place = format!(
            "item {number} of {}, acknowledged at {seq} by instance {instance} after {heard:.1?}",
            named(wanted)
        );
        match there {
            Some(there) if there.number == number => {
                if let Reply::Stored(Stored { date, .. }) = told.reply
                    && there.date != date
                {
                    let what = format!("{place}, has the date {} and not {date}", there.date);
                    self.find(Kind::Misplaced, what);
                }
            }
            _ => match self.places.get(&number).cloned() {
                Some(places) => self.find(Kind::Misplaced, format!("{place}, is at {places:?}")),
                None => self.find(Kind::Lost, format!("{place}, is nowhere; there is {there:?}")),
            },
        }
    }

    fn replays_agree(&mut self, wanted: &Wanted) {
        let acknowledgements = wanted.acknowledgements();
        let Some((first, original)) = acknowledgements.first() else { return };
        let mut storing = 0;
        for (told, stored) in &acknowledgements {
            if (&stored.ranges, stored.date, stored.items, stored.pages)
                != (&original.ranges, original.date, original.items, original.pages)
            {
                let what = format!("{}: first {original:?}, then {stored:?}", named(wanted));
                self.find(Kind::ReplayDiffers, what);
            }
            if !stored.replayed {
                storing += 1;
                if told.sent > first.heard {
                    let what = format!("{}: asked again after an answer, and it is no replay", named(wanted));
                    self.find(Kind::ReplayedWrongly, what);
                }
            }
        }
        // Attempts that complete each other store at least a bucket's part each.
        let page = |seq: u64| seq.div_ceil(self.page_size);
        let parts: u64 = original.ranges.iter().map(|(first, last)| page(*last) - page(*first) + 1).sum();
        if storing > parts {
            let what = format!("{}: {storing} attempts say that they stored it", named(wanted));
            self.find(Kind::ReplayedWrongly, what);
        }
        for told in &wanted.told {
            let ranges = told.reply.ranges();
            if !seqs(&original.ranges).take(seqs(ranges).count()).eq(seqs(ranges)) {
                let what = format!("{}: stored {:?}, and in part {ranges:?}", named(wanted), original.ranges);
                self.find(Kind::ReplayDiffers, what);
            }
        }
    }

    /// No reader is shown less of a owner than the same instance has shown it before, also when another
    /// server has become primary. An instance that is started again knows nothing of what it has shown.
    fn totals_never_shrink(&mut self, seen: &[Seen]) {
        let mut last = BTreeMap::new();
        for seen in seen {
            let Sight::Totals { items, .. } = seen.sight else { continue };
            let Seen { reader, instance, restarts, owner, .. } = *seen;
            match last.insert((reader, instance, restarts, owner), (items, seen)) {
                Some((before, earlier)) if items < before => {
                    self.find(Kind::TotalShrank, format!("{}, after {}", shown(seen), shown(earlier)));
                }
                _ => {}
            }
        }
    }

    fn what_was_seen_is_still_there(&mut self, seen: &Seen) {
        let stored = self.stored.get(&seen.owner).map_or(&[][..], Vec::as_slice);
        match &seen.sight {
            Sight::Page { page, full, items } => {
                let begin = ((page - 1) * self.page_size) as usize;
                let now = stored.get(begin..).unwrap_or_default();
                let whole = items.len() as u64 == self.page_size;
                if !now.starts_with(items) || *full != whole || items.len() as u64 > self.page_size {
                    let now = &now[..now.len().min(self.page_size as usize)];
                    self.find(Kind::PageChanged, format!("{}, and now {now:?}", shown(seen)));
                }
            }
            Sight::Totals { items, pages } => {
                let now = stored.len() as u64;
                if *items > now || *pages != items.div_ceil(self.page_size) {
                    self.find(Kind::TotalShrank, format!("{}, and now {now} items", shown(seen)));
                }
            }
        }
    }
}

fn named(wanted: &Wanted) -> String {
    let Wanted { owner, key, first, count, .. } = wanted;
    let last = first + count - 1;
    format!("items {first} to {last} for owner {owner} under {}", key.as_deref().unwrap_or("no key"))
}

fn shown(seen: &Seen) -> String {
    let Seen { reader, instance, owner, at, sight, .. } = seen;
    format!("owner {owner}: instance {instance} showed reader {reader} after {at:.1?} {sight:?}")
}
