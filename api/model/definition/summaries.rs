//! What summaries of a history may be asked for: by which properties items are grouped, and what becomes of
//! their numbers.

use std::fmt;

use crate::item::{ColumnKind, Mistake, Schema, SourceValue, did_you_mean, list, unknown_member};

/// The member `summaries` of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summaries {
    /// The properties by whose values items can be grouped. All are texts.
    pub groups: Vec<String>,
    /// The properties whose numbers are summarised, in their order.
    pub values: Vec<SummaryValue>,
}

/// A property whose numbers are summarised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryValue {
    /// Its name.
    pub name: String,
    /// What its numbers are.
    pub kind: StoredNumber,
    /// What becomes of them.
    pub measures: Vec<Measure>,
}

/// How the numbers of a property are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredNumber {
    /// As int64.
    Integer,
    /// As decimal128.
    Decimal,
    /// As doubles.
    Double,
}

/// What becomes of the numbers of a property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// Their exact sum.
    Sum,
    /// The least one.
    Min,
    /// The greatest one.
    Max,
    /// The first, the greatest, the least and the last one.
    Ohlc,
    /// Their average, weighted by another property.
    Vwap {
        /// The name of that property.
        weight: String,
        /// What its numbers are.
        kind: StoredNumber,
    },
}

impl Summaries {
    /// The most properties of either kind: each point of a summary has all values.
    const MOST: usize = 16;
    /// Bytes of a text that is a group.
    pub const MAX_GROUP: usize = 64;

    /// Reads the member. `item` is what `schema` was compiled from.
    pub(crate) fn read(source: &SourceValue<'_>, schema: &Schema, item: &SourceValue<'_>) -> Option<Self> {
        let known = ["group", "values"];
        let unknown = |name: &str| (!known.contains(&name)).then(|| unknown_member(name, &known));
        let mut members = source.object("an object with group and values", unknown)?;
        let groups = members.take("group").map(|source| groups(&source, schema, item)).unwrap_or_default();
        let values = members.take("values").map(|source| values(&source, schema, item)).unwrap_or_default();
        Some(Self { groups, values })
    }

    /// Its text, from which a summary is known that was made by another definition. Equal for equal
    /// definitions.
    pub fn canonical(&self) -> String {
        let measure = |measure: &Measure| match measure {
            Measure::Vwap { kind, .. } => format!("{measure} {kind:?}"),
            word => word.to_string(),
        };
        let values = self.values.iter().map(|SummaryValue { name, kind, measures }| {
            let measures: Vec<_> = measures.iter().map(measure).collect();
            format!("{name} {kind:?} {}", measures.join(" "))
        });
        let parts: Vec<_> = [self.groups.join(" ")].into_iter().chain(values).collect();
        parts.join("\n")
    }
}

impl Measure {
    /// The measures that are a word. `vwap:` has a name after it.
    const WORDS: [(&str, Self); 4] =
        [("sum", Self::Sum), ("min", Self::Min), ("max", Self::Max), ("ohlc", Self::Ohlc)];
}

impl fmt::Display for Measure {
    /// As a definition names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vwap { weight, .. } => write!(f, "vwap:{weight}"),
            word => {
                let named = Self::WORDS.iter().find(|(_, measure)| measure == word);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

/// Whether the type of a property is not known, because it has a mistake, or may refer to one.
pub(crate) fn is_unclear(name: &str, schema: &Schema, item: &SourceValue<'_>) -> bool {
    schema.properties().any(|property| property.name == name)
        && ["properties/".to_owned() + name, "$defs".to_owned()]
            .iter()
            .any(|part| item.has_mistakes_within(&format!("{}/{part}", item.pointer)))
}

fn groups(source: &SourceValue<'_>, schema: &Schema, item: &SourceValue<'_>) -> Vec<String> {
    group_names(source, schema, item, Summaries::MOST, &[])
}

/// At most `most` names of properties that are short texts, none of them one of `ours`.
pub(crate) fn group_names(
    source: &SourceValue<'_>,
    schema: &Schema,
    item: &SourceValue<'_>,
    most: usize,
    ours: &[&str],
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let sources = source.keep(source.array()).unwrap_or_default();
    if sources.len() > most {
        source.refuse(format!("must name at most {most} properties"));
    }
    for name in sources {
        let Some(text) = name.keep(name.text()) else { continue };
        let is_group = |name: &str| {
            let longest = schema.longest_text(name);
            schema.has_text(name) && longest.is_some_and(|longest| longest <= Summaries::MAX_GROUP)
        };
        if !is_unclear(&text, schema, item) && !is_group(&text) {
            let texts = schema.properties().map(|property| property.name).filter(|name| is_group(name));
            let hint = did_you_mean(&text, texts);
            name.refuse(format!(
                "must name a property that is a string of at most {} bytes, by an enum, a maxLength or a pattern{hint}",
                Summaries::MAX_GROUP
            ));
        } else if ours.contains(&&*text) {
            name.refuse(
                "must not be a name that the metaField, or a parameter of summaries, has for something else",
            );
        } else if names.contains(&text) {
            name.refuse("must not be given more than once");
        }
        names.push(text);
    }
    names
}

fn values(source: &SourceValue<'_>, schema: &Schema, item: &SourceValue<'_>) -> Vec<SummaryValue> {
    let Some(members) = source.object("an object with a list of measures for each property", |_| None) else {
        return Vec::new();
    };
    if members.rest.len() > Summaries::MOST {
        source.refuse(format!("must have at most {} properties", Summaries::MOST));
    }
    let mut values = Vec::new();
    for (name, measures) in members.rest {
        if is_unclear(&name, schema, item) {
            continue;
        }
        let Some(kind) = number_kind(&name, schema) else {
            let hint = did_you_mean(&name, numbers(schema));
            measures.refuse(format!(
                "must be named as a property that is an integer, a number, or a string of the format decimal{hint}"
            ));
            continue;
        };
        let read = |source: &SourceValue<'_>| measure(source, kind, schema, item);
        let mut given: Vec<Measure> = Vec::new();
        for source in measures.keep(measures.array()).unwrap_or_default() {
            let Some(measure) = source.keep(read(&source)).flatten() else { continue };
            if given.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&measure)) {
                source.refuse(match measure {
                    Measure::Vwap { .. } => "must be the only \"vwap:\" of the property: it has one average",
                    _ => "must not be given more than once",
                });
            }
            given.push(measure);
        }
        if given.is_empty() && !measures.has_mistakes_within(&measures.pointer) {
            measures.refuse("must name at least one measure");
        }
        values.push(SummaryValue { name, kind, measures: given });
    }
    values
}

/// One measure of a property of this kind. `None` if nothing can be said of its weight.
fn measure(
    source: &SourceValue<'_>,
    kind: StoredNumber,
    schema: &Schema,
    item: &SourceValue<'_>,
) -> Result<Option<Measure>, Mistake> {
    let text = source.text()?;
    let exact = |kind: StoredNumber| kind != StoredNumber::Double;
    let doubles = "must not be of a property that is a number: doubles have no exact sum. Store decimals, as strings of the format decimal";
    let word = Measure::WORDS.into_iter().find(|(name, _)| *name == text);
    if let Some((_, measure)) = word {
        return match measure {
            Measure::Sum if !exact(kind) => Err(source.mistake(doubles)),
            measure => Ok(Some(measure)),
        };
    }
    let Some(weight) = text.strip_prefix("vwap:") else {
        let words = Measure::WORDS.map(|(name, _)| format!("\"{name}\""));
        let words = list(&[words.as_slice(), &["\"vwap:\" and a property".to_owned()]].concat(), "or");
        return Err(source.mistake(format!("must be {words}")));
    };
    if !exact(kind) {
        return Err(source.mistake(doubles));
    }
    if is_unclear(weight, schema, item) {
        return Ok(None);
    }
    match number_kind(weight, schema).filter(|kind| exact(*kind)) {
        Some(kind) => Ok(Some(Measure::Vwap { weight: weight.to_owned(), kind })),
        None => {
            let known = numbers(schema).filter(|name| number_kind(name, schema).is_some_and(exact));
            let hint = did_you_mean(weight, known);
            Err(source.mistake(format!(
                "must name a property after \"vwap:\" that is an integer, or a string of the format decimal{hint}"
            )))
        }
    }
}

fn number_kind(name: &str, schema: &Schema) -> Option<StoredNumber> {
    let property = schema.properties().find(|property| property.name == name)?;
    match property.values.kind? {
        ColumnKind::Integer => Some(StoredNumber::Integer),
        ColumnKind::Decimal => Some(StoredNumber::Decimal),
        ColumnKind::Number => Some(StoredNumber::Double),
        ColumnKind::Text | ColumnKind::Boolean | ColumnKind::Date => None,
    }
}

/// The names of the properties that are numbers.
fn numbers(schema: &Schema) -> impl Iterator<Item = &str> {
    schema.properties().map(|property| property.name).filter(|name| number_kind(name, schema).is_some())
}
