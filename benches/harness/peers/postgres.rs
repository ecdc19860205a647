//! PostgreSQL: a row for each trade under `(customer_id, seq)`, and the last number of each customer. It has
//! numbers and totals, as ours has.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::pin::pin;
use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use mongodb::bson::{DateTime, RawBsonRef};
use pagebucket_model::item::Item;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Statement};

use super::append::{asked, created};
use super::list::{Links, Listing, PAGE, Wanted, page_link};
use super::minimal::{self, page_of};
use super::{Trade, refused};
use crate::harness::{History, Result, connect};

/// The load has no prices. Updates of `heads` find room beside the row, so that no index has to change.
const TABLES: &str = "
    create table heads (customer_id bigint primary key, seq bigint not null) with (fillfactor = 50);
    create table trades (
        customer_id bigint not null, seq bigint not null, type text not null, ticker text not null,
        qty bigint not null, price numeric, date timestamptz not null, primary key (customer_id, seq))";

/// Customer, type, ticker, quantity, date.
const APPEND: &str = "
    with head as (
        insert into heads values ($1, 1) on conflict (customer_id) do update set seq = heads.seq + 1 returning seq)
    insert into trades (customer_id, seq, type, ticker, qty, date)
        select $1, seq, $2, $3, $4, $5 from head returning seq";

/// Customer, how many trades, and arrays of the rest. The insertion is done although nothing reads it.
const APPEND_MANY: &str = "
    with head as (
        insert into heads values ($1, $2) on conflict (customer_id) do update set seq = heads.seq + $2 returning seq),
    inserted as (
        insert into trades (customer_id, seq, type, ticker, qty, date)
            select $1, head.seq - $2 + number, type, ticker, qty, date
            from head, unnest($3::text[], $4::text[], $5::bigint[], $6::timestamptz[])
                with ordinality as trade (type, ticker, qty, date, number))
    select seq from head";

/// Customer, and how many trades are before those of the page.
const PAGE_WITH_TOTAL: &str = "
    select heads.seq, trade.* from heads left join lateral (
        select seq, type, ticker, qty, date from trades
            where customer_id = $1 and seq > $2 order by seq limit 10) trade on true
    where customer_id = $1";

/// The same, counted from the newest.
const NEWEST_WITH_TOTAL: &str = "
    select heads.seq, trade.* from heads left join lateral (
        select seq, type, ticker, qty, date from trades
            where customer_id = $1 and seq <= heads.seq - $2 order by seq desc limit 10) trade on true
    where customer_id = $1";

/// The page alone.
const PAGE_ALONE: &str = "
    select null::bigint, seq, type, ticker, qty, date from trades
        where customer_id = $1 and seq > $2 order by seq limit 10";

/// Customers and how many trades each; the number of the last of these.
const RESERVE: &str = "
    insert into heads select * from unnest($1::bigint[], $2::bigint[])
        on conflict (customer_id) do update set seq = heads.seq + excluded.seq returning customer_id, seq";

const COPY: &str = "copy trades (customer_id, seq, type, ticker, qty, date) from stdin binary";

const COLUMNS: [Type; 6] = [Type::INT8, Type::INT8, Type::TEXT, Type::TEXT, Type::INT8, Type::TIMESTAMPTZ];

/// Full pages of these customers, in the order of the other contenders (see `history`).
const HISTORY: &str = "
    insert into trades (customer_id, seq, type, ticker, qty, date)
        select customer, (page - 1) * 10 + place, 'buy', 'MDB', (page - 1) * 10 + place, to_timestamp(1600000000 + page)
        from generate_series($1::bigint, $2::bigint) customer, generate_series(1, $3::bigint) page,
            generate_series(1, 10) place
        order by page, customer, place";

/// A database of trades, and connections to it: each request has one for itself.
#[derive(Clone)]
pub struct Pool(Arc<Connections>);

struct Connections {
    config: Config,
    places: Semaphore,
    free: Mutex<Vec<Connection>>,
}

/// A connection with its prepared statements.
struct Connection {
    client: Client,
    append: Statement,
    append_many: Statement,
    page: Statement,
    newest: Statement,
    page_alone: Statement,
}

/// Goes back to the pool.
struct Lent<'a> {
    pool: &'a Connections,
    connection: Option<Connection>,
    _place: SemaphorePermit<'a>,
}

type Answer<T> = Result<T, tokio_postgres::Error>;

impl Pool {
    /// On a new database.
    pub async fn open(config: Config, connections: usize) -> Result<Self> {
        connect(&config).await?.batch_execute(TABLES).await?;
        let mut free = Vec::new();
        for _ in 0..connections {
            free.push(Connection::open(&config).await?);
        }
        Ok(Self(Arc::new(Connections {
            config,
            places: Semaphore::new(connections),
            free: Mutex::new(free),
        })))
    }

    async fn lend(&self) -> Lent<'_> {
        let pool = &*self.0;
        let place = pool.places.acquire().await.expect("it is never closed");
        Lent { pool, connection: pool.free.lock().pop(), _place: place }
    }

    pub async fn write_history(&self, (first, last, pages): History) -> Result<()> {
        let client = self.lend().await;
        client.execute(HISTORY, &[&(first as i64), &(last as i64), &(pages as i64)]).await?;
        let heads = "insert into heads
            select customer, 10 * $3::bigint from generate_series($1::bigint, $2::bigint) customer";
        client.execute(heads, &[&(first as i64), &(last as i64), &(pages as i64)]).await?;
        // As the autovacuum would, in a while.
        Ok(client.batch_execute("vacuum analyze").await?)
    }

    /// Stores trades of a file in one transaction; how many.
    pub async fn copy(&self, trades: Vec<(u64, Item)>) -> Result<u64> {
        let client = self.lend().await;
        let mut counts = BTreeMap::<i64, i64>::new();
        for (customer, _) in &trades {
            *counts.entry(*customer as i64).or_default() += 1;
        }
        let (customers, counted): (Vec<i64>, Vec<i64>) =
            counts.iter().map(|(customer, count)| (*customer, *count)).unzip();
        client.batch_execute("begin").await?;
        for reserved in client.query(RESERVE, &[&customers, &counted]).await? {
            // From here on: the number of the customer's latest trade.
            counts
                .entry(reserved.try_get(0)?)
                .and_modify(|count| *count = reserved.get::<_, i64>(1) - *count);
        }
        let mut writer = pin!(BinaryCopyInWriter::new(client.copy_in(COPY).await?, &COLUMNS));
        for (customer, trade) in &trades {
            let customer = *customer as i64;
            let last = counts.get_mut(&customer).ok_or("a customer without a number")?;
            *last += 1;
            let (side, ticker, qty, date) = columns(trade)?;
            writer.as_mut().write(&[&customer, last, &side, &ticker, &qty, &date]).await?;
        }
        let stored = writer.finish().await?;
        client.batch_execute("commit").await?;
        Ok(stored)
    }

    /// The trades whose quantity is at least `first`: their count and sum.
    pub async fn stored(&self, first: u64) -> Result<(u64, u64)> {
        let sums = "select count(*), coalesce(sum(qty), 0)::bigint from trades where qty >= $1";
        let row = self.lend().await.query_one(sums, &[&(first as i64)]).await?;
        Ok((row.try_get::<_, i64>(0)? as u64, row.try_get::<_, i64>(1)? as u64))
    }

    /// Bytes of rows, of tables and of indexes, after a checkpoint.
    pub async fn disk(&self) -> Result<[i64; 3]> {
        let client = self.lend().await;
        client.batch_execute("checkpoint").await?;
        let sizes = "select (select sum(pg_column_size(trades)) from trades)::bigint,
            pg_table_size('trades') + pg_table_size('heads'), pg_indexes_size('trades') + pg_indexes_size('heads')";
        let row = client.query_one(sizes, &[]).await?;
        Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])
    }

    /// Ends the connections to the database, and drops it.
    pub async fn drop_database(self) -> Result<()> {
        let name = self.0.config.get_dbname().unwrap_or_default().to_owned();
        let client = connect(self.0.config.clone().dbname("postgres")).await?;
        Ok(client.batch_execute(&format!("drop database {name} with (force)")).await?)
    }
}

impl Connection {
    async fn open(config: &Config) -> Answer<Self> {
        let client = connect(config).await?;
        Ok(Self {
            append: client.prepare(APPEND).await?,
            append_many: client.prepare(APPEND_MANY).await?,
            page: client.prepare(PAGE_WITH_TOTAL).await?,
            newest: client.prepare(NEWEST_WITH_TOTAL).await?,
            page_alone: client.prepare(PAGE_ALONE).await?,
            client,
        })
    }

    /// Stores trades; the number of the last one.
    async fn store(&self, customer: u64, trades: &[Item]) -> Result<u64> {
        let customer = customer as i64;
        let row = if let [trade] = trades {
            let (side, ticker, qty, date) = columns(trade)?;
            self.query_one(&self.append, &[&customer, &side, &ticker, &qty, &date]).await?
        } else {
            let (mut sides, mut tickers, mut quantities, mut dates) = (vec![], vec![], vec![], vec![]);
            for trade in trades {
                let (side, ticker, qty, date) = columns(trade)?;
                sides.push(side);
                tickers.push(ticker);
                quantities.push(qty);
                dates.push(date);
            }
            let parameters: [&(dyn ToSql + Sync); 6] =
                [&customer, &(trades.len() as i64), &sides, &tickers, &quantities, &dates];
            self.query_one(&self.append_many, &parameters).await?
        };
        Ok(row.try_get::<_, i64>(0)? as u64)
    }

    /// Ten trades after so many; and how many there are, where the statement says it.
    async fn page(&self, statement: &Statement, customer: u64, before: u64) -> Answer<(u64, Vec<Trade>)> {
        let rows = self.query(statement, &[&(customer as i64), &(before as i64)]).await?;
        let total = rows.first().and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or_default();
        Ok((total as u64, rows.iter().filter_map(trade_of).collect()))
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Deref for Lent<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("there are as many as places")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.pool.free.lock().extend(self.connection.take());
    }
}

/// Type, ticker, quantity and date of a trade.
fn columns(trade: &Item) -> Result<(&str, &str, i64, SystemTime)> {
    let document = trade.document();
    let qty = match document.get("qty")? {
        Some(RawBsonRef::Int32(qty)) => i64::from(qty),
        Some(RawBsonRef::Int64(qty)) => qty,
        _ => return Err("a trade without a quantity".into()),
    };
    let date = DateTime::from_millis(trade.date().millis()).to_system_time();
    Ok((document.get_str("type")?, document.get_str("ticker")?, qty, date))
}

/// `None` beyond the end, where there is a total alone.
fn trade_of(row: &Row) -> Option<Trade> {
    let seq: Option<i64> = row.get(1);
    Some(Trade {
        customer_id: None,
        seq: Some(seq? as u64),
        id: None,
        side: row.get(2),
        ticker: row.get(3),
        qty: row.get(4),
        date: DateTime::from_system_time(row.get(5)),
    })
}

/// Where trades are appended, listed, and read as pages.
pub fn routes(pool: Pool) -> Router {
    Router::new()
        .route("/v1/customers/{customerId}/trades", get(list).post(append))
        .route(minimal::PAGE, get(page))
        .with_state(pool)
}

async fn append(
    State(pool): State<Pool>,
    Path(customer): Path<String>,
    request: Request,
) -> Result<Response, StatusCode> {
    let asked = asked(&customer, request).await?;
    let stored = pool.lend().await.store(asked.customer, &asked.trades).await;
    Ok(stored.map_or_else(refused, |last| created(&asked, last)))
}

async fn list(State(pool): State<Pool>, Path(customer): Path<u64>, Query(wanted): Query<Wanted>) -> Response {
    let after = wanted.after.as_deref().and_then(|after| after.parse().ok());
    let page = wanted.page.unwrap_or(1);
    let before = after.unwrap_or((page - 1) * PAGE);
    let connection = pool.lend().await;
    let newest_first = wanted.order.as_deref() == Some("desc");
    let statement = if newest_first { &connection.newest } else { &connection.page };
    let (total, items) = match connection.page(statement, customer, before).await {
        Ok(found) => found,
        Err(error) => return refused(error),
    };
    drop(connection);
    let total_pages = total.div_ceil(PAGE).max(1);
    let links = match after {
        Some(_) => after_link(total, customer, &items),
        None => page_link(page < total_pages, customer, page),
    };
    let (page, total_trades) = (after.is_none().then_some(page), Some(total));
    Json(Listing { customer_id: customer, page, total_trades, total_pages: Some(total_pages), items, links })
        .into_response()
}

fn after_link(total: u64, customer: u64, items: &[Trade]) -> Links {
    let last = items.last().and_then(|last| last.seq).filter(|last| *last < total);
    Links { next: last.map(|last| format!("/v1/customers/{customer}/trades?after={last}&limit=10")) }
}

async fn page(State(pool): State<Pool>, Path((customer, page)): Path<(u64, u64)>) -> Response {
    let connection = pool.lend().await;
    match connection.page(&connection.page_alone, customer, (page - 1) * PAGE).await {
        Ok((_, items)) => page_of(customer, page, items),
        Err(error) => refused(error),
    }
}
