//! Trades as rows of a file: CSV with a header row, or NDJSON, as [`import`](crate::import) reads them.
//!
//! Each row has its `seq`, so that an interrupted export can continue after its last row.
//! No value contains a comma, a quote or a line break, so no CSV field needs quotes.

use std::io::Write;

use serde::Serialize;

pub use crate::format::Format;

use crate::domain::{CustomerId, Instant, Price, Quantity, Seq, Side, Ticker, Trade};

impl Format {
    /// What comes before the first row.
    pub fn header(self) -> &'static str {
        match self {
            Self::Csv => "customerId,seq,type,ticker,qty,price,date\r\n",
            Self::Ndjson => "",
        }
    }

    /// Adds a row, its line break included.
    pub fn write(self, customer: CustomerId, seq: Seq, trade: &Trade, rows: &mut Vec<u8>) {
        let Trade { side, ticker, qty, price, date } = *trade;
        // Writing to memory does not fail, and JSON can hold every value.
        let _ = match self {
            Self::Csv => {
                let (side, ticker, qty) = (side.name(), ticker.as_str(), qty.get());
                let row = write!(rows, "{customer},{seq},{side},{ticker},{qty},");
                let row = row.and_then(|()| price.map_or(Ok(()), |price| write!(rows, "{price}")));
                row.and_then(|()| write!(rows, ",{date}\r\n"))
            }
            Self::Ndjson => {
                let row = Row { customer_id: customer, seq, side, ticker, qty, price, date };
                serde_json::to_writer(&mut *rows, &row).map(|()| rows.push(b'\n')).map_err(Into::into)
            }
        };
    }
}

/// A trade as the API shows it, with its customer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    customer_id: CustomerId,
    seq: Seq,
    #[serde(rename = "type")]
    side: Side,
    ticker: Ticker,
    qty: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<Price>,
    date: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_lines() {
        let customer = CustomerId::new(7).unwrap();
        let mut trade = Trade {
            side: Side::Sell,
            ticker: Ticker::parse("BRK.B").unwrap(),
            qty: Quantity::new(419).unwrap(),
            price: Some(Price::parse("15.50").unwrap()),
            date: Instant::from_millis(1_073_606_400_500).unwrap(),
        };
        let row = |format: Format, trade: &Trade| {
            let mut rows = Vec::new();
            format.write(customer, Seq::new(11).unwrap(), trade, &mut rows);
            String::from_utf8(rows).unwrap()
        };
        assert_eq!(row(Format::Csv, &trade), "7,11,sell,BRK.B,419,15.50,2004-01-09T00:00:00.500Z\r\n");
        assert_eq!(
            row(Format::Ndjson, &trade),
            "{\"customerId\":7,\"seq\":11,\"type\":\"sell\",\"ticker\":\"BRK.B\",\"qty\":419,\"price\":\"15.50\",\
             \"date\":\"2004-01-09T00:00:00.500Z\"}\n"
        );
        trade.price = None;
        assert_eq!(row(Format::Csv, &trade), "7,11,sell,BRK.B,419,,2004-01-09T00:00:00.500Z\r\n");
        assert!(!row(Format::Ndjson, &trade).contains("price"));
        let columns = |line: &str| line.split(',').count();
        assert_eq!(columns(Format::Csv.header()), columns(&row(Format::Csv, &trade)));
    }
}
