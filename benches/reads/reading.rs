//! What connections ask for.

use std::ops::RangeInclusive;
use std::time::Instant;

use rand::Rng;
use rand::rngs::StdRng;

use crate::harness::Result;
use crate::harness::block::{Block, Window};
use crate::harness::client::{Answer, Client};
use crate::harness::customers::Customers;
use crate::harness::history::{flat_id, quantity};
use crate::harness::load::{Append, Task};

/// A way of reading.
#[derive(Clone)]
pub enum Reading {
    /// One page, by its number, with what the contender tells of totals.
    Page { customer: u64, page: u64 },
    /// The same by the id of the trade before it, which a client has from the page before.
    Following { customer: u64, page: u64 },
    /// Any page of these customers', which have so many.
    Any { customers: Customers, pages: u64 },
    /// The newest page, and one request in ten appends a trade.
    NewestAndAppends { customers: Customers },
    /// Pages as they are stored.
    Stored { customers: Customers, pages: RangeInclusive<u64> },
    /// So many windows of so many pages one after the other, each by the link of the one before, from anywhere
    /// in a history of so many pages. Counts as one request.
    Walk { customer: u64, of: u64, windows: u64, pages: u64, cursors: Cursors },
    /// One page as it is stored, or listed, again and again, by who has it.
    Again { customer: u64, pages: RangeInclusive<u64>, listed: bool, known: Option<(String, String)> },
}

/// By what a walk goes on.
#[derive(Clone, Copy)]
pub enum Cursors {
    /// The number of a trade in its history.
    Seq,
    /// A document's `_id`.
    Id,
}

/// A way of reading that has looked at an answer, and found it to be what was asked for.
#[derive(Clone)]
pub struct Reader {
    reading: Reading,
    looked: bool,
}

impl Reader {
    /// Whether it appends too, so that what is stored has to be counted.
    pub fn appends(&self) -> bool {
        matches!(self.reading, Reading::NewestAndAppends { .. })
    }
}

impl From<Reading> for Reader {
    fn from(reading: Reading) -> Self {
        Self { reading, looked: false }
    }
}

impl Task for Reader {
    async fn turn(
        &mut self,
        client: &mut Client,
        rng: &mut StdRng,
        window: Window,
        block: &mut Block,
    ) -> Result<bool> {
        let Self { reading, looked } = self;
        let (path, first_page) = match reading {
            Reading::Page { customer, page } => (trades(*customer, &format!("page={page}")), Some(*page)),
            Reading::Following { customer, page } => {
                let after = format!("after={}", flat_id(*customer, *page - 1, 10));
                (trades(*customer, if *page > 1 { &after } else { "order=asc" }), Some(*page))
            }
            Reading::Any { customers, pages } => {
                let Some(customer) = customers.pick(rng) else { return Ok(false) };
                let page = rng.random_range(1..=*pages);
                (trades(customer, &format!("page={page}")), Some(page))
            }
            Reading::NewestAndAppends { customers } => {
                if rng.random_ratio(1, 10) {
                    let customers = customers.clone();
                    return Append { trades: 1, customers, keyed: false }
                        .turn(client, rng, window, block)
                        .await;
                }
                let Some(customer) = customers.pick(rng) else { return Ok(false) };
                (trades(customer, "order=desc"), None)
            }
            Reading::Stored { customers, pages } => {
                let Some(customer) = customers.pick(rng) else { return Ok(false) };
                let page = rng.random_range(pages.clone());
                (stored(customer, page), Some(page))
            }
            Reading::Walk { customer, of, windows, pages, cursors } => {
                let first = rng.random_range(1..=*of - *windows * *pages);
                let firsts: Vec<u64> = (0..*windows).map(|nth| first + nth * *pages).collect();
                return walk(client, window, block, *customer, &firsts, *pages, *cursors).await;
            }
            Reading::Again { customer, pages, listed, known: known @ None } => {
                let page = rng.random_range(pages.clone());
                let path = if *listed {
                    trades(*customer, &format!("page={page}"))
                } else {
                    stored(*customer, page)
                };
                let answer = client.get(&path, "").await?;
                let etag = answer.header("etag").ok_or_else(|| format!("{path} has no etag"))?;
                *known = Some((path, format!("if-none-match: {etag}\r\n")));
                return Ok(true);
            }
            Reading::Again { known: Some((path, header)), .. } => {
                let sent = Instant::now();
                let unchanged = client.get(path, header).await.is_ok_and(|answer| answer.status == 304);
                block.answered(window, sent, 1, unchanged);
                return Ok(true);
            }
        };
        let sent = Instant::now();
        let answer = client.get(&path, "").await;
        block.answered(window, sent, 1, answer.as_ref().is_ok_and(|answer| answer.status == 200));
        if let (Ok(answer), Some(page), false) = (answer, first_page, *looked) {
            look(&path, &answer, page)?;
            *looked = true;
        }
        Ok(true)
    }
}

/// A wrong answer, however fast, is no answer.
fn look(path: &str, answer: &Answer<'_>, page: u64) -> Result<()> {
    let body = String::from_utf8_lossy(answer.body);
    let shows = |place| body.contains(&format!(r#""qty":{},"#, quantity(page, place)));
    if answer.status == 200 && shows(1) && shows(10) {
        return Ok(());
    }
    Err(format!("{path} was answered with {} {body}", answer.status).into())
}

/// Through windows of `pages` pages each, which begin with these.
async fn walk(
    client: &mut Client,
    window: Window,
    block: &mut Block,
    customer: u64,
    firsts: &[u64],
    pages: u64,
    cursors: Cursors,
) -> Result<bool> {
    let (mut path, limit) = (None, pages * 10);
    let sent = Instant::now();
    for &page in firsts {
        let first = || match cursors {
            Cursors::Seq => trades(customer, &format!("after={}&limit={limit}", (page - 1) * 10)),
            Cursors::Id if page == 1 => trades(customer, &format!("order=asc&limit={limit}")),
            Cursors::Id => {
                trades(customer, &format!("after={}&limit={limit}", flat_id(customer, page - 1, 10)))
            }
        };
        let asked = path.unwrap_or_else(first);
        let answer = client.get(&asked, "").await?;
        if firsts.last() == Some(&page) {
            look(&asked, &answer, page)?;
        }
        path = Some(next(&answer).ok_or_else(|| format!("{asked} has no link to a next page"))?);
    }
    block.answered(window, sent, 1, true);
    Ok(true)
}

/// Where a listing's `links` lead on to.
fn next(answer: &Answer<'_>) -> Option<String> {
    let (_, rest) = str::from_utf8(answer.body).ok()?.rsplit_once(r#""next":""#)?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn trades(customer: u64, query: &str) -> String {
    format!("/v1/customers/{customer}/trades?{query}")
}

fn stored(customer: u64, page: u64) -> String {
    format!("/v1/customers/{customer}/trades/pages/{page}")
}
