//! A place in the database's log of changes: what a change stream resumes from.

use std::fmt;

use mongodb::bson::{Binary, Document, Timestamp, doc, spec::BinarySubtype};
use pagebucket_model::domain::Invalid;

/// The first byte of every token: a time follows, four bytes of seconds and four that count within the
/// second.
const TIME: &str = "82";

/// The fewest and the most digits of a token: its time, and what it is of.
const DIGITS: std::ops::RangeInclusive<usize> = 18..=2_000;

/// A place in the log. Later places are greater: tokens in hexadecimal can be compared (manual of MongoDB,
/// "Resume Tokens"). `Display` writes what [`Self::parse`] reads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    data: Box<str>,
    /// The types of numbers in it, in hexadecimal, if the server tells them apart.
    types: Option<Box<str>>,
}

impl LogPlace {
    /// Parses a place.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let (data, types) = match text.split_once('.') {
            Some((data, types)) => (data, Some(types)),
            None => (text, None),
        };
        let is_hex = |text: &str| {
            text.len().is_multiple_of(2) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
        };
        let mut whole = [Some(data), types].into_iter().flatten();
        if !data.starts_with(TIME) || !DIGITS.contains(&text.len()) || !whole.all(is_hex) || types == Some("")
        {
            return Err(Invalid::new("must be the `id` of an event of such a stream"));
        }
        Ok(Self { data: data.into(), types: types.map(Into::into) })
    }

    /// The place of a token, if it is one of a server that this version knows.
    pub(crate) fn of(token: &Document) -> Option<Self> {
        let types = token.get_binary_generic("_typeBits").ok().map(|bytes| hex(bytes));
        Self::parse(&match (token.get_str("_data").ok()?, types) {
            (data, None) => data.to_owned(),
            (data, Some(types)) => format!("{data}.{types}"),
        })
        .ok()
    }

    /// When what is at this place happened.
    pub(crate) fn time(&self) -> Timestamp {
        let number = |at: usize| self.data.get(at..at + 8).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        // It was parsed, so it has both.
        Timestamp { time: number(2).unwrap_or(0), increment: number(10).unwrap_or(0) }
    }

    pub(crate) fn token(&self) -> Option<Document> {
        let mut token: Document = doc! { "_data": &*self.data };
        if let Some(types) = &self.types {
            let bytes = (0..types.len()).step_by(2).map(|at| u8::from_str_radix(&types[at..at + 2], 16));
            let bytes = bytes.collect::<Result<Vec<_>, _>>().ok()?;
            token.insert("_typeBits", Binary { subtype: BinarySubtype::Generic, bytes });
        }
        Some(token)
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.types {
            None => formatter.write_str(&self.data),
            Some(types) => write!(formatter, "{}.{types}", self.data),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &str = "8265A1B2C3000000012B0229296E04";

    #[test]
    fn a_token_is_a_text_and_back() {
        for text in [DATA.to_owned(), format!("{DATA}.80FF")] {
            let place = LogPlace::parse(&text).unwrap();
            assert_eq!(LogPlace::of(&place.token().unwrap()), Some(place.clone()));
            assert_eq!(place.to_string(), text);
        }
        assert_eq!(LogPlace::parse(DATA).unwrap().time(), Timestamp { time: 0x65A1_B2C3, increment: 1 });
        let later = LogPlace::parse(&DATA.replace("C3", "C4")).unwrap();
        assert!(LogPlace::parse(DATA).unwrap() < later);
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let long = format!("82{}", "00".repeat(1_000));
        for text in [
            "",
            "34",
            "82",
            &DATA.to_lowercase(),
            &DATA[1..],
            &format!("{DATA}."),
            &format!("{DATA}.8"),
            &long,
        ] {
            assert!(LogPlace::parse(text).is_err(), "{text}");
        }
    }
}
