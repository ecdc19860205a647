//! The body of a live stream, which is made as the client reads it: the next event is read when the
//! connection has taken the last one. So a client that is slow holds one event, and the pages that its
//! readers have read, which are bounded together. The server's write timeout cuts off one that does not read.
//!
//! A stream shows one history, or several, or which owners have something new. Those that have something new
//! take turns: each event is followed by one of every other history that was ready before.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, unfold};
use futures_util::{FutureExt, Stream, StreamExt};
use metrics::Counter;
use pagebucket_engine::live::{LivePage, LiveReader, OwnersNews, OwnersReader};
use pagebucket_engine::{Error, Gone, Result};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::Position;
use pagebucket_model::metric::{LIVE_ENDS, LIVE_EVENTS, LIVE_LAG, LIVE_READERS};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::event::{self, EndReason};
use super::ids::EventIds;
use crate::admission::context::RequestContext;
use crate::admission::lifetime::Lifetime;
use crate::admission::permits::LongPermit;
use crate::admission::rate::{Class, ClientQuota};
use crate::answer::memory::{Account, AnswerMemory, OWN_WITHOUT_PERMIT};
use crate::answer::notes::ItemCount;
use crate::problem::Problem;
use crate::state::Api;

/// How long a stream is silent at most.
const SILENCE: Duration = Duration::from_secs(15);

/// A history that a stream begins to show.
pub(crate) struct StreamPart {
    /// Its reader, unless what comes next is deleted.
    pub reader: Result<LiveReader, Gone>,
    /// Whether the client named no position, and is told where the end is.
    pub at_end: bool,
}

/// What a stream has of its client until it ends.
pub(crate) struct StreamClient {
    pub quota: ClientQuota,
    pub lifetime: Lifetime,
    pub account: Account,
    pub permit: LongPermit,
    /// Changes when the database gets another epoch. It is of a time before the histories were read.
    pub renewals: watch::Receiver<u64>,
}

impl FromRequestParts<Arc<Api>> for StreamClient {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, Infallible> {
        let lifetime = Lifetime::of_request(parts, &api.gate, &api.clock);
        let RequestContext { quota, connection, permit, .. } = RequestContext::of_mut(&mut parts.extensions);
        Ok(Self {
            quota: quota.clone(),
            lifetime,
            account: connection.account.clone(),
            permit: permit.take().expect("admission gives each live stream a permit"),
            renewals: api.store.epoch_renewals(),
        })
    }
}

/// A live stream. It ends when it is dropped, because a client may disconnect at any time.
pub(crate) struct LiveStream {
    /// What it shows, except histories that are gone.
    waiting: FuturesUnordered<BoxFuture<'static, Awaited>>,
    ids: EventIds,
    /// At first the first bytes.
    ready: Option<Bytes>,
    /// The memory that the last event holds.
    room: AnswerMemory,
    /// Events that were sent and not taken from the quota yet.
    due: usize,
    quota: ClientQuota,
    lifetime: Lifetime,
    /// Cancelled when the service stops.
    stop: CancellationToken,
    renewals: watch::Receiver<u64>,
    /// How long it is silent at most.
    silence: Duration,
    /// When it has lasted as long as it may.
    end: Instant,
    /// Why it has ended.
    ended: Option<&'static str>,
    /// The items that were sent, for the log.
    pub items: ItemCount,
    _permit: LongPermit,
}

/// What was awaited.
enum Awaited {
    Page(Box<StreamedHistory>, Result<LivePage>),
    Owners(Box<StreamedOwners>, Result<OwnersNews>),
}

/// A history whose next page is awaited.
struct StreamedHistory {
    index: usize,
    reader: LiveReader,
    events: Counter,
}

impl StreamedHistory {
    /// Waits for the next page.
    async fn next(mut self: Box<Self>) -> Awaited {
        let page = self.reader.next().await;
        Awaited::Page(self, page)
    }
}

/// All owners of a history.
struct StreamedOwners {
    reader: OwnersReader,
    definition: Arc<Definition>,
    events: Counter,
}

impl StreamedOwners {
    /// Waits until some have something new.
    async fn next(mut self: Box<Self>) -> Awaited {
        let news = self.reader.next().await;
        Awaited::Owners(self, news)
    }
}

/// What comes next.
enum Next {
    Awaited(Awaited),
    End(EndReason),
    Silence,
}

impl LiveStream {
    /// A stream of these histories, at least one.
    pub(crate) fn of_histories(
        parts: Vec<StreamPart>,
        mut ids: EventIds,
        api: &Api,
        client: StreamClient,
    ) -> Self {
        let (waiting, mut head, readers) = (FuturesUnordered::new(), event::head(), parts.len());
        let (bare, turns) = (head.len(), Arc::new(Semaphore::new(1)));
        // First all positions, so that each `id` has them.
        for (index, part) in parts.iter().enumerate() {
            if let Ok(reader) = &part.reader {
                ids.at(index, reader.position());
            }
        }
        for (index, StreamPart { reader, at_end }) in parts.into_iter().enumerate() {
            match reader {
                Ok(reader) => {
                    if at_end {
                        let (totals, id) = (reader.totals(), ids.at(index, reader.position()));
                        head += &event::position(totals, &id, ids.name(index));
                    }
                    let events = events_of(reader.definition());
                    let reader = reader.among(readers, &turns);
                    waiting.push(Box::new(StreamedHistory { index, reader, events }).next().boxed());
                }
                Err(gone) => head += &gone_of(gone, &ids, index),
            }
        }
        if head.len() == bare {
            head.push('\n');
        }
        Self::begin(waiting, ids, head, (api.limits.live_age, api.stop.clone()), client)
    }

    /// A stream of the owners of a history that have something new.
    pub(crate) fn of_owners(
        reader: OwnersReader,
        definition: Arc<Definition>,
        api: &Api,
        client: StreamClient,
    ) -> Self {
        let events = events_of(&definition);
        let waiting = FuturesUnordered::new();
        waiting.push(Box::new(StreamedOwners { reader, definition, events }).next().boxed());
        let end = (api.limits.live_age, api.stop.clone());
        Self::begin(waiting, EventIds::One, event::head() + "\n", end, client)
    }

    fn begin(
        waiting: FuturesUnordered<BoxFuture<'static, Awaited>>,
        ids: EventIds,
        head: String,
        (age, stop): (Duration, CancellationToken),
        client: StreamClient,
    ) -> Self {
        metrics::gauge!(LIVE_READERS).increment(1);
        let StreamClient { quota, lifetime, account, permit, renewals } = client;
        Self {
            ended: waiting.is_empty().then_some("gone"),
            waiting,
            ids,
            ready: Some(head.into()),
            room: account.overdraw(OWN_WITHOUT_PERMIT, None),
            due: 0,
            quota,
            lifetime,
            stop,
            renewals,
            silence: SILENCE,
            end: Instant::now() + age,
            items: ItemCount::default(),
            _permit: permit,
        }
    }

    /// Its events, as bytes.
    pub(crate) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        unfold(self, async |mut stream| stream.next().await.map(|event| (Ok(event), stream)))
    }

    /// The next event, or a comment; `None` after the last.
    async fn next(&mut self) -> Option<Bytes> {
        // The last event is with the connection by now.
        self.room.keep(0);
        if let Some(ready) = self.ready.take() {
            self.room.keep(ready.len());
            return Some(ready);
        }
        if self.ended.is_some() {
            return None;
        }
        let next = tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::End(EndReason::Stopping),
            () = self.lifetime.over() => Next::End(EndReason::Expired),
            Ok(()) = self.renewals.changed() => Next::End(EndReason::Epoch),
            () = sleep_until(self.end) => Next::End(EndReason::MaxAge),
            awaited = next_of(&mut self.waiting, &self.quota, &mut self.due) => Next::Awaited(awaited),
            () = sleep(self.silence) => Next::Silence,
        };
        Some(match next {
            Next::Silence => event::COMMENT,
            Next::End(reason) => self.end(reason),
            Next::Awaited(Awaited::Page(of, page)) => self.show(of, page),
            Next::Awaited(Awaited::Owners(of, news)) => self.show_owners(of, news),
        })
    }

    fn show(&mut self, of: Box<StreamedHistory>, page: Result<LivePage>) -> Bytes {
        match page {
            Ok(page) => {
                let event = self.send(&of, &page);
                self.waiting.push(of.next().boxed());
                event
            }
            Err(Error::Gone(gone)) => {
                self.ended = self.waiting.is_empty().then_some("gone");
                gone_of(gone, &self.ids, of.index).into()
            }
            Err(Error::OtherEpoch) => self.end(EndReason::Epoch),
            Err(error) => {
                tracing::error!(after = of.reader.position().get(), %error, "a live stream failed");
                self.end(EndReason::Failed)
            }
        }
    }

    fn show_owners(&mut self, of: Box<StreamedOwners>, news: Result<OwnersNews>) -> Bytes {
        let news = match news {
            Ok(news) => news,
            Err(error) => {
                tracing::debug!(%error, "a live stream of all owners lost its place");
                return self.end(EndReason::Lost);
            }
        };
        let event = match &news {
            OwnersNews { owners, place: Some(place) } if owners.is_empty() => event::place(place),
            news => {
                self.due += 1;
                of.events.increment(1);
                event::owners(&of.definition, news)
            }
        };
        self.room.keep(event.len());
        self.waiting.push(of.next().boxed());
        event.into()
    }

    fn end(&mut self, reason: EndReason) -> Bytes {
        self.ended = Some(reason.name());
        event::end(reason)
    }

    fn send(&mut self, of: &StreamedHistory, page: &LivePage) -> Bytes {
        let id = self.ids.at(of.index, Position::behind(page.last_seq()));
        let event = event::items(page, &id, self.ids.name(of.index));
        self.room.keep(event.len());
        self.due += 1;
        self.items.add(page.items().count() as u64);
        of.events.increment(1);
        if let Some(lag) = page.lag() {
            metrics::histogram!(LIVE_LAG).record(lag.as_secs_f64());
        }
        event
    }
}

/// The event of a history whose next items are deleted.
fn gone_of(gone: Gone, ids: &EventIds, index: usize) -> String {
    event::gone(&Problem::from(Error::Gone(gone)), ids.name(index))
}

/// Counts the events of a history.
fn events_of(definition: &Definition) -> Counter {
    metrics::counter!(LIVE_EVENTS, "collection" => definition.name.to_string())
}

/// Waits for what comes next of any of them. What was sent before is paid first: a client in debt waits.
async fn next_of(
    waiting: &mut FuturesUnordered<BoxFuture<'static, Awaited>>,
    quota: &ClientQuota,
    due: &mut usize,
) -> Awaited {
    while *due > 0 {
        // One by one, because this may be dropped.
        quota.pace(Class::Reads, 1).await;
        *due -= 1;
    }
    waiting.next().await.expect("a stream without histories has ended")
}

impl Drop for LiveStream {
    fn drop(&mut self) {
        self.quota.owe_of(Class::Reads, self.due);
        metrics::gauge!(LIVE_READERS).decrement(1);
        metrics::counter!(LIVE_ENDS, "reason" => self.ended.unwrap_or("abandoned")).increment(1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;
    use crate::admission::client::Client;
    use crate::admission::permits::Permits;

    /// A stream in which nothing happens, which may last this long and be silent this long.
    fn quiet(age: Duration, silence: Duration) -> (LiveStream, watch::Sender<u64>) {
        let permit = Permits::new(1, "streams").take(Client::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let epoch = watch::Sender::new(0);
        let client = StreamClient {
            quota: ClientQuota::default(),
            lifetime: Lifetime::default(),
            account: Account::default(),
            permit: LongPermit::new(permit.unwrap()),
            renewals: epoch.subscribe(),
        };
        let waiting = FuturesUnordered::new();
        waiting.push(std::future::pending().boxed());
        let stop = CancellationToken::new();
        let mut stream = LiveStream::begin(waiting, EventIds::One, event::head(), (age, stop), client);
        assert_eq!(stream.silence, Duration::from_secs(15), "as documented");
        stream.silence = silence;
        (stream, epoch)
    }

    #[tokio::test]
    async fn a_quiet_stream_has_comments_until_its_end() {
        let (mut stream, _epoch) = quiet(Duration::from_secs(3_600), Duration::from_millis(1));
        assert_eq!(stream.next().await.as_deref(), Some(&b"retry: 2000\n"[..]));
        for _ in 0..3 {
            assert_eq!(stream.next().await, Some(event::COMMENT));
        }
        stream.end = Instant::now();
        let end = stream.next().await.expect("an event");
        assert!(end.ends_with(b"event: end\ndata: {\"reason\":\"max-age\"}\n\n"), "{end:?}");
        assert_eq!(stream.next().await, None);
    }
}
