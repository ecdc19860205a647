//! Who hears of a stream while it goes on.

use std::future::{Future, pending};
use std::io;

use super::report::Report;
use super::send::Sent;
use super::stream::Row;

/// What happens in a stream.
#[derive(Debug)]
pub enum Event<'a, B> {
    /// A row is an item; its outcome follows.
    Came(&'a Row),
    /// A row is no item.
    Bad(B),
    /// The outcomes of a batch.
    Sent(&'a Sent),
    /// What is done so far: ten times a second, and at the end.
    Progress(&'a Report),
    /// The stream waits for the database, for this reason.
    Waiting(&'a str),
}

/// Hears of a stream while it goes on. Its functions must be quick: rows wait for them.
pub trait Watch<B> {
    /// Something has happened.
    fn hear(&mut self, event: Event<'_, B>);

    /// Whether it holds so much that no more rows should come.
    fn full(&self) -> bool {
        false
    }

    /// How much it holds that is not handed on yet, in bytes.
    fn held(&self) -> usize {
        0
    }

    /// Hands on what it holds; stays pending while it holds nothing.
    ///
    /// # Errors
    /// The receiver is gone.
    fn hand_on(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        pending()
    }
}
