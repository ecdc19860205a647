//! Explores all reachable states, breadth first.

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::state::State;
use super::steps::{Besides, Relaxed, Steps};

/// The result of an exploration.
pub(crate) struct Explored {
    pub(crate) states: usize,
    /// What is wrong in the first bad state, and the steps to that state.
    pub(crate) broken: Option<String>,
    /// The steps that were taken.
    pub(crate) taken: BTreeSet<&'static str>,
    /// The number of final states, in which the request is answered.
    pub(crate) ends: usize,
    /// The largest number of ranges in an answer.
    pub(crate) parts: usize,
}

/// A state and the step to it: the step's name, its attempt, and the index of the state before it.
type Reached = (Rc<State>, &'static str, usize, usize);

/// Explores until something is wrong, from an empty history and from one that ends in half a page. `others`
/// is the number of items that other writers may append; `besides` adds further steps.
pub(crate) fn explore(relaxed: Option<Relaxed>, others: u8, besides: Besides) -> Explored {
    let mut known = HashSet::new();
    let mut found: Vec<Reached> = Vec::new();
    let (mut broken, mut taken, mut ends, mut parts) = (None, BTreeSet::new(), 0, 0);
    for (items, expectation) in besides.beginnings() {
        let state = Rc::new(State::new(items, others, expectation));
        known.insert(Rc::clone(&state));
        found.push((state, "", 0, found.len()));
    }
    let mut current = 0;
    while let Some((state, ..)) = found.get(current).cloned() {
        let mut is_end = true;
        let next = |name, attempt, after| {
            is_end = false;
            taken.insert(name);
            let after = Rc::new(after);
            if known.insert(Rc::clone(&after)) {
                found.push((after, name, attempt, current));
            }
        };
        let mut judged = state.judge();
        if judged.is_ok() {
            Steps { state: &state, relaxed, besides, next }.run();
            if is_end {
                ends += 1;
                let answered = state.answer.is_some() || state.refused;
                judged = if answered { Ok(()) } else { Err("stuck: no step is possible") };
            }
        }
        if let Err(why) = judged {
            broken = Some(format!("{why}\n{}", trace(&found, current)));
            break;
        }
        parts = parts.max(state.answer.as_ref().map_or(0, Vec::len));
        current += 1;
    }
    Explored { states: found.len(), broken, taken, ends, parts }
}

fn trace(found: &[Reached], last: usize) -> String {
    let (mut steps, mut at) = (Vec::new(), last);
    loop {
        let (_, name, attempt, before) = &found[at];
        if *before == at {
            break;
        }
        steps.push(format!("attempt {attempt}: {name}"));
        at = *before;
    }
    steps.reverse();
    format!("{}\n{:?}", steps.join("\n"), found[last].0)
}
