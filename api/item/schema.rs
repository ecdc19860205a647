//! Parses items of clients by a compiled schema.

mod check;
mod compile;
mod constant;
mod example;
mod keywords;
mod mistake;
mod node;
mod source;

use std::sync::Arc;

use mongodb::bson::raw::RawDocumentBuf;
use serde_json::Value;
use serde_json::value::RawValue;

use self::check::Checker;
use self::node::{ANY, Kinds, Node, NumberKind, Others};
use super::draft::Draft;
use super::format::Format;
use super::noun::Noun;
use super::place::Place;
use crate::domain::{DraftError, Faults, Instant, Invalid, Json, Member, OwnerId, OwnerType, PageSize};

pub use self::mistake::Mistake;
pub use self::source::Source;

/// What a definition says of its items beside their schema.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The item's name in camel case, for sentences.
    pub title: &'a str,
    /// The property that is the item's date.
    pub date: &'a str,
    /// Names that an item must not use. Names that begin with `_` are reserved too.
    pub reserved: &'a [&'a str],
    /// How many items a bucket has.
    pub page_size: PageSize,
    /// Bytes of a stored item, its index in the bucket and the engine's key included.
    pub max_item_bytes: usize,
    /// The engine's field for the key.
    pub key_field: &'a str,
}

/// A compiled schema: what an item may be, and how it is written.
#[derive(Debug)]
pub struct Schema {
    root: Arc<Node>,
    noun: Noun,
    /// "a trade"
    article: String,
    date: usize,
    date_name: Arc<str>,
    reserved: Vec<String>,
    max_item_bytes: usize,
    /// Bytes of a document, so that it is within `max_item_bytes` wherever it is stored.
    max_document_bytes: usize,
}

impl Schema {
    /// Compiles the schema of an item.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(source: &Source<'_>, frame: &Frame<'_>) -> Result<Self, Mistake> {
        let root = compile::compile(source)?;
        let within = |part: &str| format!("{}/{part}", source.pointer());
        if root.kinds != Kinds::OBJECT {
            return Err(Mistake::new(within("type"), "must be \"object\""));
        }
        let reserved: Vec<String> =
            frame.reserved.iter().chain([&frame.key_field]).map(|name| (*name).to_owned()).collect();
        let properties = &root.object.properties;
        if let Some(property) = properties.iter().find(|property| is_reserved(&reserved, &property.name)) {
            return Err(Mistake::new(
                within(&format!("properties/{}", property.name)),
                "has a name that is reserved",
            ));
        }
        let date = properties.iter().position(|property| property.name == frame.date);
        let date = date.ok_or_else(|| Mistake::new("/date", "must name a property of the item"))?;
        if !is_plain_date(&properties[date].node) {
            return Err(Mistake::new(
                within(&format!("properties/{}", frame.date)),
                "must be { \"type\": \"string\", \"format\": \"date-time\" }, because date names it",
            ));
        }
        let noun = Noun::of_name(frame.title);
        let index_digits = (frame.page_size.get() - 1).to_string().len();
        // An element of the array, and in its document a key of 12 bytes: type, name, length, subtype, bytes.
        let around = (1 + index_digits + 1) + (1 + frame.key_field.len() + 1 + 4 + 1 + 12);
        Ok(Self {
            article: noun.article(),
            noun,
            date,
            date_name: frame.date.into(),
            reserved,
            max_item_bytes: frame.max_item_bytes,
            max_document_bytes: frame.max_item_bytes.saturating_sub(around),
            root,
        })
    }

    /// What an item is called.
    pub fn noun(&self) -> &Noun {
        &self.noun
    }

    /// Whether clients must send the date.
    pub fn date_is_required(&self) -> bool {
        self.root.object.properties[self.date].required
    }

    /// Parses one item, which is at `pointer`, and adds all its faults to `faults`. Returns `None` if there are any.
    pub fn parse_draft(&self, raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<Draft> {
        let members = self.members(raw, pointer, faults)?;
        self.parse_members(&members, raw.get().len(), pointer, faults)
    }

    /// Parses a JSON text that is one item or an array of 1 to `max` items, and finds all its faults.
    ///
    /// # Errors
    /// See [`DraftError`].
    pub fn parse_drafts(&self, bytes: &[u8], max: usize) -> Result<Vec<Draft>, DraftError> {
        let raw = Json::check(bytes)?;
        let (article, one, many) = (&self.article, self.noun.one(), self.noun.many());
        let mut faults = Faults::default();
        let mut drafts = Vec::new();
        match Json::read(raw) {
            Json::Array(items) => {
                if items.is_empty() {
                    faults.push(String::new, format!("must have at least one {one}"));
                } else if items.len() > max {
                    faults.push(String::new, format!("must have at most {max} {many}"));
                }
                drafts.reserve(items.len().min(max));
                for (index, item) in items.into_iter().enumerate() {
                    drafts.extend(self.parse_draft(item, &format!("/{index}"), &mut faults));
                }
            }
            Json::Object(members) => {
                drafts.extend(self.parse_members(&members, bytes.len(), "", &mut faults));
            }
            other => {
                let rule = format!("must be {article} or an array of {many}, not {}", other.kind());
                faults.push(String::new, rule);
            }
        }
        if faults.is_empty() { Ok(drafts) } else { Err(DraftError::Invalid(faults)) }
    }

    /// Parses a JSON text that is one item. With `owner`, a name and a type, this member of the text says whose item
    /// it is; it is no part of the item.
    ///
    /// # Errors
    /// See [`DraftError`].
    pub fn parse_line(
        &self,
        bytes: &[u8],
        owner: Option<(&str, OwnerType)>,
    ) -> Result<(Option<OwnerId>, Draft), DraftError> {
        let raw = Json::check(bytes)?;
        let mut faults = Faults::default();
        let Some(mut members) = self.members(raw, "", &mut faults) else {
            return Err(DraftError::Invalid(faults));
        };
        let owner = owner.and_then(|(name, kind)| take_owner(&mut members, name, kind, &mut faults));
        match self.parse_members(&members, bytes.len(), "", &mut faults) {
            Some(draft) if faults.is_empty() => Ok((owner, draft)),
            _ => Err(DraftError::Invalid(faults)),
        }
    }

    fn members<'a>(&self, raw: &'a RawValue, pointer: &str, faults: &mut Faults) -> Option<Vec<Member<'a>>> {
        match Json::read(raw) {
            Json::Object(members) => Some(members),
            other => {
                let detail = format!("must be {}, which is an object, not {}", self.article, other.kind());
                faults.push(|| pointer.to_owned(), detail);
                None
            }
        }
    }

    /// `len`: the bytes of the JSON, a guess at those of the BSON.
    fn parse_members(
        &self,
        members: &[Member<'_>],
        len: usize,
        pointer: &str,
        faults: &mut Faults,
    ) -> Option<Draft> {
        let before = faults.count();
        let out = Vec::with_capacity(len.min(self.max_document_bytes));
        let reserved = |name: &str| is_reserved(&self.reserved, name);
        let mut checker = Checker::new(out, faults, self.max_document_bytes, &reserved, &self.article);
        let pieces = checker.object(&self.root.object, members, &Place::At(pointer), 1);
        let oversized = checker.oversized();
        let mut bytes = checker.out;
        if !oversized && faults.count() > before {
            return None;
        }
        let draft = (!oversized).then(|| {
            bytes.shrink_to_fit();
            // The date's value ends its piece; without one, the date belongs after the properties before it.
            let until = &pieces[..=self.date];
            if until[self.date].is_there() {
                let end = until[self.date].end;
                let date = bytes[end - 8..end].try_into().map(i64::from_le_bytes);
                let date = date.ok().and_then(|date| Instant::from_millis(date).ok())?;
                return Some(Draft::with_date(RawDocumentBuf::from_bytes(bytes).ok()?, date));
            }
            let at = until.iter().rev().find(|piece| piece.is_there()).map_or(4, |piece| piece.end);
            let document = RawDocumentBuf::from_bytes(bytes).ok()?;
            Some(Draft::without_date(document, self.date_name.clone(), at))
        });
        let draft = draft.flatten().filter(|draft| draft.size() <= self.max_document_bytes);
        if draft.is_none() {
            let detail = format!("must take at most {} bytes when it is stored", self.max_item_bytes);
            faults.push(|| pointer.to_owned(), detail);
        }
        draft
    }

    /// An item that the schema accepts, for documentation: its own example, or one that is made. `None` if none is
    /// found, as for regular expressions that contradict a length.
    pub fn example(&self) -> Option<Value> {
        let mut candidates = [true, false].into_iter().filter_map(|all| example::example(&self.root, all));
        candidates.find(|item| self.parse_drafts(item.to_string().as_bytes(), 1).is_ok())
    }

    /// The properties of an item, in their order.
    pub fn properties(&self) -> impl Iterator<Item = Property<'_>> {
        self.root.object.properties.iter().map(|property| Property {
            name: &property.name,
            values: values_of(&property.node),
            required: property.required,
        })
    }

    /// What the members may be that are no properties; `None` if there must not be any.
    pub fn other_members(&self) -> Option<Values> {
        match &self.root.object.others {
            Others::Refused => None,
            Others::Free => Some(values_of(&ANY)),
            Others::Each(node) => Some(values_of(node)),
        }
    }

    /// Whether no item may have a member of this name on its first level.
    pub fn is_reserved(&self, name: &str) -> bool {
        is_reserved(&self.reserved, name)
    }

    /// The properties as columns of a table, in their order, if each is a scalar of one type and an item has no others.
    pub fn columns(&self) -> Option<Vec<Column<'_>>> {
        if self.other_members().is_some() {
            return None;
        }
        let column = |Property { name, values, required }| {
            let kind = values.kind.filter(|_| !values.null)?;
            Some(Column { name, kind, required })
        };
        self.properties().map(column).collect()
    }
}

fn values_of(node: &Node) -> Values {
    let null = node.kinds.has(Kinds::NULL);
    let only = |kind: Kinds| node.kinds == kind || node.kinds == kind.with(Kinds::NULL);
    let kind = match (node.text.format, node.numbers.kind) {
        (Some(Format::DateTime), _) if only(Kinds::STRING) => Some(ColumnKind::Date),
        (Some(Format::Decimal), _) if only(Kinds::STRING) => Some(ColumnKind::Decimal),
        _ if only(Kinds::STRING) => Some(ColumnKind::Text),
        (_, NumberKind::Integer) if only(Kinds::NUMBER) => Some(ColumnKind::Integer),
        _ if only(Kinds::NUMBER) => Some(ColumnKind::Number),
        _ if only(Kinds::BOOLEAN) => Some(ColumnKind::Boolean),
        _ => None,
    };
    Values { kind, null }
}

/// A property of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Property<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it may be.
    pub values: Values,
    /// Whether each item has it.
    pub required: bool,
}

/// What a member of an item may be, roughly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Values {
    /// The only type of its values, null aside; `None` if there are several, or they are nested.
    pub kind: Option<ColumnKind>,
    /// Whether it may be null.
    pub null: bool,
}

/// A property that a cell of a table can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The property's name.
    pub name: &'a str,
    /// What a cell holds.
    pub kind: ColumnKind,
    /// Whether each item has it.
    pub required: bool,
}

/// What a cell of a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A string in JSON.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A string in JSON: RFC 3339.
    Date,
    /// A string in JSON: a decimal number in plain notation.
    Decimal,
}

fn is_reserved(reserved: &[String], name: &str) -> bool {
    name.starts_with('_') || reserved.iter().any(|reserved| reserved == name)
}

fn is_plain_date(node: &Node) -> bool {
    let text = &node.text;
    node.kinds == Kinds::STRING
        && text.format == Some(Format::DateTime)
        && node.one_of.is_none()
        && (text.least, text.most, text.pattern.is_none()) == (0, None, true)
}

/// Removes the member that names the owner, and parses it. Adds what is wrong with it to `faults`.
fn take_owner(
    members: &mut Vec<Member<'_>>,
    name: &str,
    kind: OwnerType,
    faults: &mut Faults,
) -> Option<OwnerId> {
    let mut given = members.extract_if(.., |member| member.name.as_deref() == Some(name));
    let (first, twice) = (given.next(), given.next().is_some());
    given.for_each(drop);
    let parsed = match first.map(|member| Json::read(member.value)) {
        None => Err(Invalid("is required".to_owned())),
        Some(_) if twice => Err(Invalid("must not be given more than once".to_owned())),
        Some(value) => match (kind, value) {
            (OwnerType::Integer, Json::Number(text)) => kind.parse(text),
            (OwnerType::String, Json::String(text)) => kind.parse(&text.unwrap_or_default()),
            (OwnerType::Integer, other) => Err(Invalid(format!("must be a number, not {}", other.kind()))),
            (OwnerType::String, other) => Err(Invalid(format!("must be a string, not {}", other.kind()))),
        },
    };
    parsed.map_err(|Invalid(detail)| faults.push(|| format!("/{name}"), detail)).ok()
}
