//! Files of trades.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Instant, OwnerId};
use pagebucket_streams::import::{Format, RowReader, RowRules};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::harness::{Bench, Customers, Result, take_quantities};

/// A file of trades, NDJSON. Dropping it removes it.
pub struct Trades {
    pub path: PathBuf,
    /// Whose they are, where no row says it.
    pub customer: Option<u64>,
    /// One for each trade, in order.
    pub quantities: Range<u64>,
}

/// Second of the first trade; each is a second later. In the past, as what is imported is.
const FIRST_SECOND: u64 = 1_500_000_000;

impl Trades {
    /// Writes so many trades: of customer 1, or each of a random one of so many customers.
    pub fn write(bench: &Bench, name: &str, customers: u64, count: u64) -> Result<Self> {
        let mut rng = StdRng::seed_from_u64(bench.settings.seed);
        let (path, quantities) = (bench.mongod.file(name), take_quantities(count));
        let of_one = (customers == 1).then_some(1);
        let customers = Customers::Uniform(1..=customers);
        let mut file = BufWriter::new(File::create_new(&path)?);
        for (second, quantity) in (FIRST_SECOND..).zip(quantities.clone()) {
            let customer = match (of_one, customers.pick(&mut rng)) {
                (None, Some(customer)) => format!("\"customerId\":{customer},"),
                _ => String::new(),
            };
            let date = Instant::from_millis(second as i64 * 1000)?;
            writeln!(file, r#"{{{customer}"type":"buy","ticker":"MDB","qty":{quantity},"date":"{date}"}}"#)?;
        }
        file.flush()?;
        Ok(Self { path, customer: of_one, quantities })
    }

    pub fn count(&self) -> u64 {
        self.quantities.end - self.quantities.start
    }

    /// As a request's path.
    pub fn upload_path(&self) -> String {
        match self.customer {
            Some(customer) => format!("/v1/customers/{customer}/trades/upload"),
            None => "/v1/trades/upload".to_owned(),
        }
    }

    /// Opens it as the program does.
    pub fn rows(&self) -> Result<RowReader> {
        let customer = self.customer.map(OwnerId::Integer);
        let file = Box::new(File::open(&self.path)?);
        let rules = RowRules { format: Format::Ndjson, names: &[], owner: customer, from_line: 1 };
        Ok(RowReader::open(file, &Arc::new(Definition::trades()), rules)?)
    }
}

impl Drop for Trades {
    fn drop(&mut self) {
        std::fs::remove_file(&self.path).ok();
    }
}
