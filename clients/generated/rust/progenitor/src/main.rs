use futures_util::TryStreamExt;
use generated::types::{AppendedTrades, Problem, TradeInput, TradeInputType};
use progenitor_client::{ByteStream, Error, ResponseValue};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use scenario::{Appended, Client, Failure, Listing, scenario, service, token};

mod generated {
    progenitor::generate_api!(spec = "../../build/openapi-3.0.json", interface = Builder);
}

impl Client for generated::Client {
    async fn append(&self, customer: i64, qty: i64, price: &str, key: &str) -> Result<Appended, Failure> {
        let call = self.append_trades().customer_id(unsigned(customer)).idempotency_key(key).body(input(qty, price)?);
        success(call.send().await).await.map(appended)
    }

    async fn append_many(&self, customer: i64, trades: &[(i64, String)], key: &str) -> Result<Appended, Failure> {
        let trades = trades.iter().map(|(qty, price)| input(*qty, price)).collect::<Result<Vec<_>, _>>()?;
        let call = self.append_trade_batch().customer_id(unsigned(customer)).idempotency_key(key).body(trades);
        success(call.send().await).await.map(appended)
    }

    async fn page(&self, customer: i64, page: i64) -> Result<Listing, Failure> {
        let listing =
            success(self.list_trades().customer_id(unsigned(customer)).page(unsigned(page)).send().await)
                .await?;
        let items = listing.items.iter().map(|trade| {
            (
                signed(trade.seq),
                signed(trade.qty),
                trade.price.as_ref().map(|price| text(price)).unwrap_or_default(),
            )
        });
        Ok(Listing { items: items.collect(), next: listing.links.next.as_ref().map(|next| text(next)) })
    }

    async fn trade(&self, customer: i64, seq: i64) -> Result<i64, Failure> {
        let trade =
            success(self.get_trade().customer_id(unsigned(customer)).seq(unsigned(seq)).send().await).await?;
        Ok(signed(trade.seq))
    }
}

fn input(qty: i64, price: &str) -> Result<TradeInput, Failure> {
    let price = price.parse().map_err(Failure::other)?;
    let trade =
        TradeInput::builder().type_(TradeInputType::Buy).ticker("MDB").qty(unsigned(qty)).price(Some(price));
    trade.try_into().map_err(Failure::other)
}

fn appended(stored: AppendedTrades) -> Appended {
    let ranges = stored.ranges.iter().map(|range| (signed(range.first_seq), signed(range.last_seq)));
    Appended {
        ranges: ranges.collect(),
        total_items: signed(stored.total_items),
        total_pages: signed(stored.total_pages),
    }
}

/// Progenitor knows no JSON but `application/json`: a problem is a stream of bytes, and its type is there to
/// parse them.
async fn success<T>(result: Result<ResponseValue<T>, Error<ByteStream>>) -> Result<T, Failure> {
    let answer = match result {
        Ok(answer) => return Ok(answer.into_inner()),
        Err(Error::ErrorResponse(answer)) => answer,
        Err(error) => return Err(Failure::other(error)),
    };
    let status = answer.status().as_u16();
    let pieces: Vec<_> = answer.into_inner_stream().try_collect().await.map_err(Failure::other)?;
    let problem: Problem = serde_json::from_slice(&pieces.concat()).map_err(Failure::other)?;
    let pointers =
        problem.errors.iter().map(|fault| fault.pointer.as_ref().map(|pointer| text(pointer))).collect();
    Err(Failure::Problem { kind: text(&problem.type_), status, pointers })
}

/// Strings with a pattern or a bound have types of their own.
fn text(text: &str) -> String {
    text.to_owned()
}

fn unsigned(number: i64) -> u64 {
    number.try_into().expect("a positive number")
}

fn signed(number: impl Into<u64>) -> i64 {
    number.into().try_into().expect("at most 2^53 - 1")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // It knows nothing of tokens: they are headers of the HTTP client.
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {}", token()).parse().expect("ASCII"))]);
    let client = reqwest::Client::builder().default_headers(headers).build().expect("a client");
    scenario(generated::Client::new_with_client(&service(), client)).await;
}
