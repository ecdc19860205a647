use serde_json::value::RawValue;

use super::{
    CustomerId, Faults, Instant, Invalid, Json, Member, NotJson, Price, Quantity, Side, Ticker, Trade,
};

/// A trade as a client proposes it: all of [`Trade`], but perhaps without a date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TradeDraft {
    /// Bought or sold.
    pub side: Side,
    /// What.
    pub ticker: Ticker,
    /// How many.
    pub qty: Quantity,
    /// At which price each.
    pub price: Option<Price>,
    /// When; `None` is the moment at which the server received it.
    pub date: Option<Instant>,
}

impl TradeDraft {
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

/// Why a text holds no trades.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// It is not JSON.
    #[error(transparent)]
    NotJson(#[from] NotJson),
    /// It is JSON, but not one trade or an array of trades.
    #[error("not a trade, or not trades")]
    Invalid(Faults),
}

/// Parses a JSON text that is one trade or an array of 1 to `max` trades, and finds all its faults.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_drafts(bytes: &[u8], max: usize) -> Result<Vec<TradeDraft>, DraftError> {
    let raw = Json::check(bytes)?;
    let mut faults = Faults::default();
    let drafts = match Json::read(raw) {
        Json::Array(items) => {
            if items.is_empty() {
                faults.push(String::new, "must have at least one trade");
            } else if items.len() > max {
                faults.push(String::new, format!("must have at most {max} trades"));
            }
            let parse = |(index, item)| parse_draft(item, &format!("/{index}"), &mut faults);
            items.into_iter().enumerate().filter_map(parse).collect()
        }
        Json::Object(_) => parse_draft(raw, "", &mut faults).into_iter().collect(),
        other => {
            faults.push(String::new, format!("must be a trade or an array of trades, not {}", other.kind()));
            Vec::new()
        }
    };
    if faults.is_empty() { Ok(drafts) } else { Err(DraftError::Invalid(faults)) }
}

/// Parses a JSON text that is one trade, of `customer`; where that is not known, the member `customerId`
/// says whose.
///
/// # Errors
/// See [`DraftError`].
pub fn parse_line(
    bytes: &[u8],
    customer: Option<CustomerId>,
) -> Result<(CustomerId, TradeDraft), DraftError> {
    let raw = Json::check(bytes)?;
    let mut faults = Faults::default();
    let Some(mut members) = object(raw, "", &mut faults) else { return Err(DraftError::Invalid(faults)) };
    let customer = match customer {
        Some(customer) => Some(customer),
        None => parse_customer(&mut members, &mut faults),
    };
    match (customer, parse_members(&members, "", &mut faults)) {
        (Some(customer), Some(draft)) => Ok((customer, draft)),
        _ => Err(DraftError::Invalid(faults)),
    }
}

/// Takes `customerId` out of the members, and adds what is wrong with it to `faults`.
fn parse_customer(members: &mut Vec<Member<'_>>, faults: &mut Faults) -> Option<CustomerId> {
    const NAME: &str = "customerId";
    let mut given = members.extract_if(.., |member| member.name.as_deref() == Some(NAME));
    let (first, twice) = (given.next(), given.next().is_some());
    drop(given);
    members.retain(|member| member.name.as_deref() != Some(NAME));
    let parsed = match first.map(|member| Json::read(member.value)) {
        None => Err(Invalid::new("is required")),
        Some(_) if twice => Err(Invalid::new("must not be given more than once")),
        Some(Json::Number(text)) => text.parse(),
        Some(other) => Err(Invalid::new(format!("must be a number, not {}", other.kind()))),
    };
    parsed.map_err(|Invalid(detail)| faults.push(|| format!("/{NAME}"), detail)).ok()
}

/// Parses one trade, which stands at `pointer`, and adds all that is wrong with it to `faults`.
/// `None` when anything is.
pub fn parse_draft(raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<TradeDraft> {
    parse_members(&object(raw, pointer, faults)?, pointer, faults)
}

fn object<'a>(raw: &'a RawValue, pointer: &str, faults: &mut Faults) -> Option<Vec<Member<'a>>> {
    match Json::read(raw) {
        Json::Object(members) => Some(members),
        other => {
            let detail = format!("must be a trade, which is an object, not {}", other.kind());
            faults.push(|| pointer.to_owned(), detail);
            None
        }
    }
}

fn parse_members(members: &[Member<'_>], pointer: &str, faults: &mut Faults) -> Option<TradeDraft> {
    let before = faults.count();
    let (mut side, mut ticker, mut qty, mut price, mut date) = (None, None, None, None, None);
    let mut seen = [false; FIELDS.len()];
    for member in members {
        let Some(name) = member.name.as_deref() else {
            faults.push(|| pointer.to_owned(), "has a field whose name is not Unicode text");
            continue;
        };
        let Some(index) = FIELDS.iter().position(|field| *field == name) else {
            refuse_unknown(name, pointer, faults);
            continue;
        };
        let at = || format!("{pointer}/{name}");
        if std::mem::replace(&mut seen[index], true) {
            faults.push(at, "must not be given more than once");
            continue;
        }
        let value = Json::read(member.value);
        let result = match name {
            "type" => text(value).and_then(|text| Side::parse(&text)).map(|value| side = Some(value)),
            "ticker" => text(value).and_then(|text| Ticker::parse(&text)).map(|value| ticker = Some(value)),
            "qty" => whole_number(value).map(|value| qty = Some(value)),
            "price" => decimal(value).map(|value| price = Some(value)),
            _ => text(value).and_then(|text| Instant::parse_rfc3339(&text)).map(|value| date = Some(value)),
        };
        if let Err(Invalid(detail)) = result {
            faults.push(at, detail);
        }
    }
    for (field, seen) in FIELDS.iter().zip(seen).take(REQUIRED) {
        if !seen {
            faults.push(|| format!("{pointer}/{field}"), "is required");
        }
    }
    if faults.count() > before {
        return None;
    }
    Some(TradeDraft { side: side?, ticker: ticker?, qty: qty?, price, date })
}

/// The fields of a trade, the required ones first.
const FIELDS: [&str; 5] = ["type", "ticker", "qty", "price", "date"];
const REQUIRED: usize = 3;

/// A longer unknown name is not repeated to the client.
const LONGEST_NAME_REPEATED: usize = 64;

fn refuse_unknown(name: &str, pointer: &str, faults: &mut Faults) {
    if name.len() > LONGEST_NAME_REPEATED {
        faults.push(
            || pointer.to_owned(),
            format!("has an unknown field, with a name of {} bytes", name.len()),
        );
    } else {
        // RFC 6901, section 3: "~" before "/", or the escape would be escaped.
        let escaped = name.replace('~', "~0").replace('/', "~1");
        faults.push(|| format!("{pointer}/{escaped}"), "is not a field of a trade");
    }
}

fn text(value: Json<'_>) -> Result<String, Invalid> {
    match value {
        Json::String(Some(text)) => Ok(text.into_owned()),
        Json::String(None) => Err(Invalid::new("must be Unicode text, without a lone surrogate")),
        other => Err(Invalid::new(format!("must be a string, not {}", other.kind()))),
    }
}

fn whole_number(value: Json<'_>) -> Result<Quantity, Invalid> {
    match value {
        Json::Number(text) => Quantity::parse(text),
        other => Err(Invalid::new(format!("must be a number, not {}", other.kind()))),
    }
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
    fn a_line_says_whose_it_is_unless_that_is_known() {
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
    fn all_the_faults_are_told() {
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
    fn odd_values_get_an_answer_of_their_own() {
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
