//! What a listing shows of a history, and where its items are read. It is decided before any of them is.

use axum::response::Response;
use pagebucket_engine::reads::FullPages;
use pagebucket_engine::{Engine, History};
use pagebucket_model::domain::{Order, OwnerId, PageNumber, Seq, SeqRange, Totals};

use super::offset_range::{OffsetRange, with_headers};
use super::params::{ListParams, Selection, StartsRetired};
use crate::caching::control::Caching;
use crate::caching::reading::Reading;
use crate::problem::{Problem, ProblemKind};

/// A listing that a client asks for.
pub(crate) struct Listing<'a> {
    pub engine: &'a Engine,
    pub owner: &'a OwnerId,
    pub params: &'a ListParams,
}

/// What the answer shows.
pub(crate) struct ListPlan {
    /// Where its items are read.
    pub source: ItemSource,
    /// The totals of its moment.
    pub totals: Totals,
    /// The first item that is there.
    pub first: Seq,
    pub selection: Selection,
    pub order: Order,
    /// Its items, before they are chosen by date or value.
    pub range: Option<SeqRange>,
    /// The number of the page that it shows; `None` for a window.
    pub page: Option<PageNumber>,
    pub caching: Caching,
}

/// Where the items of an answer are read.
pub(crate) enum ItemSource {
    /// On pages of the moment that were full then. The tail was not read.
    Full(FullPages),
    /// In the history as it is now, which has all items of the moment.
    Present(History),
}

impl Listing<'_> {
    /// 304 if the client has the tag of the snapshot that it asks for. It has seen it, so no look-up is
    /// needed.
    pub(crate) fn unchanged(&self, reading: &Reading) -> Option<Response> {
        let last = self.params.selection.as_of()?;
        let unchanged = reading.named(self.engine, |_| self.of_snapshot(reading, last))?;
        let (order, totals) = (self.order(), self.engine.totals(Some(last)));
        Some(with_headers(unchanged, self.params.selection.seqs(order, totals), order, totals))
    }

    /// Plans the answer. Reads the tail, unless the listing is a snapshot of pages that are known to be full.
    ///
    /// # Errors
    /// There is no such page, or the listing begins with an item that is deleted. The database is not
    /// available in time.
    pub(crate) async fn plan(&self, reading: &mut Reading) -> Result<ListPlan, Problem> {
        let (asked, order) = (self.params.selection, self.order());
        let (source, totals, first, caching) = match self.full_snapshot() {
            Some((full, last)) => {
                let totals = self.engine.totals(Some(last));
                (ItemSource::Full(full), totals, Seq::FIRST, self.of_snapshot(reading, last))
            }
            None => {
                let history = self.engine.reads().history(self.owner.clone(), reading.deadline);
                let history = reading.database(history).await?;
                let (now, first) = (history.totals(), history.first_seq());
                let (totals, caching) = match asked.as_of().filter(|last| Some(*last) <= now.last_seq()) {
                    Some(last) => (self.engine.totals(Some(last)), self.of_snapshot(reading, last)),
                    None => (now, self.of_tail(reading, now)),
                };
                (ItemSource::Present(history), totals, first, caching.since(first))
            }
        };
        let first_page = self.engine.definition().page_size.page_of(first);
        let selection = asked.beginning_at(first, order, totals);
        let range = selection.kept(order, totals, first);
        let range = range.map_err(|StartsRetired| Problem::retired(first_page, first))?;
        let page = selection.page(order, totals);
        if page > totals.last_page().max(page.map(|_| first_page)) {
            return Err(Problem::new(ProblemKind::PageNotFound, "The history has fewer pages."));
        }
        Ok(ListPlan { source, totals, first, selection, order, range, page, caching })
    }

    fn order(&self) -> Order {
        self.params.order.unwrap_or(Order::Ascending)
    }

    /// The full pages that hold all items of the snapshot that is asked for, and its last item.
    fn full_snapshot(&self) -> Option<(FullPages, Seq)> {
        let selection = self.params.selection;
        let last = selection.as_of().filter(|_| !self.engine.reads().may_have_lost_pages())?;
        let full = self.engine.reads().full_as_of(self.owner, last)?;
        let range = selection.seqs(self.order(), self.engine.totals(Some(last)));
        range.is_none_or(|range| full.hold(range)).then_some((full, last))
    }

    fn of_snapshot(&self, reading: &Reading, last: Seq) -> Caching {
        let definition = self.engine.definition();
        self.of_part(Caching::of_snapshot(reading.epoch, definition, self.owner, last))
    }

    fn of_tail(&self, reading: &Reading, totals: Totals) -> Caching {
        self.of_part(Caching::of_tail(reading.epoch, self.engine.definition(), self.owner, totals))
    }

    /// A part has the address of the whole.
    fn of_part(&self, caching: Caching) -> Caching {
        match self.params.selection.part() {
            Some(OffsetRange { offset, limit, .. }) => {
                caching.of_part(format_args!("r{offset}-{}", limit.get()))
            }
            None => caching,
        }
    }
}

impl ListPlan {
    /// Whether the header `Range` asks for a part, and no item is in it.
    pub(crate) fn is_empty_part(&self) -> bool {
        self.selection.part().is_some() && self.range.is_none()
    }

    /// The answer, which says what it shows. A search does not know.
    pub(crate) fn headed(&self, answer: Response) -> Response {
        match self.selection {
            Selection::Search(..) => answer,
            _ => with_headers(answer, self.range, self.order, self.totals),
        }
    }
}
