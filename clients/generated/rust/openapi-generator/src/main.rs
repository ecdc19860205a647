use openapi::apis::trades_api::{append_trades, get_trade, list_trades};
use openapi::apis::{Error, configuration::Configuration};
use openapi::models::{NewTrades, Problem, new_trades::Type};
use scenario::{Appended, Client, Failure, Listing, scenario, service, token};

struct Generated(Configuration);

impl Client for Generated {
    async fn append(&self, customer: i64, qty: i64, price: &str, key: &str) -> Result<Appended, Failure> {
        let trade =
            NewTrades { price: Some(price.to_owned()), ..NewTrades::new(Type::Buy, "MDB".to_owned(), qty) };
        let stored = append_trades(&self.0, customer, trade, Some(key)).await.map_err(failure)?;
        let ranges = stored.ranges.iter().map(|range| (range.first_seq, range.last_seq)).collect();
        Ok(Appended { ranges, total_items: stored.total_items, total_pages: stored.total_pages })
    }

    async fn page(&self, customer: i64, page: i64) -> Result<Listing, Failure> {
        let none = None::<&str>;
        let listing =
            list_trades(&self.0, customer, Some(page), None, None, None, None, none, None, none, none, none, None, None);
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
