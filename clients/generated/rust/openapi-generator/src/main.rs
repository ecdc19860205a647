use openapi::apis::trades_api::{append_trade_batch, append_trades, get_trade, list_trades};
use openapi::apis::{Error, configuration::Configuration};
use openapi::models::{AppendedTrades, Problem, TradeInput, trade_input::Type};
use scenario::{Appended, Client, Failure, Listing, scenario, service, token};

struct Generated(Configuration);

impl Client for Generated {
    async fn append(&self, customer: i64, qty: i64, price: &str, key: &str) -> Result<Appended, Failure> {
        append_trades(&self.0, customer, input(qty, price), Some(key), None).await.map(appended).map_err(failure)
    }

    async fn append_many(&self, customer: i64, trades: &[(i64, String)], key: &str) -> Result<Appended, Failure> {
        let trades = trades.iter().map(|(qty, price)| input(*qty, price)).collect();
        append_trade_batch(&self.0, customer, trades, Some(key), None).await.map(appended).map_err(failure)
    }

    async fn page(&self, customer: i64, page: i64) -> Result<Listing, Failure> {
        let none = None::<&str>;
        let listing =
            list_trades(&self.0, customer, Some(page), None, None, None, None, none, None, none, none, None, none, None, None);
        let listing = listing.await.map_err(failure)?;
        let items = listing
            .items
            .into_iter()
            .map(|trade| (trade.seq, trade.qty, trade.price.unwrap_or_default()))
            .collect();
        Ok(Listing { items, next: listing.links.next })
    }

    async fn trade(&self, customer: i64, seq: i64) -> Result<i64, Failure> {
        Ok(get_trade(&self.0, customer, seq).await.map_err(failure)?.seq)
    }
}

fn input(qty: i64, price: &str) -> TradeInput {
    TradeInput { price: Some(price.to_owned()), ..TradeInput::new(Type::Buy, "MDB".to_owned(), qty) }
}

fn appended(stored: AppendedTrades) -> Appended {
    let ranges = stored.ranges.iter().map(|range| (range.first_seq, range.last_seq)).collect();
    Appended { ranges, total_items: stored.total_items, total_pages: stored.total_pages }
}

/// The `entity` of an answer is an untagged enum of equal variants, so its body says more.
fn failure<T: std::fmt::Debug>(error: Error<T>) -> Failure {
    let Error::ResponseError(answer) = error else { return Failure::other(error) };
    match serde_json::from_str::<Problem>(&answer.content) {
        Err(error) => Failure::other(error),
        Ok(problem) => Failure::Problem {
            kind: problem.r#type,
            status: answer.status.as_u16(),
            pointers: problem.errors.unwrap_or_default().into_iter().map(|fault| fault.pointer).collect(),
        },
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let bearer_access_token = Some(token());
    scenario(Generated(Configuration { base_path: service(), bearer_access_token, ..Configuration::default() })).await;
}
