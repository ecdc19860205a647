//! Reads the JSON of a definition: each value has its pointer, and a value of another form is a mistake.

use serde_json::value::RawValue;

use crate::domain::Json;
use crate::item::place::escaped;

/// A mistake in a definition: where, and which rule it breaks. One sentence: "/pageSize must be a whole number from 2 to 200".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {rule}", if .pointer.is_empty() { "the document" } else { .pointer })]
pub struct Mistake {
    /// A JSON Pointer (RFC 6901), empty for the whole document.
    pub pointer: String,
    /// The rule, as a sentence without a subject and a full stop.
    pub rule: String,
}

/// What reading a definition leads to.
pub(super) type Result<T, E = Mistake> = std::result::Result<T, E>;

impl Mistake {
    /// A mistake at this place.
    pub fn new(pointer: impl Into<String>, rule: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), rule: rule.into() }
    }
}

/// A value of a definition, and where it stands.
#[derive(Clone)]
pub struct Source<'a> {
    /// The value, as it is written.
    pub raw: &'a RawValue,
    /// Where it stands: a JSON Pointer.
    pub pointer: String,
}

impl<'a> Source<'a> {
    /// The whole of a text.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn of_text(text: &'a str) -> Result<Self> {
        let raw = Json::check(text.as_bytes());
        let raw = raw.map_err(|error| Mistake::new("", format!("is not JSON: {error}")))?;
        Ok(Self { raw, pointer: String::new() })
    }

    /// A mistake in this value.
    pub fn mistake(&self, rule: impl Into<String>) -> Mistake {
        Mistake::new(&*self.pointer, rule)
    }

    /// The members of an object, each once. `known`: whether there may be one of this name.
    ///
    /// # Errors
    /// The value is not an object, which is `what` in a sentence. It has a name twice, or one of another name, which
    /// breaks the rule `unknown`.
    pub fn object(&self, what: &str, known: impl Fn(&str) -> bool, unknown: &str) -> Result<Members<'a>> {
        let Json::Object(members) = Json::read(self.raw) else {
            return Err(self.mistake(format!("must be {what}")));
        };
        let mut rest: Vec<(String, Self)> = Vec::with_capacity(members.len());
        for member in members {
            let name = member.name.ok_or_else(|| self.mistake("has a name that is not Unicode text"))?;
            let pointer = format!("{}/{}", self.pointer, escaped(&name));
            if rest.iter().any(|(other, _)| *other == name) {
                return Err(Mistake::new(pointer, "must not be given more than once"));
            }
            rest.push((name.into_owned(), Self { raw: member.value, pointer }));
        }
        match rest.iter().find(|(name, _)| !known(name)) {
            Some((_, member)) => Err(member.mistake(unknown)),
            None => Ok(Members { pointer: self.pointer.clone(), rest }),
        }
    }

    /// The items of an array.
    ///
    /// # Errors
    /// The value is not an array.
    pub fn array(&self) -> Result<Vec<Self>> {
        let Json::Array(items) = Json::read(self.raw) else { return Err(self.mistake("must be an array")) };
        let place = |(index, raw)| Self { raw, pointer: format!("{}/{index}", self.pointer) };
        Ok(items.into_iter().enumerate().map(place).collect())
    }

    /// A text.
    ///
    /// # Errors
    /// The value is not a string.
    pub fn text(&self) -> Result<String> {
        match Json::read(self.raw) {
            Json::String(Some(text)) => Ok(text.into_owned()),
            _ => Err(self.mistake("must be a string")),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn boolean(&self) -> Result<bool> {
        self.raw.get().parse().map_err(|_| self.mistake("must be true or false"))
    }

    /// A whole number, 0 or more, of plain digits.
    ///
    /// # Errors
    /// The value is not one.
    pub fn count(&self) -> Result<usize> {
        let number = self.raw.get().parse::<u32>();
        number.map(|number| number as usize).map_err(|_| {
            self.mistake(
                "must be a whole number from 0 to 4294967295, written without a fraction or an exponent",
            )
        })
    }

    /// The characters of a number.
    ///
    /// # Errors
    /// The value is not a number.
    pub fn number(&self) -> Result<&'a str> {
        match Json::read(self.raw) {
            Json::Number(text) => Ok(text),
            _ => Err(self.mistake("must be a number")),
        }
    }
}

/// The members of an object that have not been read yet.
pub struct Members<'a> {
    /// Where the object stands: a JSON Pointer.
    pointer: String,
    /// In their order.
    pub rest: Vec<(String, Source<'a>)>,
}

impl<'a> Members<'a> {
    /// Removes a member.
    pub fn take(&mut self, name: &str) -> Option<Source<'a>> {
        let at = self.rest.iter().position(|(other, _)| other == name)?;
        Some(self.rest.remove(at).1)
    }

    /// Removes a member, and reads it if it is there.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn read<T>(&mut self, name: &str, read: impl FnOnce(&Source<'a>) -> Result<T>) -> Result<Option<T>> {
        self.take(name).map(|source| read(&source)).transpose()
    }

    /// Removes a member that must be there.
    ///
    /// # Errors
    /// It is not there.
    pub fn required(&mut self, name: &str) -> Result<Source<'a>> {
        self.take(name).ok_or_else(|| Mistake::new(format!("{}/{name}", self.pointer), "is required"))
    }
}
