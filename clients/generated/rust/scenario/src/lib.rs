//! What every generated client for Rust must do against a running service. A client is an adapter of a few
//! lines.

use std::fmt::Debug;

#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// First and last seq of each.
    pub ranges: Vec<(i64, i64)>,
    pub total_items: i64,
    pub total_pages: i64,
}

#[derive(Debug)]
pub struct Listing {
    /// Seq, quantity and price of each.
    pub items: Vec<(i64, i64, String)>,
    pub next: Option<String>,
}

#[derive(Debug)]
pub enum Failure {
    Problem {
        kind: String,
        status: u16,
        pointers: Vec<Option<String>>,
    },
    /// Anything else.
    Other(String),
}

impl Failure {
    pub fn other(error: impl Debug) -> Self {
        Self::Other(format!("{error:?}"))
    }
}

#[expect(async_fn_in_trait, reason = "its futures are awaited where they are made")]
pub trait Client {
    async fn append(&self, customer: i64, qty: i64, price: &str, key: &str) -> Result<Appended, Failure>;
    /// Quantities and prices.
    async fn append_many(&self, customer: i64, trades: &[(i64, String)], key: &str) -> Result<Appended, Failure>;
    async fn page(&self, customer: i64, page: i64) -> Result<Listing, Failure>;
    async fn trade(&self, customer: i64, seq: i64) -> Result<i64, Failure>;
}

/// The address of the service.
pub fn service() -> String {
    std::env::var("PAGEBUCKET_URL").expect("PAGEBUCKET_URL")
}

/// What the service wants with every request.
pub fn token() -> String {
    std::env::var("TOKEN").expect("TOKEN")
}

/// Goes through the steps and prints a line for each: its name, or its name and what failed.
pub async fn scenario(client: impl Client) {
    let customer = std::env::var("CUSTOMER").expect("CUSTOMER").parse().expect("a number");
    let tried = Tried { client, customer };
    print("appends", tried.appends().await);
    print("repeats", tried.appends().await);
    print("batches", tried.batches().await);
    print("walks", tried.walks().await);
    print("problems", tried.problems().await);
}

fn print(step: &str, result: Result<(), Failure>) {
    match result {
        Ok(()) => println!("{step}"),
        Err(failure) => println!("{step} {:?}", format!("{failure:?}")),
    }
}

struct Tried<C> {
    client: C,
    customer: i64,
}

impl<C: Client> Tried<C> {
    async fn append(&self, n: i64) -> Result<Appended, Failure> {
        self.client.append(self.customer, n, &format!("{n}.50"), &format!("trade-{n}")).await
    }

    /// The second time it is a repeat, with the same answer, and nothing more is stored.
    async fn appends(&self) -> Result<(), Failure> {
        equal(self.append(1).await?, Appended { ranges: vec![(1, 1)], total_items: 1, total_pages: 1 })?;
        equal(self.client.page(self.customer, 1).await?.items, trades(1))
    }

    async fn batches(&self) -> Result<(), Failure> {
        let many: Vec<_> = (2..=24).map(|n| (n, format!("{n}.50"))).collect();
        let stored = Appended { ranges: vec![(2, 24)], total_items: 24, total_pages: 3 };
        for _ in 0..2 {
            equal(self.client.append_many(self.customer, &many, "many").await?, stored.clone())?;
        }
        Ok(())
    }

    async fn walks(&self) -> Result<(), Failure> {
        self.append(25).await?;
        let (mut pages, mut seen) = (0, vec![]);
        let mut more = true;
        while more {
            pages += 1;
            let listing = self.client.page(self.customer, pages).await?;
            seen.extend(listing.items);
            more = listing.next.is_some();
        }
        equal((pages, seen), (3, trades(25)))
    }

    async fn problems(&self) -> Result<(), Failure> {
        problem(self.client.trade(self.customer, 99).await, "/problems#item-not-found", 404, &[])?;
        let refused = self.client.append(self.customer, 1 << 53, "1.50", "refused").await;
        problem(refused, "/problems#invalid-item", 422, &["/qty"])
    }
}

fn trades(last: i64) -> Vec<(i64, i64, String)> {
    (1..=last).map(|n| (n, n, format!("{n}.50"))).collect()
}

fn equal<T: Debug + PartialEq>(found: T, expected: T) -> Result<(), Failure> {
    if found == expected { Ok(()) } else { Err(Failure::Other(format!("{found:?}, not {expected:?}"))) }
}

fn problem<T: Debug>(
    result: Result<T, Failure>,
    kind: &str,
    status: u16,
    pointers: &[&str],
) -> Result<(), Failure> {
    match result {
        Ok(answer) => Err(Failure::Other(format!("the answer is no problem: {answer:?}"))),
        Err(Failure::Problem { kind: found, status: found_status, pointers: found_pointers }) => {
            let expected: Vec<_> = pointers.iter().map(|pointer| Some((*pointer).to_owned())).collect();
            equal((found.as_str(), found_status, found_pointers), (kind, status, expected))
        }
        Err(other) => Err(other),
    }
}
