//! Files of trades, in a directory that goes when the run ends.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use pagebucket::domain::{CustomerId, Instant};
use pagebucket::import::{Columns, Format, Rows};
use rand::rngs::StdRng;

use crate::harness::Result;
use crate::harness::block::take_quantities;
use crate::harness::customers::Customers;

/// Where files are. Dropping it removes them.
pub struct Directory(PathBuf);

impl Directory {
    pub fn new() -> Result<Self> {
        let directory = std::env::temp_dir().join(format!("pagebucket-bench-streams-{}", std::process::id()));
        std::fs::create_dir(&directory)?;
        Ok(Self(directory))
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// A file of trades, NDJSON.
pub struct Trades {
    pub path: PathBuf,
    /// Whose they are, where that stands in no row.
    pub customer: Option<u64>,
    /// One for each trade, in order.
    pub quantities: Range<u64>,
}

/// Second of the first trade; each is a second later. In the past, as what is imported is.
const FIRST_SECOND: u64 = 1_500_000_000;

/// A trade as a line. What is said of its customer has a comma behind it.
fn row(customer: &str, quantity: u64, index: u64) -> Result<String> {
    let date = Instant::from_millis((FIRST_SECOND + index) as i64 * 1000)?;
    Ok(format!("{{{customer}\"type\":\"buy\",\"ticker\":\"MDB\",\"qty\":{quantity},\"date\":\"{date}\"}}\n"))
}

impl Trades {
    /// Writes so many trades: of one customer, or of many by chance.
    pub fn write(path: PathBuf, customers: Option<&Customers>, count: u64, rng: &mut StdRng) -> Result<Self> {
        let quantities = take_quantities(count);
        let mut file = BufWriter::new(File::create_new(&path)?);
        for (index, quantity) in (0..).zip(quantities.clone()) {
            let customer = customers.and_then(|customers| customers.pick(rng));
            let customer =
                customer.map_or_else(String::new, |customer| format!("\"customerId\":{customer},"));
            file.write_all(row(&customer, quantity, index)?.as_bytes())?;
        }
        file.flush()?;
        Ok(Self { path, customer: customers.is_none().then_some(1), quantities })
    }

    pub fn count(&self) -> u64 {
        self.quantities.end - self.quantities.start
    }

    /// As a request's path.
    pub fn upload_path(&self) -> String {
        self.customer
            .map_or_else(|| "/v1/trades".to_owned(), |customer| format!("/v1/customers/{customer}/trades"))
    }

    /// Opens it as the program does.
    pub fn rows(&self) -> Result<Rows> {
        let customer = self.customer.map(CustomerId::new).transpose()?;
        let file = Box::new(File::open(&self.path)?);
        Ok(Rows::open(file, Format::Ndjson, &Columns::default(), customer, 1)?)
    }
}

/// How many rows a file has, and the last of them.
pub fn count_rows(path: &Path) -> Result<(u64, String)> {
    let text = std::fs::read(path)?;
    let rows = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    let last = text.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok((rows, String::from_utf8_lossy(last).into_owned()))
}
