use serde_json::value::RawValue;

use super::shape::{DraftError, Shape, number, text};
use super::{CustomerId, Faults, Instant, Invalid, Json, Member, Price, Quantity, Side, Ticker, Trade};

/// A trade as a client sends it: a [`Trade`] whose date is optional.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeDraft {
    /// Bought or sold.
    pub side: Side,
    /// The security.
    pub ticker: Ticker,
    /// The number of units.
    pub qty: Quantity,
    /// The price of one unit.
    pub price: Option<Price>,
    /// The date of the trade; `None` means the moment at which the server received it.
    pub date: Option<Instant>,
}

impl TradeDraft {
    /// The names of its fields in JSON, the required ones first.
    pub const FIELDS: [&str; 5] = ["type", "ticker", "qty", "price", "date"];

    /// The trade, with `now` for a missing date.
    pub fn dated(self, now: Instant) -> Trade {
        let Self { side, ticker, qty, price, date } = self;
        Trade { side, ticker, qty, price, date: date.unwrap_or(now) }
    }
}

impl From<Trade> for TradeDraft {
    fn from(trade: Trade) -> Self {
        let Trade { side, ticker, qty, price, date } = trade;
        Self { side, ticker, qty, price, date: Some(date) }
    }
}

/// The JSON object of a trade from a client.
const TRADE: Shape = Shape { noun: "trade", fields: &TradeDraft::FIELDS, required: 3 };

/// Parses a JSON text that is one trade or an array of 1 to `max` trades, and finds all its faults.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_drafts(bytes: &[u8], max: usize) -> Result<Vec<TradeDraft>, DraftError> {
    TRADE.one_or_many(bytes, max, parse_draft)
}

/// Parses a JSON text that is one trade of `customer`. Without `customer`, the member `customerId` names the
/// customer.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_line(
    bytes: &[u8],
    customer: Option<CustomerId>,
) -> Result<(CustomerId, TradeDraft), DraftError> {
    let raw = Json::check(bytes)?;
    let mut faults = Faults::default();
    let Some(mut members) = TRADE.members(raw, "", &mut faults) else {
        return Err(DraftError::Invalid(faults));
    };
    let customer = match customer {
        Some(customer) => Some(customer),
        None => parse_customer(&mut members, &mut faults),
    };
    match (customer, parse_members(&members, "", &mut faults)) {
        (Some(customer), Some(draft)) => Ok((customer, draft)),
        _ => Err(DraftError::Invalid(faults)),
    }
}

/// Removes `customerId` from the members and parses it. Adds what is wrong with it to `faults`.
fn parse_customer(members: &mut Vec<Member<'_>>, faults: &mut Faults) -> Option<CustomerId> {
    const NAME: &str = "customerId";
    let mut given = members.extract_if(.., |member| member.name.as_deref() == Some(NAME));
    let (first, twice) = (given.next(), given.next().is_some());
    drop(given);
    members.retain(|member| member.name.as_deref() != Some(NAME));
    let parsed = match first.map(|member| Json::read(member.value)) {
        None => Err(Invalid::new("is required")),
        Some(_) if twice => Err(Invalid::new("must not be given more than once")),
        Some(value) => number(&value).and_then(str::parse),
    };
    parsed.map_err(|Invalid(detail)| faults.push(|| format!("/{NAME}"), detail)).ok()
}

/// Parses one trade, which is at `pointer`, and adds all its faults to `faults`. Returns `None` if there are
/// any.
pub fn parse_draft(raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<TradeDraft> {
    parse_members(&TRADE.members(raw, pointer, faults)?, pointer, faults)
}

fn parse_members(members: &[Member<'_>], pointer: &str, faults: &mut Faults) -> Option<TradeDraft> {
    let (mut side, mut ticker, mut qty, mut price, mut date) = (None, None, None, None, None);
    TRADE.read(members, pointer, faults, |name, value| {
        match name {
            "type" => side = Some(Side::parse(&text(value)?)?),
            "ticker" => ticker = Some(Ticker::parse(&text(value)?)?),
            "qty" => qty = Some(Quantity::parse(number(&value)?)?),
            "price" => price = Some(decimal(value)?),
            "date" => date = Some(Instant::parse_rfc3339(&text(value)?)?),
            name => unreachable!("{name} is not a field of a trade"),
        }
        Ok(())
    })?;
    Some(TradeDraft { side: side?, ticker: ticker?, qty: qty?, price, date })
}

fn decimal(value: Json<'_>) -> Result<Price, Invalid> {
    match value {
        Json::Number(_) => Err(Invalid::new(
            "must be a string, such as \"15.54\": a JSON number would be rounded on its way",
        )),
        other => Price::parse(&text(other)?),
    }
}

#[cfg(test)]
impl TradeDraft {
    /// [`Trade::example`], as a client sends it.
    pub(crate) fn example(qty: u64) -> Self {
        Trade::example(qty).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(String, String)> {
        match parse_drafts(text.as_bytes(), 1000) {
            Err(DraftError::Invalid(faults)) => {
                faults.kept().iter().map(|fault| (fault.pointer.clone(), fault.detail.clone())).collect()
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn one_trade_or_many() {
        let one = r#"{"type":"buy","ticker":"MDB","qty":419}"#;
        assert_eq!(parse_drafts(one.as_bytes(), 1000).unwrap().len(), 1);
        let many = format!("[{}]", [one; 1000].join(","));
        assert_eq!(parse_drafts(many.as_bytes(), 1000).unwrap().len(), 1000);
    }

    #[test]
    fn a_line_names_its_customer_unless_that_is_known() {
        let faults = |text: &str, customer: Option<u64>| match parse_line(
            text.as_bytes(),
            customer.map(|id| CustomerId::new(id).unwrap()),
        ) {
            Err(DraftError::Invalid(faults)) => {
                faults.kept().iter().map(|fault| fault.pointer.clone()).collect::<Vec<_>>()
            }
            other => panic!("{text}: {other:?}"),
        };
        let trade = r#""type":"buy","ticker":"MDB","qty":419"#;
        let (customer, draft) =
            parse_line(format!(r#"{{{trade},"customerId":7}}"#).as_bytes(), None).unwrap();
        assert_eq!((customer.get(), draft.qty.get()), (7, 419));
        let of_one = parse_line(format!("{{{trade}}}").as_bytes(), Some(customer)).unwrap();
        assert_eq!(of_one, (customer, draft));
        assert_eq!(faults(&format!(r#"{{{trade},"customerId":7}}"#), Some(7)), ["/customerId"]);
        for customer in ["7.0", "0", "\"7\"", "null", "9007199254740992", "7,\"customerId\":7"] {
            assert_eq!(faults(&format!(r#"{{"customerId":{customer},{trade}}}"#), None), ["/customerId"]);
        }
        assert_eq!(faults("{}", None), ["/customerId", "/type", "/ticker", "/qty"]);
        assert_eq!(faults("[]", None), [""]);
        assert!(matches!(parse_line(b"{", None), Err(DraftError::NotJson(_))));
    }

    #[test]
    fn all_the_faults_are_reported() {
        let found = faults(
            r#"[{"type":"hold","ticker":"mdb","qty":419.0,"price":1.5,"date":"1969","a/b~":0,"qty":1}, 5, {}]"#,
        );
        let pointers: Vec<_> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(
            pointers,
            [
                "/0/type",
                "/0/ticker",
                "/0/qty",
                "/0/price",
                "/0/date",
                "/0/a~1b~0",
                "/0/qty",
                "/1",
                "/2/type",
                "/2/ticker",
                "/2/qty"
            ]
        );
    }

    #[test]
    fn odd_values_get_their_own_answer() {
        for (qty, part) in [
            ("1e400", "whole"),
            ("9223372036854775808", "whole"),
            ("1.5", "whole"),
            ("\"5\"", "not a string"),
            ("-0", "whole"),
            ("null", "not null"),
        ] {
            let found = faults(&format!(r#"{{"type":"buy","ticker":"MDB","qty":{qty}}}"#));
            assert_eq!(found[0].0, "/qty");
            assert!(found[0].1.contains(part), "{qty}: {found:?}");
        }
        assert_eq!(faults(r#"{"type":"buy","ticker":"\ud800","qty":1}"#)[0].0, "/ticker");
        assert_eq!(faults(r#"{"type":"buy","ticker":"A\u0000","qty":1}"#)[0].0, "/ticker");
        assert_eq!(faults(r#"{"\ud800":1,"type":"buy","ticker":"A","qty":1}"#)[0].0, "");
        assert_eq!(faults("[]")[0].0, "");
        assert_eq!(faults("null")[0].0, "");
        assert_eq!(faults(&format!("[{}]", ["1"; 1001].join(",")))[0].0, "");
    }

    #[test]
    fn a_hostile_body_makes_a_small_answer() {
        let Err(DraftError::Invalid(faults)) =
            parse_drafts(format!("[{}]", ["0"; 1000].join(",")).as_bytes(), 1000)
        else {
            panic!()
        };
        assert_eq!((faults.kept().len(), faults.omitted()), (100, 900));
        let long = format!(r#"{{"{}":0,"type":"buy","ticker":"A","qty":1}}"#, "x".repeat(100_000));
        let Err(DraftError::Invalid(faults)) = parse_drafts(long.as_bytes(), 1000) else { panic!() };
        assert!(faults.kept()[0].pointer.is_empty() && faults.kept()[0].detail.len() < 100);
    }
}
