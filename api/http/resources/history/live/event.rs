//! Events as bytes (HTML, "Server-sent events", section "Parsing an event stream"). JSON has no line break
//! outside of its strings, and none inside that is not escaped, so each field is one line.

use std::io::Write;
use std::sync::Arc;

use axum::body::Bytes;
use pagebucket_engine::live::{LivePage, LogPlace, OwnersNews};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{OwnerId, OwnerMember, Totals};
use serde_json::{Map, Value, json};

use crate::admission::watch::WATCH;
use crate::pages::item_view::write_items;
use crate::problem::Problem;
use crate::resources::owners::{OwnerView, TotalsView};

/// A line that says nothing, so that proxies and clients see that the connection lives.
pub(crate) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// After how many milliseconds a client connects again, unless the last event says otherwise.
const RETRY: u32 = 2_000;

/// Why a stream ends that may be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// It has lasted as long as it may.
    MaxAge,
    /// The token or key of its client is no longer valid.
    Expired,
    /// The service stops.
    Stopping,
    /// The database has another epoch: a backup was restored.
    Epoch,
    /// Changes were missed, or the client was too slow for them: it can resume.
    Lost,
    /// The database did not answer, or a bucket is damaged.
    Failed,
}

impl EndReason {
    /// As clients and metrics have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::MaxAge => "max-age",
            Self::Expired => "expired",
            Self::Stopping => "stopping",
            Self::Epoch => "epoch",
            Self::Lost => "lost",
            Self::Failed => "failed",
        }
    }

    /// Within how many milliseconds clients are to come back, each at a random time: all streams of a service
    /// may end at once.
    fn spread(self) -> u32 {
        match self {
            Self::MaxAge | Self::Expired | Self::Lost => 2_000,
            Self::Stopping | Self::Epoch | Self::Failed => 10_000,
        }
    }
}

/// The first bytes of a stream, before its first event. Without one an empty line follows.
pub(crate) fn head() -> String {
    format!("retry: {RETRY}\n")
}

/// Where a history ends at which a stream begins, which shows several histories if this one has a name.
pub(crate) fn position(totals: Totals, id: &str, name: Option<&str>) -> String {
    let data = of_history(name, json!({ "totalItems": totals.items() }));
    format!("event: position\nid: {id}\ndata: {data}\n\n")
}

/// The items of a page.
pub(crate) fn items(page: &LivePage, id: &str, name: Option<&str>) -> Bytes {
    let mut event = Vec::with_capacity(2 * page.bytes() + 64);
    write!(event, "id: {id}\ndata: {{").expect("a vector takes all bytes");
    if let Some(name) = name {
        write!(event, "\"{WATCH}\":\"{name}\",").expect("a vector takes all bytes");
    }
    event.extend_from_slice(b"\"items\":[");
    write_items(&mut event, page.items());
    event.extend_from_slice(b"]}\n\n");
    event.into()
}

/// The last event of a stream that may be resumed.
pub(crate) fn end(reason: EndReason) -> Bytes {
    let retry = rand::random_range(RETRY / 2..RETRY / 2 + reason.spread());
    let data = json!({ "reason": reason.name() });
    format!("retry: {retry}\nevent: end\ndata: {data}\n\n").into()
}

/// A place from which a stream of all owners is resumed.
pub(crate) fn place(place: &LogPlace) -> String {
    format!("event: position\nid: {place}\ndata: {{}}\n\n")
}

/// Owners that have something new. Without a place, more of them follow, and only then is there an `id`.
pub(crate) fn owners(definition: &Definition, news: &OwnersNews) -> String {
    let id = news.place.as_ref().map_or_else(String::new, |place| format!("id: {place}\n"));
    let view = |(owner, totals): &(OwnerId, Totals)| OwnerView {
        owner: OwnerMember::new(&definition.owner.field, owner),
        histories: [(Arc::clone(&definition.name), TotalsView::new(*totals))].into(),
    };
    let items: Vec<_> = news.owners.iter().map(view).collect();
    format!("{id}data: {}\n\n", json!({ "items": items }))
}

/// The last event of a history whose next items are deleted.
pub(crate) fn gone(problem: &Problem, name: Option<&str>) -> String {
    format!("event: gone\ndata: {}\n\n", of_history(name, problem.in_line()))
}

/// Data that says of which history it is, if the stream shows several.
fn of_history(name: Option<&str>, data: Value) -> Value {
    let mut named: Map<String, Value> =
        name.map(|name| (WATCH.to_owned(), name.into())).into_iter().collect();
    if let Value::Object(members) = data {
        named.extend(members);
    }
    named.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagebucket_model::domain::{PageSize, Seq};

    #[test]
    fn a_stream_begins_with_where_it_is() {
        let totals = |items| Totals::ending_with(PageSize::DEFAULT, Seq::new(items).ok());
        let one = position(totals(34), "34", None);
        assert_eq!(one, "event: position\nid: 34\ndata: {\"totalItems\":34}\n\n");
        let of_several = position(totals(0), "a.0.7", Some("customers/7/trades"));
        let data = "{\"watch\":\"customers/7/trades\",\"totalItems\":0}";
        assert_eq!(of_several, format!("event: position\nid: a.0.7\ndata: {data}\n\n"));
    }

    #[test]
    fn clients_come_back_one_by_one() {
        let retries: std::collections::BTreeSet<u32> = (0..50)
            .map(|_| {
                let event = String::from_utf8(end(EndReason::Stopping).to_vec()).unwrap();
                let (retry, rest) = event.strip_prefix("retry: ").unwrap().split_once('\n').unwrap();
                assert_eq!(rest, "event: end\ndata: {\"reason\":\"stopping\"}\n\n");
                retry.parse().unwrap()
            })
            .collect();
        assert!(retries.len() > 10 && retries.iter().all(|retry| (1_000..11_000).contains(retry)));
    }
}
