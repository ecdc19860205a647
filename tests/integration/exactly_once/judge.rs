//! Holds what clients were told and readers were shown against what is stored.
//!
//! It knows nothing of the store: only what an answer means. Invariants 1 to 3 and 5, which are about
//! buckets, are checked where these are read (`harness::history`).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::record::{Log, Reply, Seen, Sight, Stored, Told, Trade, Wanted, seqs};

const PAGE_SIZE: u64 = 10;

/// The trades of each customer at the end, in order of `seq`.
pub type Histories = BTreeMap<u64, Vec<Trade>>;

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
pub fn judge(log: &Log, stored: &Histories) -> Vec<Finding> {
    let mut judge = Judge { stored, places: BTreeMap::new(), findings: Vec::new() };
    for (customer, trades) in stored {
        for (seq, trade) in (1..).zip(trades) {
            judge.places.entry(trade.qty).or_default().push((*customer, seq));
        }
    }
    judge.each_trade_is_there_once(&log.wanted);
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
    stored: &'a Histories,
    /// By quantity.
    places: BTreeMap<i64, Vec<(u64, u64)>>,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn find(&mut self, kind: Kind, what: String) {
        self.findings.push(Finding { kind, what });
    }

    fn each_trade_is_there_once(&mut self, wanted: &[Wanted]) {
        let mut allowed = BTreeSet::new();
        for wanted in wanted {
            let possible = wanted.told.iter().map(|told| match &told.reply {
                Reply::Stored(_) | Reply::Silence => wanted.count,
                Reply::Again { ranges, unknown, .. } => seqs(ranges).count() as u64 + unknown,
                Reply::Other(_) => 0,
            });
            let possible = possible.max().unwrap_or(0).min(wanted.count);
            allowed.extend((wanted.first..wanted.first + possible).map(|qty| (wanted.customer, qty as i64)));
        }
        for (qty, places) in self.places.clone() {
            if places.len() > 1 {
                self.find(Kind::Doubled, format!("trade {qty} is at {places:?} (customer, seq)"));
            }
            let (customer, seq) = places[0];
            if !allowed.contains(&(customer, qty)) {
                self.find(Kind::Unasked, format!("trade {qty} is at {seq} of customer {customer}"));
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
                        && (stored.trades, stored.pages) == (last, last.div_ceil(PAGE_SIZE))
                }
                Reply::Again { unknown, .. } => length + unknown <= wanted.count,
                Reply::Other(_) | Reply::Silence => true,
            };
            if !rising || !whole {
                self.find(Kind::Absurd, format!("{}: {:?}", named(wanted), told.reply));
            }
            for (qty, seq) in (wanted.first as i64..).zip(seqs(ranges)) {
                self.is_at(wanted, told, qty, seq);
            }
        }
    }

    /// Whether a trade is at the `seq` that it was given to, with the date that was named.
    fn is_at(&mut self, wanted: &Wanted, told: &Told, qty: i64, seq: u64) {
        let there = self.stored.get(&wanted.customer).and_then(|trades| trades.get(seq as usize - 1));
        let (instance, heard) = (told.instance, told.heard);
        let place = format!(
            "trade {qty} of {}, acknowledged at {seq} by instance {instance} after {heard:.1?}",
            named(wanted)
        );
        match there {
            Some(there) if there.qty == qty => {
                if let Reply::Stored(Stored { date, .. }) = told.reply
                    && there.date != date
                {
                    let what = format!("{place}, has the date {} and not {date}", there.date);
                    self.find(Kind::Misplaced, what);
                }
            }
            _ => match self.places.get(&qty).cloned() {
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
            if (&stored.ranges, stored.date, stored.trades, stored.pages)
                != (&original.ranges, original.date, original.trades, original.pages)
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
        let page = |seq: u64| seq.div_ceil(PAGE_SIZE);
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

    /// No reader is shown less of a customer than the same instance has shown it before, also when another
    /// server has become primary. An instance that is started again knows nothing of what it has shown.
    fn totals_never_shrink(&mut self, seen: &[Seen]) {
        let mut last = BTreeMap::new();
        for seen in seen {
            let Sight::Totals { trades, .. } = seen.sight else { continue };
            let Seen { reader, instance, restarts, customer, .. } = *seen;
            match last.insert((reader, instance, restarts, customer), (trades, seen)) {
                Some((before, earlier)) if trades < before => {
                    self.find(Kind::TotalShrank, format!("{}, after {}", shown(seen), shown(earlier)));
                }
                _ => {}
            }
        }
    }

    fn what_was_seen_is_still_there(&mut self, seen: &Seen) {
        let stored = self.stored.get(&seen.customer).map_or(&[][..], Vec::as_slice);
        match &seen.sight {
            Sight::Page { page, full, trades } => {
                let begin = ((page - 1) * PAGE_SIZE) as usize;
                let now = stored.get(begin..).unwrap_or_default();
                let whole = trades.len() as u64 == PAGE_SIZE;
                if !now.starts_with(trades) || *full != whole || trades.len() as u64 > PAGE_SIZE {
                    let now = &now[..now.len().min(PAGE_SIZE as usize)];
                    self.find(Kind::PageChanged, format!("{}, and now {now:?}", shown(seen)));
                }
            }
            Sight::Totals { trades, pages } => {
                let now = stored.len() as u64;
                if *trades > now || *pages != trades.div_ceil(PAGE_SIZE) {
                    self.find(Kind::TotalShrank, format!("{}, and now {now} trades", shown(seen)));
                }
            }
        }
    }
}

fn named(wanted: &Wanted) -> String {
    let Wanted { customer, key, first, count, .. } = wanted;
    let last = first + count - 1;
    format!("trades {first} to {last} for customer {customer} under {}", key.as_deref().unwrap_or("no key"))
}

fn shown(seen: &Seen) -> String {
    let Seen { reader, instance, customer, at, sight, .. } = seen;
    format!("customer {customer}: instance {instance} showed reader {reader} after {at:.1?} {sight:?}")
}
