//! Where a listing leads: links in the body, and the same as an RFC 8288 `Link` header.

use axum::http::{HeaderValue, Uri};
use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::{CustomerId, PageNumber, Totals};
use crate::store::trades::Order;

/// Path-absolute addresses. Each but `self` is absent where there is nowhere to go.
#[derive(Debug, Serialize, ToSchema, PartialEq, Eq)]
pub struct Links {
    /// This page, as it was asked for.
    #[serde(rename = "self")]
    own: String,
    /// Where the order begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    first: Option<String>,
    /// One page back in the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    prev: Option<String>,
    /// One page on in the order. Never an empty page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next: Option<String>,
    /// Where the order ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    last: Option<String>,
}

impl Links {
    /// From page `page` of a history of `totals`. `order` is as the client gave it, and is repeated.
    pub fn new(
        uri: &Uri,
        customer: CustomerId,
        page: PageNumber,
        totals: Totals,
        order: Option<Order>,
    ) -> Self {
        let to = |page: PageNumber| {
            let order = match order {
                None => "",
                Some(Order::Ascending) => "&order=asc",
                Some(Order::Descending) => "&order=desc",
            };
            format!("/v1/customers/{customer}/trades?page={page}{order}")
        };
        let newest = totals.last_page();
        let oldest = newest.map(|_| PageNumber::FIRST);
        let up = Some(page.next()).filter(|page| newest.is_some_and(|newest| *page <= newest));
        let down = page.previous();
        let (first, prev, next, last) = match order.unwrap_or(Order::Ascending) {
            Order::Ascending => (oldest, down, up, newest),
            Order::Descending => (newest, up, down, oldest),
        };
        Self {
            own: uri.path_and_query().map_or_else(|| to(page), ToString::to_string),
            first: first.map(to),
            prev: prev.map(to),
            next: next.map(to),
            last: last.map(to),
        }
    }

    /// As the value of the `Link` header.
    pub fn header(&self) -> Option<HeaderValue> {
        let named =
            [("first", &self.first), ("prev", &self.prev), ("next", &self.next), ("last", &self.last)];
        let own = std::iter::once(("self", self.own.as_str()));
        let others = named.into_iter().filter_map(|(relation, target)| Some((relation, target.as_deref()?)));
        let links: Vec<_> =
            own.chain(others).map(|(relation, target)| format!("<{target}>; rel=\"{relation}\"")).collect();
        HeaderValue::from_str(&links.join(", ")).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Seq;

    fn links(page: u64, trades: u64, order: Option<Order>) -> Links {
        let totals = Totals::ending_with(Seq::new(trades).ok());
        let uri = "/v1/customers/7/trades".parse().unwrap();
        Links::new(&uri, CustomerId::new(7).unwrap(), PageNumber::new(page).unwrap(), totals, order)
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

    #[test]
    fn are_a_header() {
        let header = links(1, 11, None).header().unwrap();
        assert_eq!(
            header.to_str().unwrap(),
            "</v1/customers/7/trades>; rel=\"self\", </v1/customers/7/trades?page=1>; rel=\"first\", \
             </v1/customers/7/trades?page=2>; rel=\"next\", </v1/customers/7/trades?page=2>; rel=\"last\""
        );
    }
}
