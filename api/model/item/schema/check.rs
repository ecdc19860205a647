//! Parses items of clients: checks their JSON by a compiled schema and writes its BSON, in one go.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use bson::raw::RawDocumentBuf;
use bson::spec::ElementType;
use serde_json::value::RawValue;

use super::node::{ANY, ArrayRules, Bound, Kinds, Node, NumberKind, NumberRules, ObjectRules};
use crate::domain::{
    BrokenRule, DraftError, Faults, Instant, Invalid, Json, Member, OwnerId, OwnerType, many, one_or_many,
};
use crate::item::canonical;
use crate::item::decimal::{Decimal, NotDecimal, is_multiple};
use crate::item::draft::Draft;
use crate::item::format::StringFormat;
use crate::item::limits::{LONGEST_NAME, MOST_LEVELS, is_storable};
use crate::item::noun::Noun;
use crate::item::number::{double, integer};
use crate::item::value_path::ValuePath;

/// A compiled schema: what an item may be, and how it is written.
#[derive(Debug)]
pub struct Schema {
    pub(crate) root: Arc<Node>,
    pub(crate) noun: Noun,
    /// The index of the date.
    pub(crate) date: usize,
    pub(crate) reserved: Vec<String>,
    pub(crate) max_item_bytes: usize,
    /// Bytes of a document, so that it is within `max_item_bytes` wherever it is stored.
    pub(crate) max_document_bytes: usize,
}

impl Schema {
    /// Whether no item may have a member of this name on its first level.
    pub fn is_reserved(&self, name: &str) -> bool {
        is_reserved(&self.reserved, name)
    }

    /// Parses a JSON text that is one item or an array of 1 to `max` items, and finds all its faults.
    ///
    /// # Errors
    /// See [`DraftError`].
    pub fn parse_drafts(&self, bytes: &[u8], max: usize) -> Result<Vec<Draft>, DraftError> {
        one_or_many(bytes, max, self.nouns(), |item, pointer, faults| self.parse_draft(item, pointer, faults))
    }

    /// The same of an array alone.
    ///
    /// # Errors
    /// See [`DraftError`].
    pub fn parse_batch(&self, bytes: &[u8], max: usize) -> Result<Vec<Draft>, DraftError> {
        many(bytes, max, self.nouns(), |item, pointer, faults| self.parse_draft(item, pointer, faults))
    }

    fn nouns(&self) -> [&str; 3] {
        [self.noun.one(), self.noun.article(), self.noun.many()]
    }

    /// Parses a JSON text that is one item. With `owner`, a name and a type, this member of the text says
    /// whose item it is; it is no part of the item.
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
        match self.parse_members(members, bytes.len(), "", &mut faults) {
            Some(draft) if faults.is_empty() => Ok((owner, draft)),
            _ => Err(DraftError::Invalid(faults)),
        }
    }

    fn parse_draft(&self, raw: &RawValue, pointer: &str, faults: &mut Faults) -> Option<Draft> {
        let members = self.members(raw, pointer, faults)?;
        self.parse_members(members, raw.get().len(), pointer, faults)
    }

    fn members<'a>(&self, raw: &'a RawValue, pointer: &str, faults: &mut Faults) -> Option<Vec<Member<'a>>> {
        match Json::read(raw) {
            Json::Object(members) => Some(members),
            other => {
                let detail =
                    format!("must be {}, which is an object, not {}", self.noun.article(), other.kind());
                faults.push(|| pointer.to_owned(), detail);
                None
            }
        }
    }

    /// Parses the members of one item, which is at `pointer`, and adds all its faults to `faults`. Returns
    /// `None` if there are any. `len`: the bytes of the JSON, a guess at those of the BSON.
    pub fn parse_members<'a>(
        &'a self,
        mut members: Vec<Member<'a>>,
        len: usize,
        pointer: &str,
        faults: &mut Faults,
    ) -> Option<Draft> {
        let date = &self.root.object.properties[self.date];
        let is_date = |member: &Member<'_>| member.name.as_deref() == Some(&*date.name);
        let undated = !date.required && !members.iter().any(is_date);
        if undated {
            // A placeholder, in the place that the schema gives to the date.
            let value = serde_json::from_str(r#""1970-01-01T00:00:00Z""#).ok()?;
            let name = Some(Cow::Borrowed(&*date.name));
            members.insert(self.date.min(members.len()), Member { name, value });
        }
        let before = faults.count();
        let mut checker = ItemChecker {
            out: Vec::with_capacity(len.min(self.max_document_bytes)),
            faults,
            most_bytes: self.max_document_bytes,
            reserved: &|name| self.is_reserved(name),
            item: self.noun.article(),
        };
        let mut pieces = checker.object(&self.root.object, &members, &ValuePath::At(pointer));
        let (oversized, mut bytes) = (checker.oversized(), checker.out);
        if oversized {
            let detail = format!("must take at most {} bytes when it is stored", self.max_item_bytes);
            faults.push(|| pointer.to_owned(), detail);
            return None;
        }
        if faults.count() > before {
            return None;
        }
        bytes.shrink_to_fit();
        // The date's value ends its piece.
        let date_at = pieces.swap_remove(self.date)?.end - 8;
        let millis = i64::from_le_bytes(bytes[date_at..][..8].try_into().ok()?);
        let date = if undated { None } else { Some(Instant::from_millis(millis).ok()?) };
        Some(Draft { document: RawDocumentBuf::from_bytes(bytes).ok()?, date, date_at })
    }
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
    let parsed = match (first.map(|member| Json::read(member.value)), kind) {
        (None, _) => Err(Invalid("is required".to_owned())),
        (Some(_), _) if twice => Err(Invalid("must not be given more than once".to_owned())),
        (Some(Json::Number(text)), OwnerType::Integer) => kind.parse(text),
        (Some(Json::String(text)), kind) if kind.is_text() => kind.parse(&text.unwrap_or_default()),
        (Some(other), _) => {
            let wanted = if kind.is_text() { "string" } else { "number" };
            Err(Invalid(format!("must be a {wanted}, not {}", other.kind())))
        }
    };
    parsed.map_err(|invalid| faults.push(|| format!("/{name}"), invalid)).ok()
}

/// Whether no item may have a member of this name on its first level, beside these.
pub(crate) fn is_reserved(reserved: &[String], name: &str) -> bool {
    name.starts_with('_') || reserved.iter().any(|reserved| reserved == name)
}

/// The BSON of one item, as far as it is written, and the faults that were found.
pub(crate) struct ItemChecker<'f> {
    pub(crate) out: Vec<u8>,
    pub(crate) faults: &'f mut Faults,
    /// Beyond this many bytes nothing more is written or checked.
    pub(crate) most_bytes: usize,
    /// What the item's own object may not have, if it may have more than its schema declares.
    pub(crate) reserved: &'f dyn Fn(&str) -> bool,
    /// "a trade"
    pub(crate) item: &'f str,
}

/// Where a member is in the bytes, if it is there.
pub(crate) type Piece = Option<Range<usize>>;

const TWICE: &str = "must not be given more than once";
const NOT_A_DOUBLE: &str = "must be a number that a double can hold";

impl ItemChecker<'_> {
    pub(crate) fn oversized(&self) -> bool {
        self.out.len() > self.most_bytes
    }

    fn fault(&mut self, place: &ValuePath<'_>, rule: impl Into<BrokenRule>) -> ElementType {
        place.fault(self.faults, rule.into());
        ElementType::Null
    }

    /// Writes an element of a document or an array (bsonspec.org, version 1.1). Returns where it is.
    fn element(&mut self, name: &str, node: &Node, raw: &RawValue, place: &ValuePath<'_>) -> Range<usize> {
        let start = self.out.len();
        // Its type is known after its value.
        self.out.push(0);
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(0);
        self.out[start] = self.value(node, raw, place) as u8;
        start..self.out.len()
    }

    /// Ends the document or the array whose length has its place at `start`.
    fn end(&mut self, start: usize) {
        self.out.push(0);
        // A request is far smaller than 2 GiB.
        let len = (self.out.len() - start) as u32;
        self.out[start..][..4].copy_from_slice(&len.to_le_bytes());
    }

    /// Writes a value. Returns its type in BSON; if a fault is added, the bytes and the type mean nothing.
    pub(crate) fn value(&mut self, node: &Node, raw: &RawValue, place: &ValuePath<'_>) -> ElementType {
        let json = Json::read(raw);
        let kind = match json {
            Json::Null => Kinds::NULL,
            Json::Bool => Kinds::BOOLEAN,
            Json::Number(_) => Kinds::NUMBER,
            Json::String(_) => Kinds::STRING,
            Json::Array(_) => Kinds::ARRAY,
            Json::Object(_) => Kinds::OBJECT,
        };
        if !node.kinds.has(kind) {
            return self.fault(place, wrong_kind(node, &json));
        }
        if matches!(json, Json::String(None)) {
            return self.fault(place, "must be Unicode text, without a lone surrogate");
        }
        if let Some(one_of) = &node.one_of
            && !one_of.texts.iter().any(|text| text == raw.get())
            && !one_of.forms.contains(&canonical::form(raw))
        {
            return self.fault(place, one_of.rule.as_str());
        }
        match json {
            Json::Null => ElementType::Null,
            Json::Bool => {
                self.out.push(u8::from(raw.get() == "true"));
                ElementType::Boolean
            }
            Json::Number(text) => self.number(&node.numbers, text, place),
            Json::String(text) => self.text(node, &text.unwrap_or_default(), place),
            Json::Array(_) | Json::Object(_) if place.level() > MOST_LEVELS => {
                self.fault(place, format!("must not be nested deeper than {MOST_LEVELS} levels"))
            }
            Json::Array(items) => {
                self.array(&node.array, &items, place);
                ElementType::Array
            }
            Json::Object(members) => {
                self.object(&node.object, &members, place);
                ElementType::EmbeddedDocument
            }
        }
    }

    fn number(&mut self, rules: &NumberRules, text: &str, place: &ValuePath<'_>) -> ElementType {
        let whole = if rules.kind == NumberKind::Double { None } else { integer(text) };
        let number = double(text);
        let refusing = number.and_then(|number| rules.bounds.iter().find(|bound| !bound.admits(number)));
        if rules.kind == NumberKind::Integer && (whole.is_none() || refusing.is_some()) {
            return self.fault(place, whole_number(rules));
        }
        let Some(number) = number else {
            return self.fault(place, NOT_A_DOUBLE);
        };
        if let Some(bound) = refusing {
            return self.fault(place, bound.rule());
        }
        if let Some(of) = rules.multiple_of
            && !is_multiple(number, of)
        {
            return self.fault(place, format!("must be a multiple of {of}"));
        }
        let (bytes, kind) = match whole {
            Some(whole) => (whole.to_le_bytes(), ElementType::Int64),
            None => (number.to_le_bytes(), ElementType::Double),
        };
        self.out.extend_from_slice(&bytes);
        kind
    }

    fn text(&mut self, node: &Node, text: &str, place: &ValuePath<'_>) -> ElementType {
        let rules = &node.text;
        if !rules.count.admits(text.chars().count()) {
            return self.fault(place, rules.count.rule("character"));
        }
        if let Some(pattern) = &rules.pattern
            && !pattern.matches(text)
        {
            return self.fault(place, pattern.rule.as_str());
        }
        let written = match rules.format {
            Some(StringFormat::DateTime) => Instant::parse_rfc3339(text).map(|instant| {
                self.out.extend_from_slice(&instant.millis().to_le_bytes());
                ElementType::DateTime
            }),
            Some(StringFormat::Decimal) => decimal(text, &node.numbers.bounds).map(|bytes| {
                self.out.extend_from_slice(&bytes);
                ElementType::Decimal128
            }),
            format => format.map_or(Ok(()), |format| format.check(text)).map(|()| {
                self.out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                self.out.extend_from_slice(text.as_bytes());
                self.out.push(0);
                ElementType::String
            }),
        };
        written.unwrap_or_else(|invalid| self.fault(place, invalid))
    }

    fn array(&mut self, rules: &ArrayRules, items: &[&RawValue], place: &ValuePath<'_>) {
        if !rules.count.admits(items.len()) {
            self.fault(place, rules.count.rule("item"));
        }
        let node = rules.items.as_deref().unwrap_or(&ANY);
        let before = self.faults.count();
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        for (index, item) in items.iter().enumerate() {
            if self.oversized() {
                return;
            }
            self.element(&index.to_string(), node, item, &ValuePath::Item(place, index));
        }
        self.end(start);
        if rules.unique && self.faults.count() == before {
            let mut forms: Vec<_> = items.iter().map(|item| canonical::form(item)).collect();
            forms.sort_unstable();
            if forms.windows(2).any(|pair| pair[0] == pair[1]) {
                self.fault(place, "must not have two items that are equal");
            }
        }
    }

    /// Writes an object, declared members first, in the order of the schema. Returns where they are, one
    /// piece for each property, then the others.
    pub(crate) fn object(
        &mut self,
        rules: &ObjectRules,
        members: &[Member<'_>],
        place: &ValuePath<'_>,
    ) -> Vec<Piece> {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        let mut pieces: Vec<Piece> = vec![None; rules.properties.len()];
        let mut others = Vec::new();
        let (mut expected, mut ordered) = (0, true);
        for member in members {
            if self.oversized() {
                return pieces;
            }
            let Some(name) = member.name.as_deref() else {
                self.fault(place, "has a field whose name is not Unicode text");
                continue;
            };
            let here = ValuePath::Member(place, name);
            let (order, node) = match rules.find(name, expected) {
                Some(index) if pieces[index].is_some() => {
                    self.fault(&here, TWICE);
                    continue;
                }
                Some(index) => (index, &*rules.properties[index].node),
                None => {
                    let Some(node) = self.other(rules, name, place) else { continue };
                    others.push(name);
                    pieces.push(None);
                    (pieces.len() - 1, node)
                }
            };
            ordered &= order >= expected;
            expected = order + 1;
            pieces[order] = Some(self.element(name, node, member.value, &here));
        }
        for (order, property) in rules.properties.iter().enumerate() {
            let here = ValuePath::Member(place, &property.name);
            match &property.default {
                _ if pieces[order].is_some() => {}
                None if property.required => drop(self.fault(&here, "is required")),
                None => {}
                Some(default) => {
                    ordered &= order >= expected;
                    expected = order + 1;
                    pieces[order] = Some(self.element(&property.name, &property.node, default, &here));
                }
            }
        }
        others.sort_unstable();
        for pair in others.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.fault(&ValuePath::Member(place, pair[0]), TWICE);
        }
        if !ordered {
            self.reorder(&mut pieces);
        }
        self.end(start);
        pieces
    }

    /// The node of a member that is not declared, unless there must not be one.
    fn other<'n>(&mut self, rules: &'n ObjectRules, name: &str, place: &ValuePath<'_>) -> Option<&'n Node> {
        let (here, is_outermost) = (ValuePath::Member(place, name), matches!(place, ValuePath::At(_)));
        let node = rules.other();
        if node.is_none() && name.len() > LONGEST_NAME {
            self.fault(place, format!("has an unknown field, with a name of {} bytes", name.len()));
        } else if node.is_none() {
            let object = if is_outermost { self.item } else { "this object" };
            self.fault(&here, format!("is not a field of {object}"));
        } else if !is_storable(name) {
            self.fault(&here, "must have a name without \".\" and NUL that does not begin with \"$\"");
            return None;
        } else if is_outermost && (self.reserved)(name) {
            self.fault(&here, "has a name that is reserved");
            return None;
        }
        node
    }

    /// Puts the pieces, which end the bytes, into their order.
    fn reorder(&mut self, pieces: &mut [Piece]) {
        let Some(first) = pieces.iter().flatten().map(|piece| piece.start).min() else { return };
        let unsorted = self.out.split_off(first);
        for piece in pieces.iter_mut().flatten() {
            let start = self.out.len();
            self.out.extend_from_slice(&unsorted[piece.start - first..piece.end - first]);
            *piece = start..self.out.len();
        }
    }
}

fn wrong_kind(node: &Node, json: &Json<'_>) -> BrokenRule {
    if node.text.format == Some(StringFormat::Decimal) && matches!(json, Json::Number(_)) {
        return "must be a string, such as \"15.54\": a JSON number would be rounded on its way".into();
    }
    BrokenRule::Type { rule: format!("must be {}", node.kinds.words()), found: json.kind() }
}

/// The rule that a value breaks which should be a number, and is none that JSON can write.
pub(crate) fn not_a_number(node: &Node) -> BrokenRule {
    match &node.one_of {
        _ if !node.kinds.has(Kinds::NUMBER) => wrong_kind(node, &Json::Number("")),
        Some(one_of) => one_of.rule.as_str().into(),
        None if node.numbers.kind == NumberKind::Integer => whole_number(&node.numbers),
        None => NOT_A_DOUBLE.into(),
    }
}

fn whole_number(rules: &NumberRules) -> BrokenRule {
    let (least, most) = rules.integers();
    BrokenRule::WholeNumber { least, most }
}

/// The decimal128 of a text that is within the bounds.
pub(crate) fn decimal(text: &str, bounds: &[Bound]) -> Result<[u8; 16], Invalid> {
    let positive = bounds.iter().any(|bound| bound.side.lower && !bound.admits_decimal(&Decimal::ZERO));
    let number = match Decimal::parse(text) {
        // A sign is of no use where all numbers are positive.
        _ if positive && text.starts_with('-') => Err(NotDecimal::Notation),
        parsed => parsed,
    };
    let rule = match number {
        Ok(number) => match bounds.iter().find(|bound| !bound.admits_decimal(&number)) {
            Some(bound) => bound.rule(),
            None => match number.bytes() {
                Some(bytes) => return Ok(bytes),
                None => format!("must have at most {} digits after the point", Decimal::MAX_SCALE),
            },
        },
        Err(NotDecimal::Notation) => {
            let positive = if positive { "positive " } else { "" };
            format!("must be a {positive}decimal number in plain notation, such as \"15.54\"")
        }
        Err(NotDecimal::Digits) => format!("must have at most {} significant digits", Decimal::MAX_DIGITS),
    };
    Err(Invalid(rule))
}
