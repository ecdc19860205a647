//! What is measured: the name, kind, labels and meaning of each metric, once.
//!
//! Code that measures uses the constants. [`describe`] registers the texts, so that `GET /metrics` shows
//! them as `HELP`; `make reference` writes `docs/reference/metrics.md` from [`ALL`]. [`begin`] registers each
//! series whose labels are known: a series that begins with its first event has no increase, and an alarm
//! that asks for one would miss that event.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use self::Values::{Histories, Known, Open, Written};

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name, by Prometheus' conventions: base units, `_total` for counters.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static [Label],
    /// What it means, in Markdown.
    pub help: &'static str,
}

/// A label of a metric.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Its name.
    pub name: &'static str,
    /// The values that it may have.
    pub values: Values,
}

/// The values of a label.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// These.
    Known(&'static [&'static str]),
    /// The names of the histories that are served.
    Histories,
    /// The same, and the other collections that are written by numbered commands.
    Written,
    /// They are known when something is measured.
    Open,
}

/// The collections of a service, as values of labels.
#[derive(Debug, Clone, Copy)]
pub struct Collections<'a> {
    /// The names of the histories that are served.
    pub histories: &'a [&'a str],
    /// The others that are written by numbered commands.
    pub others: &'a [&'a str],
}

/// Kinds of metrics, as Prometheus has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows.
    Counter,
    /// It rises and falls.
    Gauge,
    /// How many samples lay below each of some bounds.
    Histogram,
}

macro_rules! metrics {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal: $values:expr),*] $help:literal;)*) => {
        $(
            #[doc = $help]
            pub const $constant: &str = $name;
        )*

        /// All of them, in the order of `docs/reference/metrics.md`.
        pub const ALL: &[Metric] = &[
            $(Metric {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$(Label { name: $label, values: $values }),*],
                help: $help,
            },)*
        ];
    };
}

metrics! {
    BUILD: Gauge "pagebucket_build_info" ["version": Open, "os": Open, "arch": Open]
        "always 1. The labels say which program runs: its version, operating system and processor";
    REQUESTS: Counter "pagebucket_http_requests_total" ["method": Open, "route": Open, "status": Open]
        "answered requests. `route` is the path with its parameters' names, or `none` where nothing is served. Each route has its series with the `status` 500 and 503 from the start";
    REQUEST_SECONDS: Histogram "pagebucket_http_request_duration_seconds" ["method": Open, "route": Open]
        "time until the head of the answer. Not of live streams and long polls";
    CLIENT_REQUESTS: Counter "pagebucket_client_requests_total" ["principal": Open]
        "answered requests of authenticated clients, by their names. The first 100 clients have a series each, the others share `other`";
    UNDER_WAY: Gauge "pagebucket_http_requests_under_way" ["class": Known(&["appends", "reads", "streams"])]
        "requests under `/v1` that were admitted and have not ended: their answers are not taken yet. `streams`: uploads, exports, live streams and long polls; `appends`: other requests that store or count something; `reads`: other requests that read";
    REFUSALS: Counter "pagebucket_auth_refusals_total" ["reason": Known(&["no_token", "invalid_token", "scope", "owner"])]
        "requests that were refused: `no_token`, `invalid_token` (401), `scope`, `owner` (403)";
    REFUSED_CONNECTIONS: Counter "pagebucket_refused_connections_total" []
        "connections that were closed at once, because their address had as many as `--max-connections-per-address` allows";
    RATE_LIMITED: Counter "pagebucket_rate_limited_total" ["class": Known(&["appends", "reads", "streams", "sign-in"])]
        "requests that were refused (429) because of `--rate-limit`: `appends`, `reads`, `streams`, and `sign-in` for tokens and keys that had to be verified";
    RATE_CLIENTS: Gauge "pagebucket_rate_clients" ["class": Known(&["appends", "reads", "streams", "sign-in"])]
        "clients whose use is remembered for `--rate-limit`, for `appends`, `reads`, `streams` and `sign-in`; at most 32,768 of each class";
    QUEUED_BYTES: Gauge "pagebucket_append_queue_bytes" []
        "memory of items that wait to be committed, or are being committed; bounded by `--max-queue-mib`";
    RETRIES: Counter "pagebucket_commit_retries_total" ["collection": Written, "cause": Known(&["stale_tail", "refused", "unknown_outcome"])]
        "`stale_tail`: requests placed again, because another instance had appended; `refused`: page views sent again, because another writer had created their minute at the same time; `unknown_outcome`: commands replayed under their number, because no trustworthy answer came";
    SESSIONS_ABANDONED: Counter "pagebucket_sessions_abandoned_total" ["collection": Written]
        "commands of unknown outcome that were given up at their deadline. Each leaves its session of the database alone for a minute, in which the command may still run; then the session is used again";
    COMMIT_SECONDS: Histogram "pagebucket_commit_duration_seconds" ["collection": Written]
        "time of one `update` command, replays included";
    COMMIT_STATEMENTS: Histogram "pagebucket_commit_statements" ["collection": Written]
        "documents that one command is to write";
    COMMIT_ITEMS: Histogram "pagebucket_commit_items" ["collection": Histories]
        "items in one command, stored or refused. They share one journal flush";
    COMMIT_VIEWS: Histogram "pagebucket_commit_views" []
        "page views in one command. They share one journal flush";
    QUEUED_COUNTERS: Gauge "pagebucket_page_view_queue" []
        "counters that wait for their commit, or are being committed, as clients sent them. Each counter is for one page and second; bounded by `--max-queue-mib`, apart from items";
    KEYED_APPENDS: Counter "pagebucket_keyed_appends_total" ["result": Known(&["stored", "replayed", "reused", "unexpected", "failed"])]
        "requests with an `Idempotency-Key`, not counting uploads. `stored`; `replayed`: an earlier request had stored all of it; `reused`: another request has the key; `unexpected`: the history had another total than the request expected; `failed`: for another reason, mostly to be sent again";
    CATALOG_LOOKUPS: Counter "pagebucket_catalog_lookups_total" ["result": Known(&["hit", "miss"])]
        "`hit`: the owner's tail was remembered; `miss`: it was read first";
    CATALOG_OWNERS: Gauge "pagebucket_catalog_owners" ["collection": Histories, "committer": Open]
        "owners whose tails are remembered; `--catalog-size` bounds their sum for each history";
    PAGE_LOOKUPS: Counter "pagebucket_page_cache_lookups_total" ["result": Known(&["hit", "miss"])]
        "lookups of full pages in the page cache. `hit`: the page was there; `miss`: it was read from the database, perhaps together with other requests that missed it at the same time. A page that is found not to be full is also a miss";
    PAGE_BYTES: Gauge "pagebucket_page_cache_bytes" []
        "bytes of the remembered pages; bounded by `--page-cache`";
    PAGES_CACHED: Gauge "pagebucket_page_cache_pages" []
        "number of remembered pages";
    EXPORTS: Counter "pagebucket_exports_total" ["result": Known(&["finished", "failed", "expired", "abandoned"])]
        "ended exports over HTTP. `finished`; `failed`: the database did not come back in time, and the client saw an error; `expired`: the client's token expired; `abandoned`: the client closed the connection, or was cut off because it read too slowly";
    EXPORTED_ITEMS: Counter "pagebucket_exported_items_total" ["collection": Histories]
        "items in these exports";
    LIVE_READERS: Gauge "pagebucket_live_readers" []
        "live streams that have begun and not ended, and long polls that wait; bounded by `--max-live`";
    LIVE_EVENTS: Counter "pagebucket_live_events_total" ["collection": Histories]
        "events with items, or with owners, that live streams have sent";
    LIVE_LAG: Histogram "pagebucket_live_lag_seconds" []
        "time from the commit of an append until this instance sent the event of a live stream. Not of items that the client was behind. Of appends at other instances, and of those here whose change comes before their acknowledgement, by the clocks of the primary and of this machine, in whole milliseconds; where the database does not tell the time, from when this instance learned of the append";
    LIVE_RESUMES: Counter "pagebucket_live_resumes_total" []
        "live streams that clients have resumed, by `Last-Event-ID` or `lastEventId`";
    LIVE_ENDS: Counter "pagebucket_live_ends_total" ["reason": Known(&["max-age", "expired", "stopping", "epoch", "gone", "lost", "failed", "abandoned"])]
        "ended live streams. `max-age`: after `--live-max-age`; `expired`: the client's token; `stopping`: the service was stopped; `epoch`: a backup was restored, or last items were deleted by hand; `gone`: what comes next is deleted; `lost`: of all owners, changes were missed; `failed`: the database did not answer, or a bucket is damaged; `abandoned`: the client closed the connection, or was cut off because it read too slowly";
    LIVE_STREAMS: Counter "pagebucket_live_change_streams_total" ["start": Known(&["first", "resumed", "again"])]
        "change streams that were opened for live readers. `first`: there was no live reader before; `resumed`: after one that broke, at its place; `again`: after one that broke and lost its place, and the tails of all watched owners were read";
    TASK_PANICS: Counter "pagebucket_task_panics_total" ["task": Known(&["committer", "issuer-keys", "live-feed", "live-owners", "live-room", "marker-poll", "page-cache", "private-mongod", "refusals", "registrar", "series-feeder", "stream-lifetime", "tile-maker"])]
        "tasks that have panicked: a fault of the program. Those who wait for one are told. `live-room`, `live-owners`, `refusals` and `tile-maker` run again when they are needed, `committer` and `registrar` go on at once, and a stream ends with its `stream-lifetime`; `issuer-keys`, `live-feed`, `marker-poll`, `page-cache` and `series-feeder` are started again after a second, and `/readyz` is 500 until then; `private-mongod` does not run again";
    LIVE_SILENCE: Gauge "pagebucket_live_change_stream_silent_seconds" []
        "time since the change stream of live readers has answered, from 1.5 s on; 0 while it answers, or there are no readers. Meanwhile the tails of their owners are read every second, and streams of all owners wait";
    UPLOADS_UNDER_WAY: Gauge "pagebucket_uploads_under_way" []
        "uploads that have begun and not ended";
    UPLOAD_BYTES: Gauge "pagebucket_upload_held_bytes" []
        "memory of lines that uploads have read and not stored, and of outcomes that clients have not taken. From about 12 MiB on, uploads read no faster than lines are stored";
    UPLOADS: Counter "pagebucket_uploads_total" ["result": Known(&["finished", "failed", "abandoned", "stopped"])]
        "ended uploads. `finished`: every line of the body is stored or refused; `failed`: because of the database, or the only owner's history takes no more; `abandoned`: the body was cut or came too slowly, the client did not take its answer, or its token expired; `stopped`: the service was stopped";
    LINES_READ: Counter "pagebucket_upload_lines_read_total" []
        "lines of uploads that were read, not counting blank lines";
    UPLOADED_LINES: Counter "pagebucket_upload_lines_total" ["result": Known(&["stored", "refused", "unknown", "not_stored"])]
        "the same lines by result. `stored`, now or by an earlier upload with the same key; `refused`, for a reason of their own; `unknown`; `not_stored`, because the upload had ended. A line that was read and has no result yet is under way";
    RETIRED_PAGES: Counter "pagebucket_retired_pages_total" []
        "pages that this instance has deleted because of `--retain-pages` or `--retain-days`";
    ERASURES: Counter "pagebucket_erasures_total" ["result": Known(&["erasing", "erased", "swept"])]
        "answered requests to erase an owner. `erasing`: pages are left; `erased`: the last sweep is left; `swept`: nothing is left to do";
    HOUSEKEEPING: Counter "pagebucket_housekeeping_total" ["result": Known(&["done", "waiting", "elsewhere", "failed"])]
        "rounds of housekeeping, one a minute: `done`; `waiting`: done, but no page was retired by its date, because the time is in doubt; `elsewhere`: another instance did it; `failed`: the database did not answer, or refused";
    PREFERRED_READS: Counter "pagebucket_preferred_reads_total" ["result": Known(&["full", "behind", "views", "failed"])]
        "reads of full pages and page views that `--read-preference` sent to another server than the primary. `full`; `behind`: the server did not have all of them yet, or a page is not full; `views`: page views, as that server has them; `failed`: the server did not answer in time. After `behind` and `failed` the primary was asked";
    TILES: Counter "pagebucket_summary_tiles_total" ["result": Known(&["made", "stub", "kept", "read"])]
        "tiles of summaries: `made`; `stub`: made without points, because these are hardly shorter than the pages; `kept`: made before its pages were retired; `read`: instead of 64 pages each";
    SERIES_LAG: Gauge "pagebucket_series_lag_seconds" ["collection": Histories]
        "how far the native time series is behind its history: 0 when all is fed, and until all owners were looked at for the first time. Instances that do not feed report it when the one that does has said nothing for 10 s, and one that fails to feed reports since when";
    SERIES_ITEMS: Counter "pagebucket_series_items_total" ["collection": Histories]
        "items that this instance has fed to native time series";
    SERIES_COPIES: Counter "pagebucket_series_copies_total" ["collection": Histories]
        "owners whose measurements were copied, because the outcome of an insert was unknown";
}

/// Registers what each metric means.
pub fn describe() {
    for Metric { name, kind, help, .. } in ALL.iter().copied() {
        match kind {
            MetricKind::Counter => describe_counter!(name, help),
            MetricKind::Gauge => describe_gauge!(name, help),
            MetricKind::Histogram => describe_histogram!(name, help),
        }
    }
}

/// Registers each series of a service whose labels are known, at 0. What is measured already stays.
pub fn begin(collections: Collections<'_>) {
    for metric in ALL {
        for labels in metric.series(collections) {
            match metric.kind {
                MetricKind::Counter => drop(counter!(metric.name, &labels)),
                MetricKind::Gauge => drop(gauge!(metric.name, &labels)),
                MetricKind::Histogram => drop(histogram!(metric.name, &labels)),
            }
        }
    }
}

impl Metric {
    /// The labels of each series that is known before something is measured.
    pub fn series(&self, collections: Collections<'_>) -> Vec<Vec<(&'static str, String)>> {
        self.labels.iter().fold(vec![Vec::new()], |all, label| {
            let values = label.values.known(collections);
            let with =
                |labels: &Vec<_>, value: &&str| [&labels[..], &[(label.name, (*value).to_owned())]].concat();
            all.iter().flat_map(|labels| values.iter().map(move |value| with(labels, value))).collect()
        })
    }
}

impl Values {
    fn known(self, Collections { histories, others }: Collections<'_>) -> Vec<&str> {
        match self {
            Known(values) => values.to_vec(),
            Histories => histories.to_vec(),
            Written => [histories, others].concat(),
            Open => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLLECTIONS: Collections<'static> = Collections { histories: &["trades"], others: &["page_views"] };

    fn series(name: &str) -> Vec<Vec<(&'static str, String)>> {
        let metric = ALL.iter().find(|metric| metric.name == name).unwrap();
        metric.series(COLLECTIONS)
    }

    #[test]
    fn each_combination_of_known_values_is_a_series() {
        let labels =
            |labels: [(&'static str, &str); 2]| labels.map(|(name, value)| (name, value.to_owned())).to_vec();
        let expected: Vec<_> = ["trades", "page_views"]
            .into_iter()
            .flat_map(|collection| {
                ["stale_tail", "refused", "unknown_outcome"]
                    .map(|cause| labels([("collection", collection), ("cause", cause)]))
            })
            .collect();
        assert_eq!(series(RETRIES), expected);
        assert_eq!(series(EXPORTED_ITEMS), [[("collection", "trades".to_owned())]]);
        assert!(matches!(&series(LINES_READ)[..], [labels] if labels.is_empty()));
        assert!(series(CLIENT_REQUESTS).is_empty() && series(CATALOG_OWNERS).is_empty());
    }

    #[test]
    fn each_known_value_is_documented() {
        for Metric { name, labels, help, .. } in ALL {
            for label in *labels {
                if let Known(values) = label.values {
                    let is_missing = |value: &&&str| !help.contains(&format!("`{value}`"));
                    assert_eq!(values.iter().find(is_missing), None, "{name}");
                }
            }
        }
    }
}
