//! Reads the JSON of a definition: each value has its pointer, and a value of another form is a mistake.
//!
//! Mistakes are gathered, and reading goes on: who reads leaves out what has a mistake, so that it refuses
//! less, and one mistake does not lead to others.

use std::cell::RefCell;

use serde_json::value::RawValue;

use super::mistake::{Mistake, Mistakes};
use crate::domain::Json;
use crate::item::value_path::escaped;

/// What reading a part of a definition leads to.
pub(crate) type SchemaResult<T, E = Mistake> = std::result::Result<T, E>;

/// A value of a definition, and where it stands.
#[derive(Clone)]
pub struct SourceValue<'a> {
    /// The value, as it is written.
    pub raw: &'a RawValue,
    /// Where it stands: a JSON Pointer.
    pub pointer: String,
    /// The mistakes of the whole definition.
    mistakes: &'a RefCell<Mistakes>,
}

impl<'a> SourceValue<'a> {
    /// The whole of a text. Its mistakes will be in `mistakes`.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn of_text(text: &'a str, mistakes: &'a RefCell<Mistakes>) -> SchemaResult<Self> {
        let raw = Json::check(text.as_bytes());
        let raw = raw.map_err(|error| Mistake::new("", format!("is not JSON: {error}")))?;
        Ok(Self { raw, pointer: String::new(), mistakes })
    }

    /// A mistake in this value.
    pub fn mistake(&self, rule: impl Into<String>) -> Mistake {
        Mistake::new(&*self.pointer, rule)
    }

    /// Adds a mistake in this value.
    pub fn refuse(&self, rule: impl Into<String>) {
        self.add(self.mistake(rule));
    }

    /// Adds a mistake, which may stand elsewhere.
    pub fn add(&self, mistake: Mistake) {
        self.mistakes.borrow_mut().push(mistake);
    }

    /// What was read, or `None` and one more mistake.
    pub fn keep<T>(&self, read: SchemaResult<T>) -> Option<T> {
        read.map_err(|mistake| self.add(mistake)).ok()
    }

    /// Whether a mistake was found in the definition.
    pub fn has_mistakes(&self) -> bool {
        !self.mistakes.borrow().is_empty()
    }

    /// Whether a mistake was found within the value at this pointer.
    pub fn has_mistakes_within(&self, pointer: &str) -> bool {
        self.mistakes.borrow().are_within(pointer)
    }

    /// The members of an object that have a right name, each once. `None` if it is not an object, which is
    /// `what` in a sentence. `broken`: the rule that a name breaks, if any.
    pub fn object(&self, what: &str, broken: impl Fn(&str) -> Option<String>) -> Option<Members<'a>> {
        let Json::Object(members) = Json::read(self.raw) else {
            self.refuse(format!("must be {what}"));
            return None;
        };
        let mut rest: Vec<(String, Self)> = Vec::with_capacity(members.len());
        for member in members {
            let Some(name) = member.name else {
                self.refuse("has a name that is not Unicode text");
                continue;
            };
            let pointer = format!("{}/{}", self.pointer, escaped(&name));
            let source = Self { raw: member.value, pointer, mistakes: self.mistakes };
            if rest.iter().any(|(other, _)| *other == name) {
                source.refuse("must not be given more than once");
            } else if let Some(rule) = broken(&name) {
                source.refuse(rule);
            } else {
                rest.push((name.into_owned(), source));
            }
        }
        Some(Members { object: self.clone(), rest })
    }

    /// The items of an array.
    ///
    /// # Errors
    /// The value is not an array.
    pub fn array(&self) -> SchemaResult<Vec<Self>> {
        let Json::Array(items) = Json::read(self.raw) else { return Err(self.mistake("must be an array")) };
        let mistakes = self.mistakes;
        let place = |(index, raw)| Self { raw, pointer: format!("{}/{index}", self.pointer), mistakes };
        Ok(items.into_iter().enumerate().map(place).collect())
    }

    /// A text.
    ///
    /// # Errors
    /// The value is not a string.
    pub fn text(&self) -> SchemaResult<String> {
        match Json::read(self.raw) {
            Json::String(Some(text)) => Ok(text.into_owned()),
            _ => Err(self.mistake("must be a string")),
        }
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// The value is neither.
    pub fn boolean(&self) -> SchemaResult<bool> {
        self.raw.get().parse().map_err(|_| self.mistake("must be true or false"))
    }

    /// A whole number, 0 or more, of plain digits.
    ///
    /// # Errors
    /// The value is not one.
    pub fn count(&self) -> SchemaResult<usize> {
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
    pub fn number(&self) -> SchemaResult<&'a str> {
        match Json::read(self.raw) {
            Json::Number(text) => Ok(text),
            _ => Err(self.mistake("must be a number")),
        }
    }
}

/// The members of an object that have not been read yet.
pub struct Members<'a> {
    object: SourceValue<'a>,
    /// In their order.
    pub rest: Vec<(String, SourceValue<'a>)>,
}

impl<'a> Members<'a> {
    /// Removes a member.
    pub fn take(&mut self, name: &str) -> Option<SourceValue<'a>> {
        let at = self.rest.iter().position(|(other, _)| other == name)?;
        Some(self.rest.remove(at).1)
    }

    /// Whether there is a member of this name.
    pub fn has(&self, name: &str) -> bool {
        self.rest.iter().any(|(other, _)| other == name)
    }

    /// Removes a member, and reads it. `None` if it is not there, or is a mistake.
    pub fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&SourceValue<'a>) -> SchemaResult<T>,
    ) -> Option<T> {
        let source = self.take(name)?;
        source.keep(read(&source))
    }

    /// Removes a member that must be there.
    pub fn required(&mut self, name: &str) -> Option<SourceValue<'a>> {
        let member = self.take(name);
        if member.is_none() {
            self.object.add(Mistake::new(format!("{}/{name}", self.object.pointer), "is required"));
        }
        member
    }

    /// Removes a member that must be there, and reads it. `None` if that is a mistake.
    pub fn read_required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&SourceValue<'a>) -> SchemaResult<T>,
    ) -> Option<T> {
        let source = self.required(name)?;
        source.keep(read(&source))
    }
}
