//! Links of a listing: in the body, and in an RFC 8288 `Link` header.

use axum::http::{HeaderName, HeaderValue, Uri, header};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Cursor, Limit, Order, OwnerId, PageNumber, Position, Seq, Span, Totals};
use serde::Serialize;
use utoipa::ToSchema;

/// The most values of one filter.
pub(crate) const MOST_FILTER_VALUES: usize = 20;

/// The most bytes of all filters of a request: each of its links repeats them, percent-encoded, in the body
/// and in the head of the answer.
pub(crate) const MOST_FILTER_BYTES: usize = 1024;

/// The most bytes of a `Link` header. Proxies refuse an answer whose head is longer than their buffer, nginx
/// with 502; the body has the links whatever their length.
const MOST_HEADER_BYTES: usize = 2048;

/// Links, as absolute paths. A link other than `self` is absent if it would lead to nothing. For a span of
/// time and for values, a link may lead to a window without items.
#[serde_with::skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema, PartialEq, Eq)]
pub(crate) struct Links {
    /// This listing, as it was requested.
    #[serde(rename = "self")]
    #[schema(pattern = "^/", max_length = 65_534)]
    own: String,
    /// The beginning of the order.
    #[schema(pattern = "^/", max_length = 65_534)]
    first: Option<String>,
    /// The previous page or window in the order.
    #[schema(pattern = "^/", max_length = 65_534)]
    prev: Option<String>,
    /// The next page or window in the order. Except for a span of time and for values, it is never empty.
    #[schema(pattern = "^/", max_length = 65_534)]
    next: Option<String>,
    /// The end of the order.
    #[schema(pattern = "^/", max_length = 65_534)]
    last: Option<String>,
    /// Only for a window at a cursor: items that are newer than all in it, now or later. Request it again to
    /// learn of new items.
    #[schema(pattern = "^/", max_length = 65_534)]
    newer: Option<String>,
}

/// What all links of one listing have in common.
pub(crate) struct LinkBase<'a> {
    /// The address that was requested.
    pub own: &'a Uri,
    /// The definition of the history.
    pub definition: &'a Definition,
    /// Whose history it is.
    pub owner: &'a OwnerId,
    /// Before the first item that is there. Links lead to nothing earlier.
    pub beginning: Position,
    /// Repeated in links only if the client gave it.
    pub order: Option<Order>,
    /// The parameters that all windows repeat, each after `&`: a span of time, and values.
    pub repeated: String,
}

impl LinkBase<'_> {
    fn with(&self, query: &str) -> String {
        let order = self.order.map(|order| format!("&order={order}")).unwrap_or_default();
        let (owners, owner, items) = (&self.definition.owner.collection, self.owner, &self.definition.name);
        format!("/v1/{owners}/{owner}/{items}?{query}{order}{}", self.repeated)
    }

    /// `as_of` is the last item of a moment of the history.
    fn window(&self, cursor: Cursor, limit: Limit, as_of: Option<Seq>) -> String {
        let cursor = match cursor {
            Cursor::After(position) => format!("after={}&", position.get()),
            Cursor::Before(position) => format!("before={}&", position.get() + 1),
            Cursor::End => String::new(),
        };
        let as_of = as_of.map(|last| format!("&asOf={last}")).unwrap_or_default();
        self.with(&format!("{cursor}limit={}{as_of}", limit.get()))
    }

    /// The links of page `page` of a history with these totals.
    pub(crate) fn around_page(&self, page: PageNumber, totals: Totals) -> Links {
        let first = self.beginning.next_seq().map(|first| self.definition.page_size.page_of(first));
        let newest = totals.last_page().filter(|newest| first <= Some(*newest));
        let oldest = first.filter(|_| newest.is_some());
        let up = Some(page.next()).filter(|page| newest.is_some_and(|newest| *page <= newest));
        let down = page.previous().filter(|page| first <= Some(*page));
        let to = |page| self.with(&format!("page={page}"));
        let [first, prev, next, last] = self.arranged([oldest, down, up, newest]).map(|page| page.map(to));
        Links { own: requested(self.own), first, prev, next, last, newer: None }
    }

    /// The links of a window that shows `span` of a history with these totals. The links to the next and
    /// previous windows stay with that moment; those to the ends, and to newer items, do not.
    pub(crate) fn around_window(&self, span: Span, limit: Limit, totals: Totals) -> Links {
        let end = Position::end_of(totals);
        let some = end > self.beginning;
        // In descending order, the first window is always the newest.
        let newest = match self.order {
            Some(Order::Descending) => Cursor::End,
            _ => Cursor::Before(end),
        };
        let oldest = some.then_some(Cursor::After(Position::BEGINNING));
        let as_of = totals.last_seq().filter(|_| self.repeated.is_empty());
        let to = |cursor| self.window(cursor, limit, None);
        let on = |cursor| self.window(cursor, limit, as_of);
        let [first, prev, next, last] = self.arranged([
            oldest.map(to),
            span.older(totals).filter(|end| *end > self.beginning).map(Cursor::Before).map(on),
            span.newer(totals).map(Cursor::After).map(on),
            some.then_some(newest).map(to),
        ]);
        Links { own: requested(self.own), first, prev, next, last, newer: Some(to(Cursor::After(span.end))) }
    }

    /// The links of a window after the first `offset` items in the order. All of them stay with the moment of
    /// these totals: offsets in descending order are counted from its end.
    pub(crate) fn around_offset(&self, offset: u64, limit: Limit, totals: Totals) -> Links {
        let (total, step, retired) = (totals.items(), limit.get() as u64, self.beginning.get());
        // The offsets of the first item that is there, and after the last one.
        let (begin, end) = match self.order {
            Some(Order::Descending) => (0, total.saturating_sub(retired)),
            _ => (retired, total),
        };
        let last = begin.max(end.saturating_sub(1) / step * step);
        let some = end > begin;
        let to = |offset: u64| self.with(&format!("offset={offset}&limit={step}&asOf={total}"));
        Links {
            own: requested(self.own),
            first: some.then(|| to(begin)),
            prev: (some && offset > begin).then(|| to(offset.saturating_sub(step).clamp(begin, last))),
            next: (offset + step < end).then(|| to(offset + step)),
            last: some.then(|| to(last)),
            newer: None,
        }
    }

    /// Arranges oldest, older, newer and newest as first, previous, next and last in the order.
    fn arranged<T>(&self, [oldest, older, newer, newest]: [T; 4]) -> [T; 4] {
        match self.order {
            Some(Order::Descending) => [newest, newer, older, oldest],
            _ => [oldest, older, newer, newest],
        }
    }
}

impl Links {
    /// The links of a listing of owners that was requested as `own`. The next one begins after `next`, if
    /// there are more of them.
    pub(crate) fn to_owners(own: &Uri, next: Option<&OwnerId>, limit: Limit) -> Self {
        let next = next.map(|id| format!("{}?after={id}&limit={}", own.path(), limit.get()));
        Self { own: requested(own), next, ..Self::default() }
    }

    /// The links of a summary that was requested as `own`, and `next`, if there are more points.
    pub(crate) fn to_points(own: &Uri, next: Option<String>) -> Self {
        Self { own: requested(own), next, ..Self::default() }
    }

    /// The `Link` header, unless it would be longer than [`MOST_HEADER_BYTES`]. It does not have `newer`,
    /// which is not a registered relation.
    pub(crate) fn header(&self) -> Option<[(HeaderName, HeaderValue); 1]> {
        let Self { own, first, prev, next, last, newer: _ } = self;
        let others = [("first", first), ("prev", prev), ("next", next), ("last", last)];
        let mut links = format!("<{own}>; rel=\"self\"");
        for (relation, target) in others {
            links.extend(target.iter().map(|target| format!(", <{target}>; rel=\"{relation}\"")));
        }
        let links = Some(links).filter(|links| links.len() <= MOST_HEADER_BYTES)?;
        Some([(header::LINK, HeaderValue::try_from(links).ok()?)])
    }
}

/// The path and the query of a requested address.
fn requested(address: &Uri) -> String {
    address.path_and_query().map_or_else(|| address.path().to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::domain::{PageSize, Window};

    fn with<T>(order: Option<Order>, work: impl FnOnce(LinkBase<'_>) -> T) -> T {
        with_beginning(0, order, work)
    }

    /// Of a history without its first `retired` items.
    fn with_beginning<T>(retired: u64, order: Option<Order>, work: impl FnOnce(LinkBase<'_>) -> T) -> T {
        let own = "/v1/customers/7/trades".parse().unwrap();
        let (definition, owner) = (&Definition::trades(), &OwnerId::Integer(7));
        let beginning = Position::parse(&retired.to_string()).unwrap();
        work(LinkBase { own: &own, definition, owner, beginning, order, repeated: String::new() })
    }

    fn totals(items: u64) -> Totals {
        Totals::ending_with(PageSize::DEFAULT, Seq::new(items).ok())
    }

    fn links(page: u64, items: u64, order: Option<Order>) -> Links {
        with(order, |to| to.around_page(PageNumber::new(page).unwrap(), totals(items)))
    }

    fn page(link: &Option<String>) -> Option<&str> {
        link.as_deref().map(|link| link.split_once("page=").unwrap().1)
    }

    #[test]
    fn lead_somewhere_or_are_absent() {
        let middle = links(2, 25, None);
        assert_eq!(
            [&middle.first, &middle.prev, &middle.next, &middle.last].map(page),
            [Some("1"), Some("1"), Some("3"), Some("3")]
        );
        let last = links(3, 30, None);
        assert_eq!(page(&last.next), None);
        let empty = links(1, 0, None);
        assert_eq!([&empty.first, &empty.prev, &empty.next, &empty.last].map(page), [None; 4]);
        let newest = links(3, 25, Some(Order::Descending));
        assert_eq!(
            [&newest.first, &newest.prev, &newest.next, &newest.last].map(page),
            [Some("3&order=desc"), None, Some("2&order=desc"), Some("1&order=desc")]
        );
    }

    /// Queries of first, prev, next, last and newer.
    fn around(cursor: &str, limit: &str, items: u64, order: Option<Order>) -> [Option<String>; 5] {
        let position = || Position::parse(&cursor[1..]).unwrap();
        let cursor = match &cursor[..1] {
            ">" => Cursor::After(position()),
            "<" => Cursor::Before(position()),
            _ => Cursor::End,
        };
        let limit = Limit::parse(limit).unwrap();
        let span = Window { cursor, limit }.span(totals(items));
        let links = with(order, |to| to.around_window(span, limit, totals(items)));
        [links.first, links.prev, links.next, links.last, links.newer]
            .map(|link| link.map(|link| link.split_once('?').unwrap().1.replace("&limit", "").to_owned()))
    }

    #[test]
    fn of_a_window_name_the_items_at_its_ends() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            around(">10", "10", 25, None),
            ["after=0=10", "before=11=10&asOf=25", "after=20=10&asOf=25", "before=26=10", "after=20=10"]
                .map(some)
        );
        let newest = around("e", "10", 25, Some(Order::Descending));
        let desc = |text: &str| Some(format!("{text}&order=desc"));
        assert_eq!(
            newest,
            [desc("limit=10"), None, desc("before=16=10&asOf=25"), desc("after=0=10"), desc("after=25=10")]
        );
        let beyond = around(">99", "5", 25, None);
        assert_eq!(
            beyond,
            [some("after=0=5"), some("before=26=5&asOf=25"), None, some("before=26=5"), some("after=99=5")]
        );
        assert_eq!(around(">0", "5", 0, None), [None, None, None, None, some("after=0=5")]);
    }

    #[test]
    fn of_offsets_lead_through_all_of_one_moment() {
        let at = |offset: u64, items: u64, order: Option<Order>| {
            let links = with(order, |to| to.around_offset(offset, Limit::new(10).unwrap(), totals(items)));
            assert_eq!(links.newer, None);
            [links.first, links.prev, links.next, links.last].map(|link| {
                let query = link?.split_once("?offset=").unwrap().1.to_owned();
                let (offset, rest) = query.split_once('&').unwrap();
                let order = order.map(|order| format!("&order={order}")).unwrap_or_default();
                assert_eq!(rest, format!("limit=10&asOf={items}{order}"));
                offset.parse::<u64>().ok()
            })
        };
        for order in [None, Some(Order::Ascending), Some(Order::Descending)] {
            assert_eq!(at(0, 0, order), [None; 4]);
            assert_eq!(at(7, 0, order), [None; 4]);
            assert_eq!(at(0, 10, order), [Some(0), None, None, Some(0)]);
            assert_eq!(at(0, 25, order), [Some(0), None, Some(10), Some(20)]);
            assert_eq!(at(13, 25, order), [Some(0), Some(3), Some(23), Some(20)]);
            assert_eq!(at(3, 25, order), [Some(0), Some(0), Some(13), Some(20)]);
            assert_eq!(at(20, 30, order), [Some(0), Some(10), None, Some(20)]);
            assert_eq!(at(9_007_199_254_740_991, 25, order), [Some(0), Some(20), None, Some(20)]);
        }
    }

    #[test]
    fn lead_to_nothing_that_is_retired() {
        let shown = |links: Links| {
            let query = |link: Option<String>| link.map(|link| link.split_once('?').unwrap().1.to_owned());
            [links.first, links.prev, links.next, links.last].map(query)
        };
        let some = |texts: [&str; 4]| texts.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
        let page = |number| PageNumber::new(number).unwrap();
        let limit = Limit::new(10).unwrap();
        let of = |items: u64, order, work: &dyn Fn(LinkBase<'_>) -> Links| {
            shown(with_beginning(20, order, work)).map(|query| {
                query.map(|query| query.replace("&order=desc", "").replace(&format!("&asOf={items}"), ""))
            })
        };
        let desc = Some(Order::Descending);
        assert_eq!(
            of(45, None, &|to| to.around_page(page(3), totals(45))),
            some(["page=3", "", "page=4", "page=5"])
        );
        assert_eq!(
            of(45, desc, &|to| to.around_page(page(4), totals(45))),
            some(["page=5", "page=5", "page=3", "page=3"])
        );
        // Reopened, and nothing is appended yet.
        assert_eq!(of(20, None, &|to| to.around_page(page(3), totals(20))), [const { None }; 4]);
        assert_eq!(of(20, None, &|to| to.around_offset(20, limit, totals(20))), [const { None }; 4]);
        let offset = |offset| move |to: LinkBase<'_>| to.around_offset(offset, limit, totals(45));
        let [first, at, last] = ["offset=20&limit=10", "offset=30&limit=10", "offset=40&limit=10"];
        assert_eq!(of(45, None, &offset(20)), some([first, "", at, last]));
        assert_eq!(of(45, None, &offset(25)), some([first, first, "offset=35&limit=10", last]));
        let [first, at, last] = ["offset=0&limit=10", "offset=10&limit=10", "offset=20&limit=10"];
        assert_eq!(of(45, desc, &offset(10)), some([first, first, last, last]));
        assert_eq!(of(45, desc, &offset(20)), some([first, at, "", last]));
        let window = |cursor: Cursor| {
            let span = Window { cursor, limit }.span(totals(45));
            move |to: LinkBase<'_>| to.around_window(span, limit, totals(45))
        };
        let after = |at: &str| Cursor::After(Position::parse(at).unwrap());
        let (begin, end) = ("after=0&limit=10", "before=46&limit=10");
        assert_eq!(of(45, None, &window(after("20"))), some([begin, "", "after=30&limit=10", end]));
        assert_eq!(
            of(45, None, &window(after("21"))),
            some([begin, "before=22&limit=10", "after=31&limit=10", end])
        );
    }

    #[test]
    fn are_a_header() {
        let [(_, header)] = links(1, 11, None).header().unwrap();
        assert_eq!(
            header.to_str().unwrap(),
            "</v1/customers/7/trades>; rel=\"self\", </v1/customers/7/trades?page=1>; rel=\"first\", \
             </v1/customers/7/trades?page=2>; rel=\"next\", </v1/customers/7/trades?page=2>; rel=\"last\""
        );
    }

    #[test]
    fn are_no_header_if_they_are_too_long_for_a_proxy() {
        let of = |bytes: usize| {
            let own = format!("/{}", "a".repeat(bytes - "</>; rel=\"self\"".len()));
            Links { own, ..Links::default() }.header().map(|[(_, links)]| links.len())
        };
        assert_eq!((of(2048), of(2049)), (Some(2048), None));
    }
}
