//! A closed loop of connections: each sends its next request after the answer to the last one.
//!
//! A closed loop slows down with the server, so its latencies are those of this number of connections and say
//! nothing of a server that is asked for more than it can do.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::JoinSet;

use super::{Answer, Block, Client, Customers, Result, Timing, Window};
use super::{flat_id, on_its_own, quantity, take_quantities, thread_time, token_line};

/// What a connection does again and again.
#[derive(Clone)]
pub enum Work {
    /// Posts trades: 1 is sent as one trade, more as an array.
    Append { trades: u64, customers: Customers },
    /// Any page of these customers.
    Read { customers: Customers, pages: RangeInclusive<u64>, form: Form },
    /// The newest page, and one request in ten appends a trade.
    NewestAndAppends { customers: Customers },
    /// 100 pages one after the other, each by the link of the one before, from anywhere in a history of
    /// `pages` pages: by the number of the trade before or by its id. Counts as one request.
    Walk { customer: u64, pages: u64, by_id: bool },
    /// One page of customer 1 again and again, which the client has already.
    Again { pages: RangeInclusive<u64>, form: Form },
    /// Posts this item, as JSON, to this path.
    Post(&'static str, Arc<str>),
    /// Gets any of these paths. An answer must be longer than this number of bytes.
    Get(Arc<[String]>, usize),
}

/// How a page is asked for.
#[derive(Clone, Copy)]
pub enum Form {
    /// As a listing by page number, with the totals that the contender has.
    Listed,
    /// As a listing by the id of the trade before, which a client has from the page before.
    Following,
    /// As it is stored.
    Stored,
    /// As it is stored, with a token.
    StoredWithToken,
}

/// What connections are to do.
#[derive(Clone)]
pub struct Load {
    pub connections: usize,
    pub work: Work,
    /// Whether each append has a key of its own.
    pub keyed: bool,
    /// `None`: until nothing is left to be done.
    pub timing: Option<Timing>,
    pub seed: u64,
}

impl Load {
    /// Appends without keys.
    pub fn append(connections: usize, trades: u64, customers: Customers, timing: Option<Timing>) -> Self {
        Self { connections, work: Work::Append { trades, customers }, keyed: false, timing, seed: 0 }
    }

    /// Puts a server under load.
    pub async fn run(self, address: SocketAddr) -> Result<Block> {
        on_its_own(async move {
            let (window, before) = (Window::open(self.timing), thread_time());
            let mut connections = JoinSet::new();
            for number in 0..self.connections as u64 {
                let (client, block) = (Client::new(address), Block::default());
                let rng = StdRng::seed_from_u64(self.seed.wrapping_add(number));
                let keyed = self.keyed;
                let mut connection =
                    Connection { client, rng, window, keyed, block, checked: false, known: None };
                let work = self.work.clone();
                connections.spawn(async move {
                    while !window.is_over() && connection.turn(&work).await? {}
                    Ok(connection.block)
                });
            }
            let blocks: Result<Vec<Block>> = connections.join_all().await.into_iter().collect();
            let load = thread_time().saturating_sub(before);
            Ok(Block { load, ..Block::merge(blocks?, window) })
        })
        .await
    }
}

/// A connection at work.
struct Connection {
    client: Client,
    rng: StdRng,
    window: Window,
    keyed: bool,
    block: Block,
    /// Whether an answer was found to show what was asked for.
    checked: bool,
    /// The path and the header of a page that it has.
    known: Option<(String, String)>,
}

impl Connection {
    /// Does its work once; false when nothing is left to be done.
    ///
    /// # Errors
    /// The answer does not show what was asked for: the run ends.
    async fn turn(&mut self, work: &Work) -> Result<bool> {
        match work {
            Work::Append { trades, customers } => return self.append(*trades, customers).await,
            Work::NewestAndAppends { customers } if self.rng.random_ratio(1, 10) => {
                return self.append(1, customers).await;
            }
            Work::NewestAndAppends { customers } => {
                let Some(customer) = customers.pick(&mut self.rng) else { return Ok(false) };
                self.read(listing(customer, "order=desc"), "", None).await?;
            }
            Work::Read { customers, pages, form } => {
                let Some(customer) = customers.pick(&mut self.rng) else { return Ok(false) };
                let page = self.rng.random_range(pages.clone());
                let headers = if let Form::StoredWithToken = form { token_line() } else { "" };
                self.read(form.path(customer, page), headers, Some(page)).await?;
            }
            Work::Walk { customer, pages, by_id } => self.walk(*customer, *pages, *by_id).await?,
            Work::Again { pages, form } => {
                let Some((path, header)) = &self.known else {
                    let path = form.path(1, self.rng.random_range(pages.clone()));
                    let answer = self.client.get(&path, "").await?;
                    let etag = answer.header("etag").ok_or_else(|| format!("{path} has no etag"))?;
                    self.known = Some((path, format!("if-none-match: {etag}\r\n")));
                    return Ok(true);
                };
                let sent = Instant::now();
                let unchanged = self.client.get(path, header).await.is_ok_and(|answer| answer.status == 304);
                self.block.answered(self.window, sent, 1, unchanged);
            }
            Work::Post(path, item) => {
                let sent = Instant::now();
                let stored = self.client.post(path, item).await.is_ok_and(|answer| answer.status == 201);
                self.block.answered(self.window, sent, 1, stored);
                self.block.appended(&take_quantities(1), stored);
            }
            Work::Get(paths, least) => {
                let (path, sent) = (&paths[self.rng.random_range(0..paths.len())], Instant::now());
                let whole = self.client.get(path, "").await.is_ok_and(|answer| answer.body.len() > *least);
                self.block.answered(self.window, sent, 1, whole);
            }
        }
        Ok(true)
    }

    async fn append(&mut self, trades: u64, customers: &Customers) -> Result<bool> {
        let Some(customer) = customers.pick(&mut self.rng) else { return Ok(false) };
        let (quantities, sent) = (take_quantities(trades), Instant::now());
        let key = self.keyed.then(rand::random);
        let stored = self.client.append(customer, &quantities, key).await.unwrap_or(false);
        self.block.answered(self.window, sent, trades, stored);
        self.block.appended(&quantities, stored);
        Ok(true)
    }

    /// Reads a path, and checks the first answer of the block for a page's trades.
    async fn read(&mut self, path: String, headers: &str, page: Option<u64>) -> Result<()> {
        let sent = Instant::now();
        let answer = self.client.get(&path, headers).await;
        self.block.answered(self.window, sent, 1, answer.as_ref().is_ok_and(|answer| answer.status == 200));
        if let (Ok(answer), Some(page), false) = (answer, page, self.checked) {
            check(&path, &answer, page)?;
            self.checked = true;
        }
        Ok(())
    }

    async fn walk(&mut self, customer: u64, pages: u64, by_id: bool) -> Result<()> {
        let first = self.rng.random_range(1..=pages - 100);
        let by_number = || listing(customer, &format!("after={}&limit=10", (first - 1) * 10));
        let mut path = if by_id { after(customer, first) } else { by_number() };
        let sent = Instant::now();
        for page in first..first + 100 {
            let answer = self.client.get(&path, "").await?;
            if page == first + 99 {
                check(&path, &answer, page)?;
            }
            path = next(&answer).ok_or_else(|| format!("{path} has no link to a next page"))?;
        }
        self.block.answered(self.window, sent, 1, true);
        Ok(())
    }
}

/// # Errors
/// The answer does not begin with this page.
fn check(path: &str, answer: &Answer<'_>, page: u64) -> Result<()> {
    let body = String::from_utf8_lossy(answer.body);
    let shows = |place| body.contains(&format!(r#""qty":{},"#, quantity(page, place)));
    if answer.status == 200 && shows(1) && shows(10) {
        return Ok(());
    }
    Err(format!("{path} was answered with {} {body}", answer.status).into())
}

/// The next page in a listing's `links`.
fn next(answer: &Answer<'_>) -> Option<String> {
    let (_, rest) = str::from_utf8(answer.body).ok()?.rsplit_once(r#""next":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

impl Form {
    fn path(self, customer: u64, page: u64) -> String {
        match self {
            Self::Listed => listing(customer, &format!("page={page}")),
            Self::Following => after(customer, page),
            Self::Stored | Self::StoredWithToken => format!("/v1/customers/{customer}/trades/pages/{page}"),
        }
    }
}

fn listing(customer: u64, query: &str) -> String {
    format!("/v1/customers/{customer}/trades?{query}")
}

/// A page by the id of the trade before it.
fn after(customer: u64, page: u64) -> String {
    match page {
        1 => listing(customer, "order=asc&limit=10"),
        _ => listing(customer, &format!("after={}&limit=10", flat_id(customer, page - 1, 10))),
    }
}
