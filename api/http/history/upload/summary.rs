//! Collects the faults of single lines for the summary of an upload.

use super::read::BadLine;
use super::views::{FaultView, LineProblemView};
use crate::ingest::{Bad, Event, Sent, Watch};

/// Most lines whose faults are listed; the others are only counted.
const MOST: usize = 100;

/// Most bytes of listed faults: names of unknown members may be long.
const MOST_BYTES: usize = 128 * 1024;

/// The faults of the first refused lines.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) problems: Vec<LineProblemView>,
    pub(super) omitted: u64,
    bytes: usize,
}

impl Summary {
    fn tell(&mut self, problem: impl FnOnce() -> LineProblemView) {
        if self.problems.len() == MOST || self.bytes >= MOST_BYTES {
            self.omitted += 1;
            return;
        }
        let problem = problem();
        let text = |fault: &FaultView| fault.pointer.len() + fault.detail.len();
        self.bytes += problem.errors.iter().map(text).sum::<usize>();
        self.problems.push(problem);
    }
}

impl Watch<BadLine> for Summary {
    fn hear(&mut self, event: Event<'_, BadLine>) {
        match event {
            Event::Bad(bad) => self.bad(bad),
            Event::Sent(sent) => self.sent(sent),
            Event::Came(_) | Event::Progress(_) | Event::Waiting(_) => {}
        }
    }
}

impl Summary {
    fn bad(&mut self, Bad { line, why: bad, .. }: Bad<BadLine>) {
        self.tell(|| LineProblemView {
            line,
            errors: bad.faults.into_iter().map(FaultView::from).collect(),
            errors_omitted: Some(bad.omitted).filter(|&omitted| omitted > 0),
        });
    }

    fn sent(&mut self, sent: &Sent) {
        for (row, end) in sent.rows.iter().zip(&sent.ends) {
            if let Err(refusal) = end {
                self.tell(|| LineProblemView {
                    line: row.line,
                    errors: vec![FaultView { pointer: String::new(), detail: refusal.to_string() }],
                    errors_omitted: None,
                });
            }
        }
    }
}
