//! The steps of an attempt that has begun.

use super::{Relaxed, Steps};
use pagebucket_model::domain::{Position, Seq, SeqRange};

use crate::append::expectation::{Judgement, PlannedPlace};
use crate::append::keys::KeySearch;
use crate::append::keys::model::database::Write;
use crate::append::keys::model::database::{ModelCommand, ModelItem};
use crate::append::keys::model::state::{Stage, State, TRADES, key, keys};
use crate::append::placed::Placed;

impl<F: FnMut(&'static str, usize, State)> Steps<'_, F> {
    /// If there is a permanent fact that this attempt can learn, the attempt learns it. Returns whether it
    /// did.
    pub(crate) fn learns(&mut self, attempt: usize) -> bool {
        let state = self.state;
        match &state.attempts[attempt] {
            // A record that was inserted with an old time is touched first.
            Stage::Registering { old: true }
                if self.record(attempt).is_none() && !self.is(Relaxed::OldAtBirth) =>
            {
                self.step("touches", attempt, |after| after.attempts[attempt] = Stage::New);
                true
            }
            Stage::Registering { .. } if self.record(attempt).is_none() => {
                self.step("is registered", attempt, |after| {
                    after.registered = Some(0);
                    after.attempts[attempt] = match state.durable.record {
                        Some(record) => Stage::Placing(KeySearch::of_items(keys(), record.from)),
                        None => Stage::Over,
                    };
                });
                true
            }
            Stage::Confirming(search, to) if !self.is_raising(attempt) => {
                let mut search = search.clone();
                search.known_through(*to);
                self.step("has confirmed `from`", attempt, |after| {
                    after.attempts[attempt] = Stage::Placing(search);
                });
                true
            }
            Stage::Waiting(search, command)
                if command.is_over(&state.durable) && self.running(attempt) == 0 =>
            {
                self.answered(attempt, search.clone(), command);
                true
            }
            _ => false,
        }
    }

    /// The server's answer: which statements are stored, and whether the next is refused.
    fn answered(&mut self, attempt: usize, mut search: KeySearch, command: &ModelCommand) {
        let done = &command.statements[..command.durable];
        for (seq, item) in done.iter().flat_map(|statement| (statement.first..).zip(&statement.items)) {
            if item.is_some() {
                let seq = Seq::new(seq).unwrap();
                search.placed.push(SeqRange { first: seq, last: seq });
            }
        }
        if let Some(statement) = done.last() {
            search.known_through(statement.last());
        }
        if search.is_over() {
            return self.step("has stored the rest", attempt, |after| after.answer(attempt, search.placed));
        }
        if self.is(Relaxed::NoSecondLook) {
            while !search.covers(self.state.durable.last()) {
                look(&mut search, None);
            }
        }
        self.step("is refused", attempt, |after| after.attempts[attempt] = Stage::Placing(search));
    }

    /// Goes on with a record that is not at majority, if the relaxed rule allows that.
    pub(crate) fn hurry(&mut self, attempt: usize) {
        let state = self.state;
        let Some(place) = self.record(attempt) else { return };
        let found = state.shown(place).record;
        let record = match self.relaxed {
            Some(Relaxed::RecordAtOne) => state.shown(place + 1).record,
            Some(Relaxed::FoundRecordNotAwaited) => found,
            _ => None,
        };
        if let Some(record) = record {
            let stage = Stage::Placing(KeySearch::of_items(keys(), record.from));
            self.step("goes on with a record", attempt, |after| after.attempts[attempt] = stage);
        }
    }

    /// Reads a tail, which may be old; searches at least up to that tail; and sends the rest.
    pub(crate) fn place(&mut self, attempt: usize, search: &KeySearch) {
        let state = self.state;
        let shown = state.shown(state.local.len());
        let history = if self.is(Relaxed::LookUpAtLocal) { &shown.history } else { &state.durable.history };
        for tail in 0..=state.durable.last() {
            let before = &search.placed;
            if self.is(Relaxed::JudgedBeforeLooking)
                && self.judge(before, tail, tail) == Judgement::Unexpected
            {
                self.refuse(attempt);
                continue;
            }
            if search.covers(tail) {
                self.send("sends", attempt, tail, search);
                continue;
            }
            let read = if self.is(Relaxed::ShortLookUp) {
                search.looked()..=tail
            } else {
                tail..=history.len() as u64
            };
            for last in read {
                let (mut search, before) = (search.clone(), search.placed.count);
                while search.looked() < last {
                    let stored = history[search.looked() as usize];
                    look(&mut search, stored);
                }
                while !search.covers(tail) {
                    look(&mut search, None);
                }
                if search.is_over() {
                    self.step("finds all", attempt, |after| after.answer(attempt, search.placed));
                } else {
                    let found = search.placed.count > before;
                    let name = if found { "finds some, sends the rest" } else { "looks, sends" };
                    self.send(name, attempt, tail, &search);
                }
            }
        }
    }

    /// Whether an attempt has raised `from` and the write is not at majority.
    fn is_raising(&self, attempt: usize) -> bool {
        let own = |write: &Write| matches!(write, Write::Raise { attempt: of, .. } if *of == attempt);
        self.state.local.iter().any(own)
    }

    /// Raises `from` to a known total or to the position of the search.
    pub(crate) fn raise(&mut self, attempt: usize, search: &KeySearch) {
        let state = self.state;
        let shown = state.shown(state.local.len());
        let Some(record) = shown.record else { return };
        let unseen = record.unseen_by_others == Some(attempt) || self.is(Relaxed::ConfirmedThoughFound);
        if search.placed.count == 0 && unseen {
            for to in search.looked() + 1..=state.durable.last() {
                self.step("confirms `from`", attempt, |after| {
                    after.attempts[attempt] = Stage::Confirming(search.clone(), to);
                    after.local.push(Write::Raise { attempt, to });
                });
            }
        }
        for last in search.looked() + 1..=state.durable.last() {
            let mut looked = search.clone();
            while looked.looked() < last {
                let stored = state.durable.history[looked.looked() as usize];
                look(&mut looked, stored);
            }
            let to = match self.relaxed {
                Some(Relaxed::RaisedTooFar) => state.durable.last(),
                Some(Relaxed::RaisedPastFound) => looked.looked(),
                _ => looked.none_through().unwrap(),
            };
            if to > record.from {
                self.step("looks, raises `from`", attempt, |after| {
                    after.attempts[attempt] = Stage::Placing(looked);
                    after.local.push(Write::Raise { attempt, to });
                });
            }
        }
    }

    /// Judges a request of which the items in `placed` are found, after a search through the tail. Its next
    /// item would be placed after `total` items. The newest tail is one that the commit reads; all others are
    /// only remembered.
    fn judge(&self, placed: &Placed, tail: u64, total: u64) -> Judgement {
        let is_read = tail == self.state.durable.last() || self.is(Relaxed::OldTailRefuses);
        let nothing = Placed::default();
        let placed = if self.is(Relaxed::RestJudged) { &nothing } else { placed };
        let after = if self.is(Relaxed::OthersNotCounted) { tail } else { total };
        let judge = |tail, after| {
            let place = PlannedPlace { after, total: tail, is_read };
            self.state.expectation.judge(placed, place)
        };
        let others = 0..=self.state.durable.last();
        if self.is(Relaxed::JudgedByAnotherTail)
            && others.into_iter().any(|tail| judge(tail, tail) == Judgement::Sent)
        {
            return Judgement::Sent;
        }
        judge(tail, after)
    }

    /// Answers that the history has another total.
    fn refuse(&mut self, attempt: usize) {
        let total = self.state.durable.last();
        let expected = self.state.expectation.0.map_or(0, Position::get);
        self.step("is refused for its total", attempt, |after| {
            after.attempts[attempt] = Stage::Over;
            after.refused = true;
            after.passed |= total > expected;
            after.refused_wrongly |= total == expected;
        });
    }

    fn send(&mut self, name: &'static str, attempt: usize, tail: u64, search: &KeySearch) {
        let state = self.state;
        let own = rest(&search.placed);
        let judgement = self.judge(&search.placed, tail, tail);
        if judgement == Judgement::Unexpected {
            self.refuse(attempt);
        }
        let send = |items: &[ModelItem], after: &mut State| {
            after.attempts[attempt] = Stage::Waiting(search.clone(), ModelCommand::new(tail, items));
        };
        if judgement == Judgement::Sent {
            self.step(name, attempt, |after| send(&own, after));
        }
        // An item of another request is merged before this request's items. After them it would be like any
        // other writer's item, and with an old tail the whole command is refused.
        let after_another = self.judge(&search.placed, tail, tail + 1) == Judgement::Sent;
        if state.others > 0 && tail == state.durable.last() && after_another {
            self.step("sends, after another's item", attempt, |after| {
                after.others -= 1;
                send(&[&[None], &own[..]].concat(), after);
            });
        }
        for (other, stage) in state.attempts.iter().enumerate() {
            let Stage::Placing(search) = stage else { continue };
            if self.is(Relaxed::AttemptsMerged) && other != attempt && search.covers(tail) {
                self.step("sends, with another attempt", attempt, |after| {
                    after.attempts[other] = Stage::Over;
                    send(&[&own[..], &rest(&search.placed)].concat(), after);
                });
            }
        }
    }
}

fn look(search: &mut KeySearch, stored: ModelItem) {
    search.look(stored.map(key), |_, _| unreachable!("the request is no upload"));
}

/// The items of the request that are not placed.
fn rest(placed: &Placed) -> Vec<ModelItem> {
    (placed.count as u8..TRADES).map(Some).collect()
}

impl State {
    fn answer(&mut self, attempt: usize, placed: Placed) {
        self.attempts[attempt] = Stage::Over;
        self.answers_differ |= self.answer.as_ref().is_some_and(|first| *first != placed.ranges);
        self.answer.get_or_insert(placed.ranges);
    }
}
