//! Reads the JSON objects that clients send, one or many, and reports all their faults.

use serde_json::value::RawValue;

use super::{Faults, Invalid, Json, Member, NotJson};

/// Why a text cannot be parsed as the expected objects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    /// The text is not JSON.
    #[error(transparent)]
    NotJson(#[from] NotJson),
    /// The text is JSON, but does not have the expected form.
    #[error("not of its form")]
    Invalid(Faults),
}

/// A kind of object.
pub(super) struct Shape {
    /// The name of the kind, such as `trade`: a noun with a plural in `s`.
    pub(super) noun: &'static str,
    /// The names of the fields, the required ones first.
    pub(super) fields: &'static [&'static str],
    /// How many fields are required.
    pub(super) required: usize,
}

/// The longest unknown name, in bytes, that is repeated to the client.
const LONGEST_NAME_REPEATED: usize = 64;

impl Shape {
    /// Parses a JSON text that is one object or an array of 1 to `max` objects. `parse` gets each object and
    /// its JSON Pointer.
    pub(super) fn one_or_many<T>(
        &self,
        bytes: &[u8],
        max: usize,
        parse: impl Fn(&RawValue, &str, &mut Faults) -> Option<T>,
    ) -> Result<Vec<T>, DraftError> {
        let raw = Json::check(bytes)?;
        let noun = self.noun;
        let mut faults = Faults::default();
        let parsed = match Json::read(raw) {
            Json::Array(items) => {
                if items.is_empty() {
                    faults.push(String::new, format!("must have at least one {noun}"));
                } else if items.len() > max {
                    faults.push(String::new, format!("must have at most {max} {noun}s"));
                }
                let parse = |(index, item)| parse(item, &format!("/{index}"), &mut faults);
                items.into_iter().enumerate().filter_map(parse).collect()
            }
            Json::Object(_) => parse(raw, "", &mut faults).into_iter().collect(),
            other => {
                faults.push(
                    String::new,
                    format!("must be a {noun} or an array of {noun}s, not {}", other.kind()),
                );
                Vec::new()
            }
        };
        if faults.is_empty() { Ok(parsed) } else { Err(DraftError::Invalid(faults)) }
    }

    /// The members of the object at `pointer`. Any other value is a fault.
    pub(super) fn members<'a>(
        &self,
        raw: &'a RawValue,
        pointer: &str,
        faults: &mut Faults,
    ) -> Option<Vec<Member<'a>>> {
        match Json::read(raw) {
            Json::Object(members) => Some(members),
            other => {
                let detail = format!("must be a {}, which is an object, not {}", self.noun, other.kind());
                faults.push(|| pointer.to_owned(), detail);
                None
            }
        }
    }

    /// Passes each field with its value to `field`, which checks it. Adds all faults of the object to `faults`.
    /// Returns `None` if there are any.
    pub(super) fn read(
        &self,
        members: &[Member<'_>],
        pointer: &str,
        faults: &mut Faults,
        mut field: impl FnMut(&str, Json<'_>) -> Result<(), Invalid>,
    ) -> Option<()> {
        let before = faults.count();
        let mut seen = vec![false; self.fields.len()];
        for member in members {
            let Some(name) = member.name.as_deref() else {
                faults.push(|| pointer.to_owned(), "has a field whose name is not Unicode text");
                continue;
            };
            let Some(index) = self.fields.iter().position(|field| *field == name) else {
                self.refuse_unknown(name, pointer, faults);
                continue;
            };
            let at = || format!("{pointer}/{name}");
            if std::mem::replace(&mut seen[index], true) {
                faults.push(at, "must not be given more than once");
                continue;
            }
            if let Err(Invalid(detail)) = field(name, Json::read(member.value)) {
                faults.push(at, detail);
            }
        }
        for (field, seen) in self.fields.iter().zip(seen).take(self.required) {
            if !seen {
                faults.push(|| format!("{pointer}/{field}"), "is required");
            }
        }
        (faults.count() == before).then_some(())
    }

    fn refuse_unknown(&self, name: &str, pointer: &str, faults: &mut Faults) {
        if name.len() > LONGEST_NAME_REPEATED {
            faults.push(
                || pointer.to_owned(),
                format!("has an unknown field, with a name of {} bytes", name.len()),
            );
        } else {
            // RFC 6901, section 3: "~" before "/", or the escape would be escaped.
            let escaped = name.replace('~', "~0").replace('/', "~1");
            faults.push(|| format!("{pointer}/{escaped}"), format!("is not a field of a {}", self.noun));
        }
    }
}

/// The text of a JSON string, which must be Unicode.
pub(super) fn text(value: Json<'_>) -> Result<String, Invalid> {
    match value {
        Json::String(Some(text)) => Ok(text.into_owned()),
        Json::String(None) => Err(Invalid::new("must be Unicode text, without a lone surrogate")),
        other => Err(Invalid::new(format!("must be a string, not {}", other.kind()))),
    }
}

/// The characters of a JSON number.
pub(super) fn number<'a>(value: &Json<'a>) -> Result<&'a str, Invalid> {
    match value {
        Json::Number(text) => Ok(text),
        other => Err(Invalid::new(format!("must be a number, not {}", other.kind()))),
    }
}
