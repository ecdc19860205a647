//! The fast path: a page in memory, and the 304 of a client that names its tag, answered before routing.
//!
//! It decides nothing itself. Hosts, the gate, permits, rates, tags and the page cache are asked by the
//! functions that the layers and the handler ask, and the heads of its answers were made by these layers.
//! A request that is not as plain as most, or that one of these functions does not let pass, is left to the
//! router, which answers it as if the fast path were not there. `api/service/tests/caching/both_ways.rs`
//! compares the two.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;
use futures_util::FutureExt;
use hyper::body::{Frame, SizeHint};
use pagebucket_engine::Engine;
use pagebucket_model::domain::{OwnerId, PageNumber};
use parking_lot::Mutex;
use tower_service::Service;

use crate::admission::client::Client;
use crate::admission::context::{Granted, RequestConnection, RequestContext};
use crate::admission::deadline;
use crate::admission::gate::answer_to;
use crate::admission::layer::{AdmittedAtOnce, RouteAdmission};
use crate::admission::permits::Permit;
use crate::admission::rate::ClientQuota;
use crate::admission::under_way::UnderWay;
use crate::answer::compression;
use crate::answer::log::{AccessLine, LoggedAnswer};
use crate::answer::measures::Measured;
use crate::answer::memory::OWN;
use crate::answer::notes::ItemCount;
use crate::answer::request_id::{self, RequestId};
use crate::answer::route_name::RouteName;
use crate::caching::control::Caching;
use crate::caching::reading::{Condition, ReadTerms, Reading};
use crate::middleware::hosts::Hosts;
use crate::middleware::inside;
use crate::middleware::observe::Observe;
use crate::pages::cache::Pages;
use crate::resources::history::page::json;

/// Answers what is in memory.
pub(crate) struct FastPath {
    observe: Arc<Observe>,
    hosts: Hosts,
    terms: ReadTerms,
    pages: Pages,
    routes: Vec<(PageRoute, Heads)>,
}

/// The route of the pages of a history.
pub(crate) struct PageRoute {
    engine: Engine,
    admission: RouteAdmission,
    name: RouteName,
    /// Its address before the owner, and between the owner and the number of the page.
    address: [Box<str>; 2],
}

/// The heads of its answers, each with a tag, a length and a request id that are replaced.
struct Heads {
    whole: HeaderMap,
    unchanged: HeaderMap,
}

/// What is answered to a request.
enum Found {
    /// 304 with this tag.
    Unchanged(HeaderValue),
    /// The page: its JSON, tag and number of items.
    Whole(Bytes, HeaderValue, usize),
}

impl PageRoute {
    /// The route with this address.
    pub(crate) fn new(address: &str, engine: Engine, admission: RouteAdmission) -> Self {
        let (before, rest) = address.split_once('{').expect("the address names an owner");
        let (_, rest) = rest.split_once('}').expect("a parameter ends");
        let (between, _) = rest.split_once('{').expect("the address names a page");
        let (name, address) = (RouteName::Known(address.into()), [before.into(), between.into()]);
        Self { engine, admission, name, address }
    }

    /// The owner that an address of the route names, and the number of the page.
    fn parameters<'a>(&self, path: &'a str) -> Option<(&'a str, PageNumber)> {
        let [before, between] = &self.address;
        let rest = path.strip_prefix(&**before)?;
        let (owner, rest) = rest.split_at(rest.bytes().position(|byte| byte == b'/')?);
        Some((owner, PageNumber::parse(rest.strip_prefix(&**between)?).ok()?))
    }
}

impl FastPath {
    /// Of these routes, whose other requests pass the layers of `observe`, `origins` and `hosts`.
    pub(crate) fn new(
        routes: Vec<PageRoute>,
        observe: Arc<Observe>,
        origins: &[String],
        hosts: Hosts,
        terms: ReadTerms,
        pages: Pages,
    ) -> Self {
        let with_heads = |route: PageRoute| {
            let any = OwnerId::Integer(1);
            let caching = Caching::of_full(terms.epoch, route.engine.definition(), &any, PageNumber::FIRST);
            let granted = || Granted { deadline: deadline::from_now(), quota: ClientQuota::default() };
            let reading = || Reading::begin(granted(), terms, &HeaderMap::new());
            let mut hit = reading();
            hit.note_lookup(true);
            let whole = hit.answer(&caching, json(Bytes::from_static(b"{}"), 1));
            let unchanged = reading().not_modified(&caching, caching.tag.header());
            let complete = |answer| completed(&observe, origins, route.admission.is_open(), answer);
            let heads = Heads { whole: complete(whole), unchanged: complete(unchanged) };
            (route, heads)
        };
        let routes = routes.into_iter().map(with_heads).collect();
        Self { observe, hosts, terms, pages, routes }
    }

    /// Answers a request that came over this connection, if its answer is in memory and nothing speaks
    /// against it.
    pub(crate) fn answer(&self, request: &mut Request, connection: &RequestConnection) -> Option<Response> {
        if !is_plain(request) || self.observe.traces.is_some() {
            return None;
        }
        let path = request.uri().path();
        let mut routes = self.routes.iter();
        let (route, heads, (owner, page)) =
            routes.find_map(|(route, heads)| Some((route, heads, route.parameters(path)?)))?;
        if !self.hosts.allow(request) {
            return None;
        }
        let (principal, owner) = route.admission.client_and_owner(request.headers(), owner)?;
        let found = self.find(route, &owner, page, request.headers())?;
        let proxies = &self.observe.proxies;
        let client = Client::of(principal.as_deref(), connection.peer, request.headers(), proxies);
        let AdmittedAtOnce { quota, held } = route.admission.admit_at_once(request, client)?;

        // From here on the request is answered, and counted.
        let id = RequestId::of(request.headers());
        tracing::trace!(id = id.as_str(), "answered before routing");
        let peer = proxies.address(connection.peer, request.headers());
        let name = Some(route.name.clone());
        let line = AccessLine::begin(request, id.clone(), peer, name.clone(), &self.observe.refusals, None);
        let (status, head, tag, data, items) = match found {
            Found::Unchanged(tag) => (StatusCode::NOT_MODIFIED, &heads.unchanged, tag, Bytes::new(), None),
            Found::Whole(json, tag, items) => {
                self.pages.count_hit();
                (StatusCode::OK, &heads.whole, tag, json, Some(ItemCount::of(items)))
            }
        };
        let mut head = head.clone();
        head.insert(header::ETAG, tag);
        head.insert(request_id::HEADER, id.0);
        head.insert(header::CONTENT_LENGTH, data.len().into());
        quota.tell(&mut head);
        let measured = Measured::of(request, name);
        self.observe.meters.count(&measured, status, Some(line.elapsed()), principal.as_deref());
        let line = line.answered(LoggedAnswer::new(status, principal, items));
        let mut answer = Response::new(Body::new(PageBody { data, line, _held: held }));
        (*answer.status_mut(), *answer.headers_mut()) = (status, head);
        Some(answer)
    }

    /// What is answered without the database.
    fn find(
        &self,
        PageRoute { engine, .. }: &PageRoute,
        owner: &OwnerId,
        page: PageNumber,
        headers: &HeaderMap,
    ) -> Option<Found> {
        let condition = Condition::of(headers);
        let caching = || Caching::of_full(self.terms.epoch, engine.definition(), owner, page);
        if let Some((_, tag)) = condition.named(engine, caching) {
            return Some(Found::Unchanged(tag));
        }
        let page = self.pages.at_once(engine.reads(), owner, page)?;
        // A longer page takes memory that is counted, and another 304 says that the page was looked up.
        let is_plain = page.json.len() <= OWN
            && condition.met_by(&page.caching).is_none()
            // Nothing is compressed here.
            && !headers.contains_key(header::ACCEPT_ENCODING);
        is_plain.then(|| Found::Whole(page.json.clone(), page.caching.tag.header(), page.count()))
    }
}

/// Whether a request has nothing by which the head of its answer would be another one.
fn is_plain(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && request.version() >= Version::HTTP_11
        && request.uri().query().is_none()
        && request.body().is_end_stream()
        && !headers.contains_key(header::ORIGIN)
}

/// The head of an answer, after the layers have completed it.
fn completed(observe: &Observe, origins: &[String], is_open: bool, answer: Response) -> HeaderMap {
    let id = RequestId::default();
    let mut request = Request::<Body>::default();
    request.extensions_mut().insert(RequestContext::new(id.clone(), RequestConnection::default()));
    let answer = if is_open { answer } else { answer_to(None, answer) };
    // The layers take a service, which is called once.
    let answer = Arc::new(Mutex::new(Some(answer)));
    let answer = move || std::future::ready(answer.lock().take().unwrap_or_default());
    let mut layers: Router = Router::new().fallback(answer).layer(inside(origins.to_vec(), Hosts::any()));
    let answer = async {
        let Ok(answer) = layers.call(request).await;
        compression::finish(answer, false).await
    };
    let mut answer = answer.now_or_never().expect("no layer waits");
    observe.complete(answer.headers_mut(), &id);
    std::mem::take(answer.headers_mut())
}

/// The body of an answer, with the end of which its request has ended.
struct PageBody {
    data: Bytes,
    line: AccessLine,
    _held: (Permit, UnderWay),
}

impl HttpBody for PageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = std::mem::take(&mut self.data);
        self.line.note_sent(data.len() as u64);
        Poll::Ready((!data.is_empty()).then(|| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.len() as u64)
    }
}
