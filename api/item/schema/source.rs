//! Reads the JSON of a definition: each value has its pointer, and a value of another form is a mistake.

use serde_json::value::RawValue;

use super::mistake::Mistake;
use crate::domain::Json;
use crate::item::place::escaped;

/// A value of a definition, and where it stands.
#[derive(Clone)]
pub struct Source<'a> {
    raw: &'a RawValue,
    pointer: String,
}

impl<'a> Source<'a> {
    /// The whole of a text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn of_text(text: &'a str) -> Result<Self, Mistake> {
        let raw = Json::check(text.as_bytes())
            .map_err(|error| Mistake::new("", format!("is not JSON: {error}")))?;
        Ok(Self { raw, pointer: String::new() })
    }

    /// The value, as it is written.
    pub fn raw(&self) -> &'a RawValue {
        self.raw
    }

    /// Where it stands: a JSON Pointer.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// A mistake in this value.
    pub fn mistake(&self, rule: impl Into<String>) -> Mistake {
        Mistake::new(self.pointer.clone(), rule)
    }

    /// The members of an object, each once.
    ///
    /// # Errors
    /// The value is not an object, or has a name twice.
    pub fn object(&self, what: &str) -> Result<Vec<(String, Source<'a>)>, Mistake> {
        let Json::Object(members) = Json::read(self.raw) else {
            return Err(self.mistake(format!("must be {what}")));
        };
        let mut read: Vec<(String, Source<'a>)> = Vec::with_capacity(members.len());
        for member in members {
            let name = member.name.ok_or_else(|| self.mistake("has a name that is not Unicode text"))?;
            let pointer = format!("{}/{}", self.pointer, escaped(&name));
            if read.iter().any(|(other, _)| *other == name) {
                return Err(Mistake::new(pointer, "must not be given more than once"));
            }
            read.push((name.into_owned(), Self { raw: member.value, pointer }));
        }
        Ok(read)
    }

    /// The items of an array.
    ///
    /// # Errors
    /// The value is not an array.
    pub fn array(&self) -> Result<Vec<Source<'a>>, Mistake> {
        let Json::Array(items) = Json::read(self.raw) else { return Err(self.mistake("must be an array")) };
        let place = |(index, raw)| Self { raw, pointer: format!("{}/{index}", self.pointer) };
        Ok(items.into_iter().enumerate().map(place).collect())
    }

    /// A text.
    ///
    /// # Errors
    /// The value is not a string.
    pub fn text(&self) -> Result<String, Mistake> {
        match Json::read(self.raw) {
            Json::String(Some(text)) => Ok(text.into_owned()),
            _ => Err(self.mistake("must be a string")),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn boolean(&self) -> Result<bool, Mistake> {
        match self.raw.get() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(self.mistake("must be true or false")),
        }
    }

    /// A whole number, 0 or more, of plain digits.
    ///
    /// # Errors
    /// The value is not one.
    pub fn count(&self) -> Result<usize, Mistake> {
        let number = match Json::read(self.raw) {
            Json::Number(text) => text.parse::<u32>().ok(),
            _ => None,
        };
        number.map(|number| number as usize).ok_or_else(|| {
            self.mistake(
                "must be a whole number from 0 to 4294967295, written without a fraction or an exponent",
            )
        })
    }

    /// The characters of a number.
    ///
    /// # Errors
    /// The value is not a number.
    pub fn number(&self) -> Result<&'a str, Mistake> {
        match Json::read(self.raw) {
            Json::Number(text) => Ok(text),
            _ => Err(self.mistake("must be a number")),
        }
    }
}
