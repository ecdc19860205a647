//! The steps that are possible in a state.

mod attempt;

use std::rc::Rc;

use super::database::{ModelCommand, RETENTION, Record, Write};
use super::state::{Stage, State, keys};
use crate::append::expectation::Expectation;
use crate::append::keys::KeySearch;
use pagebucket_model::domain::Position;

/// A rule that is relaxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relaxed {
    /// An attempt appends before its record exists.
    RecordNotAwaited,
    /// An attempt appends when only the primary has the record, `w: 1`.
    RecordAtOne,
    /// An attempt appends when it has found a record at the primary, which may be lost.
    FoundRecordNotAwaited,
    /// `from` is greater than the total at majority.
    FromTooHigh,
    /// A scan shows items that are not at majority.
    LookUpAtLocal,
    /// A scan that ends before the tail counts as complete.
    ShortLookUp,
    /// After a refused command the items added since are not examined.
    NoSecondLook,
    /// A repeat does not prolong the life of the record.
    ExpiryFromCreation,
    /// Two attempts share a command.
    AttemptsMerged,
    /// A record that was inserted with an old time is not touched.
    OldAtBirth,
    /// `from` is raised to a total though another attempt has found the record.
    ConfirmedThoughFound,
    /// `from` is raised to the total at majority, not to the position of the search.
    RaisedTooFar,
    /// `from` is raised to the position of the search, though an item of the request was found before it.
    RaisedPastFound,
    /// A request is judged before its items are looked for.
    JudgedBeforeLooking,
    /// A request of which a part is stored is judged.
    RestJudged,
    /// A request is judged by another tail than the one after which it is sent.
    JudgedByAnotherTail,
    /// A request is judged by the tail, though items of another request are sent before its own.
    OthersNotCounted,
    /// A tail that may be old shows that the history has another total.
    OldTailRefuses,
}

/// Which steps are explored besides those of attempts, failovers and other writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Besides {
    Nothing,
    /// Time passes, and records expire.
    Time,
    /// Attempts raise `from` in the record.
    Raising,
    /// The request expects a total: that of the beginning, or one more, or one less.
    Expecting,
}

impl Besides {
    /// The histories from which the exploration begins, by the number of their items, and what the request
    /// expects of each.
    pub(crate) fn beginnings(self) -> Vec<(usize, Expectation)> {
        let expectation = |total: usize| Expectation(Some(Position::parse(&total.to_string()).unwrap()));
        match self {
            Self::Expecting => [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
                .map(|(items, total)| (items, expectation(total)))
                .into(),
            _ => vec![(0, Expectation::default()), (1, Expectation::default())],
        }
    }
}

impl Relaxed {
    /// The further steps without which relaxing the rule breaks nothing.
    pub(crate) fn besides(self) -> Besides {
        match self {
            Self::ExpiryFromCreation | Self::OldAtBirth => Besides::Time,
            Self::ConfirmedThoughFound | Self::RaisedTooFar | Self::RaisedPastFound => Besides::Raising,
            Self::JudgedBeforeLooking
            | Self::RestJudged
            | Self::JudgedByAnotherTail
            | Self::OthersNotCounted
            | Self::OldTailRefuses => Besides::Expecting,
            _ => Besides::Nothing,
        }
    }
}

/// Calls `next` with each possible step, its attempt, and the state after it.
pub(crate) struct Steps<'a, F> {
    pub(crate) state: &'a State,
    pub(crate) relaxed: Option<Relaxed>,
    pub(crate) besides: Besides,
    pub(crate) next: F,
}

impl<F: FnMut(&'static str, usize, State)> Steps<'_, F> {
    pub(crate) fn run(mut self) {
        // An attempt that learns of a permanent fact changes nothing else, so that step can always come
        // first.
        if (0..self.state.attempts.len()).any(|attempt| self.learns(attempt)) {
            return;
        }
        self.replicate();
        if self.besides == Besides::Time {
            self.pass();
        }
        self.begin();
        for attempt in 0..self.state.attempts.len() {
            match &self.state.attempts[attempt] {
                Stage::New | Stage::Confirming(..) | Stage::Over => {}
                Stage::Registering { .. } => self.hurry(attempt),
                Stage::Placing(search) => {
                    self.place(attempt, search);
                    if self.besides == Besides::Raising {
                        self.raise(attempt, search);
                    }
                }
                Stage::Waiting(_, command) => self.execute(attempt, command),
            }
        }
    }

    fn is(&self, relaxed: Relaxed) -> bool {
        self.relaxed == Some(relaxed)
    }

    fn step(&mut self, name: &'static str, attempt: usize, change: impl FnOnce(&mut State)) {
        let mut after = self.state.clone();
        change(&mut after);
        (self.next)(name, attempt, after);
    }

    /// Steps of replication, failover and other writers.
    fn replicate(&mut self) {
        let state = self.state;
        if let Some(first) = state.local.first() {
            self.step("majority", 0, |after| {
                after.durable.apply(first);
                after.local.remove(0);
                if let Write::Statement { attempt, .. } = first
                    && let Stage::Waiting(_, command) = &mut after.attempts[*attempt]
                {
                    command.durable += 1;
                }
            });
        }
        if let Some(last) = state.local.last() {
            self.step("failover", 0, |after| {
                after.local.pop();
                let (Write::Record { attempt, .. } | Write::Raise { attempt, .. }) = last else { return };
                let stage = &mut after.attempts[*attempt];
                match stage {
                    // The registration runs again from its beginning, with any `from` that it may have read.
                    Stage::Registering { .. } => *stage = Stage::New,
                    // Raising `from` is not tried again.
                    Stage::Confirming(search, _) => *stage = Stage::Placing(search.clone()),
                    _ => {}
                }
            });
        }
        if state.others > 0 {
            self.step("another writer", 0, |after| {
                after.others -= 1;
                after.local.push(Write::Other);
            });
        }
    }

    /// Time passes, and the record expires.
    fn pass(&mut self) {
        let state = self.state;
        // A write is at majority or lost long before the retention is over.
        let Some(record) = state.durable.record.filter(|_| state.local.is_empty()) else { return };
        if record.age == RETENTION {
            return self.step("the record expires", 0, |after| after.local.push(Write::Expiry));
        }
        self.step("time passes", 0, |after| {
            after.durable.record = Some(Record { age: record.age + 1, ..record });
            after.registered = after.registered.map(|ago| RETENTION.min(ago + 1));
        });
    }

    /// An attempt's record reaches the primary. It makes no difference when its `from` was read, because what
    /// was at majority then still is.
    fn begin(&mut self) {
        let state = self.state;
        let Some(attempt) = state.attempts.iter().position(|stage| *stage == Stage::New) else { return };
        let touches = !self.is(Relaxed::ExpiryFromCreation);
        let too_high = u64::from(self.is(Relaxed::FromTooHigh));
        for from in 0..=state.durable.last() + too_high {
            if self.is(Relaxed::RecordNotAwaited) {
                let stage = Stage::Placing(KeySearch::of_items(keys(), from));
                self.step("goes on without a record", attempt, |after| after.attempts[attempt] = stage);
            }
            // Clients send no repeats after the retention, but an old attempt's record may still arrive.
            let late = state.registered == Some(RETENTION);
            let name = if late { "record, of an old attempt" } else { "record" };
            self.step(name, attempt, |after| {
                after.attempts[attempt] = if late { Stage::Over } else { Stage::Registering { old: false } };
                after.local.push(Write::Record { attempt, from, touches, age: 0 });
            });
            // An insert with the time of a clock that stood still. If a record exists, the insert does
            // nothing.
            let finds = state.shown(state.local.len()).record.is_some();
            if self.besides == Besides::Time && !late && !finds {
                self.step("record, old at its birth", attempt, |after| {
                    after.attempts[attempt] = Stage::Registering { old: true };
                    after.local.push(Write::Record { attempt, from, touches: false, age: RETENTION });
                });
            }
        }
    }

    /// The index of an attempt's record among the writes that are not at majority.
    fn record(&self, attempt: usize) -> Option<usize> {
        let own = |write: &Write| matches!(write, Write::Record { attempt: of, .. } if *of == attempt);
        self.state.local.iter().position(own)
    }

    /// How many statements of an attempt's command are not at majority.
    fn running(&self, attempt: usize) -> usize {
        let own = |write: &&Write| matches!(write, Write::Statement { attempt: of, .. } if *of == attempt);
        self.state.local.iter().filter(own).count()
    }

    /// The primary runs the next statement, however long ago it was sent. Statements that a failover has lost
    /// run again.
    fn execute(&mut self, attempt: usize, command: &ModelCommand) {
        let state = self.state;
        let next = command.statements.get(command.durable + self.running(attempt));
        if let Some(statement) = next.filter(|next| state.shown(state.local.len()).admits(next)) {
            let statement = Rc::clone(statement);
            self.step("statement", attempt, |after| {
                after.local.push(Write::Statement { attempt, statement });
            });
        }
    }
}
