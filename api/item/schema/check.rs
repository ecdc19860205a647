//! Checks a value by its node and writes its BSON, in one go.

use serde_json::value::RawValue;

use super::constant::canonical_form;
use super::node::{ANY, Array, Bound, Kinds, Node, NumberKind, Object, Others, Side, Text};
use crate::domain::{Faults, Instant, Json, Member};
use crate::item::decimal::{Decimal, NotDecimal};
use crate::item::element;
use crate::item::format::Format;
use crate::item::levels::MOST_LEVELS;
use crate::item::name;
use crate::item::number::{double, integer, is_multiple};
use crate::item::pattern::range;
use crate::item::place::Place;

/// The BSON of one item, as far as it is written, and the faults that were found.
pub(super) struct Checker<'f> {
    pub(super) out: Vec<u8>,
    faults: &'f mut Faults,
    /// Beyond this many bytes nothing more is written or checked.
    most_bytes: usize,
    /// What the item's own object may not have, if it may have more than its schema declares.
    reserved: &'f dyn Fn(&str) -> bool,
    /// "a trade"
    item: &'f str,
}

/// Where a member is in the bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct Piece {
    start: usize,
    /// 0 for a member that is not there.
    pub(super) end: usize,
}

impl Piece {
    pub(super) fn is_there(self) -> bool {
        self.end > 0
    }
}

impl<'f> Checker<'f> {
    pub(super) fn new(
        out: Vec<u8>,
        faults: &'f mut Faults,
        most_bytes: usize,
        reserved: &'f dyn Fn(&str) -> bool,
        item: &'f str,
    ) -> Self {
        Self { out, faults, most_bytes, reserved, item }
    }

    pub(super) fn oversized(&self) -> bool {
        self.out.len() > self.most_bytes
    }

    fn fault(&mut self, place: &Place<'_>, detail: impl Into<String>) -> u8 {
        place.fault(self.faults, detail);
        element::NULL
    }

    /// Writes a value. Returns its type in BSON; if a fault is added, the bytes and the type mean nothing.
    pub(super) fn value(&mut self, node: &Node, raw: &RawValue, place: &Place<'_>, level: u32) -> u8 {
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
            && !one_of.values.iter().any(|value| value.equals(&json, raw))
        {
            return self.fault(place, one_of.rule.as_str());
        }
        match json {
            Json::Null => element::NULL,
            Json::Bool => {
                self.out.push(u8::from(raw.get() == "true"));
                element::BOOLEAN
            }
            Json::Number(text) => self.number(node, text, place),
            Json::String(text) => self.text(node, &text.unwrap_or_default(), place),
            _ if level > MOST_LEVELS => {
                self.fault(place, format!("must not be nested deeper than {MOST_LEVELS} levels"))
            }
            Json::Array(items) => {
                self.array(&node.array, &items, place, level);
                element::ARRAY
            }
            Json::Object(members) => {
                self.object(&node.object, &members, place, level);
                element::DOCUMENT
            }
        }
    }

    fn number(&mut self, node: &Node, text: &str, place: &Place<'_>) -> u8 {
        let rules = &node.numbers;
        let whole = match rules.kind {
            NumberKind::Double => None,
            NumberKind::Integer | NumberKind::AsWritten => integer(text),
        };
        if rules.kind == NumberKind::Integer {
            let Some(number) = whole.filter(|number| (rules.least..=rules.most).contains(number)) else {
                let (least, most) = (rules.least, rules.most);
                let rule = format!(
                    "must be a whole number from {least} to {most}, written without a fraction or an exponent"
                );
                return self.fault(place, rule);
            };
            self.out.extend_from_slice(&number.to_le_bytes());
            if let Some(of) = rules.multiple_of
                && !is_multiple(number as f64, of)
            {
                return self.fault(place, format!("must be a multiple of {of}"));
            }
            return element::INT64;
        }
        let Some(number) = double(text) else {
            return self.fault(place, "must be a number that a double can hold");
        };
        if let Some(bound) = rules.bounds.iter().find(|bound| !within(bound, number)) {
            return self.fault(place, bound.rule());
        }
        if let Some(of) = rules.multiple_of
            && !is_multiple(number, of)
        {
            return self.fault(place, format!("must be a multiple of {of}"));
        }
        match whole {
            Some(whole) => {
                self.out.extend_from_slice(&whole.to_le_bytes());
                element::INT64
            }
            None => {
                self.out.extend_from_slice(&number.to_le_bytes());
                element::DOUBLE
            }
        }
    }

    fn text(&mut self, node: &Node, text: &str, place: &Place<'_>) -> u8 {
        if let Err(rule) = check_length(&node.text, text) {
            return self.fault(place, rule);
        }
        if let Some(pattern) = &node.text.pattern
            && !pattern.matches(text)
        {
            return self.fault(place, pattern.rule.as_str());
        }
        match node.text.format {
            Some(Format::DateTime) => match Instant::parse_rfc3339(text) {
                Ok(instant) => {
                    self.out.extend_from_slice(&instant.millis().to_le_bytes());
                    element::DATE
                }
                Err(invalid) => self.fault(place, invalid.0),
            },
            Some(Format::Decimal) => match decimal(text, &node.numbers.bounds) {
                Ok(bytes) => {
                    self.out.extend_from_slice(&bytes);
                    element::DECIMAL128
                }
                Err(rule) => self.fault(place, rule),
            },
            format => {
                if let Some(Err(invalid)) = format.map(|format| format.check(text)) {
                    return self.fault(place, invalid.0);
                }
                element::string(&mut self.out, text);
                element::STRING
            }
        }
    }

    fn array(&mut self, rules: &Array, items: &[&RawValue], place: &Place<'_>, level: u32) {
        if let Err(rule) = check_count(rules, items.len()) {
            self.fault(place, rule);
        }
        let node = rules.items.as_deref().unwrap_or(&ANY);
        let before = self.faults.count();
        let at = element::begin(&mut self.out);
        let mut digits = [0; 20];
        for (index, item) in items.iter().enumerate() {
            if self.oversized() {
                return;
            }
            let open = element::open(&mut self.out, index_name(index, &mut digits));
            self.out[open] = self.value(node, item, &place.item(index), level + 1);
        }
        element::end(&mut self.out, at);
        if rules.unique && self.faults.count() == before {
            let mut forms: Vec<_> = items.iter().map(|item| canonical_form(item)).collect();
            forms.sort_unstable();
            if forms.windows(2).any(|pair| pair[0] == pair[1]) {
                self.fault(place, "must not have two items that are equal");
            }
        }
    }

    /// Writes an object, declared members first, in the order of the schema. Returns where they are, one piece for each
    /// property, then the others.
    pub(super) fn object(
        &mut self,
        rules: &Object,
        members: &[Member<'_>],
        place: &Place<'_>,
        level: u32,
    ) -> Vec<Piece> {
        let start = element::begin(&mut self.out);
        let declared = rules.properties.len();
        let mut pieces = vec![Piece::default(); declared];
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
            let here = place.member(name);
            let (order, node) = match rules.find(name, expected) {
                Some(index) => {
                    if pieces[index].is_there() {
                        self.fault(&here, "must not be given more than once");
                        continue;
                    }
                    (index, &*rules.properties[index].node)
                }
                None => {
                    let Some(node) = self.other(&rules.others, name, place, level) else { continue };
                    others.push(name);
                    pieces.push(Piece::default());
                    (pieces.len() - 1, node)
                }
            };
            ordered &= order >= expected;
            expected = order + 1;
            let start = element::open(&mut self.out, name.as_bytes());
            self.out[start] = self.value(node, member.value, &here, level + 1);
            pieces[order] = Piece { start, end: self.out.len() };
        }
        for (property, piece) in rules.properties.iter().zip(&pieces) {
            if property.required && !piece.is_there() {
                self.fault(&place.member(&property.name), "is required");
            }
        }
        if others.len() > 1 {
            others.sort_unstable();
            for pair in others.windows(2).filter(|pair| pair[0] == pair[1]) {
                self.fault(&place.member(pair[0]), "must not be given more than once");
            }
        }
        if !ordered {
            self.reorder(&mut pieces);
        }
        element::end(&mut self.out, start);
        pieces
    }

    /// The node of a member that is not declared, unless there must not be one.
    fn other<'n>(
        &mut self,
        others: &'n Others,
        name: &str,
        place: &Place<'_>,
        level: u32,
    ) -> Option<&'n Node> {
        let here = place.member(name);
        let node = match others {
            Others::Refused => {
                let rule = match (name.len() > name::LONGEST, level) {
                    (true, _) => {
                        let rule = format!("has an unknown field, with a name of {} bytes", name.len());
                        self.fault(place, rule);
                        return None;
                    }
                    (false, 1) => format!("is not a field of {}", self.item),
                    (false, _) => "is not a field of this object".to_owned(),
                };
                self.fault(&here, rule);
                return None;
            }
            Others::Free => &ANY,
            Others::Each(node) => node,
        };
        if !name::storable(name) {
            self.fault(&here, "must have a name without \".\" and NUL that does not begin with \"$\"");
            return None;
        }
        if level == 1 && (self.reserved)(name) {
            self.fault(&here, "has a name that is reserved");
            return None;
        }
        Some(node)
    }

    /// Puts the pieces, which end the bytes, into their order.
    fn reorder(&mut self, pieces: &mut [Piece]) {
        let there = || pieces.iter().filter(|piece| piece.is_there());
        let Some(first) = there().map(|piece| piece.start).min() else { return };
        let mut sorted = Vec::with_capacity(self.out.len() - first);
        for piece in pieces.iter_mut().filter(|piece| piece.is_there()) {
            let start = first + sorted.len();
            sorted.extend_from_slice(&self.out[piece.start..piece.end]);
            *piece = Piece { start, end: first + sorted.len() };
        }
        self.out.truncate(first);
        self.out.extend_from_slice(&sorted);
    }
}

fn wrong_kind(node: &Node, json: &Json<'_>) -> String {
    if node.text.format == Some(Format::Decimal) && matches!(json, Json::Number(_)) {
        return "must be a string, such as \"15.54\": a JSON number would be rounded on its way".to_owned();
    }
    format!("must be {}, not {}", node.kinds.words(), json.kind())
}

pub(super) fn within(bound: &Bound, number: f64) -> bool {
    match bound.side {
        Side::AtLeast => number >= bound.double,
        Side::AtMost => number <= bound.double,
        Side::Above => number > bound.double,
        Side::Below => number < bound.double,
    }
}

/// The decimal128 of a text that is within the bounds.
pub(super) fn decimal(text: &str, bounds: &[Bound]) -> Result<[u8; 16], String> {
    let positive = bounds.iter().any(|bound| {
        let sign = bound.decimal.map_or(-1, |limit| limit.sign());
        match bound.side {
            Side::AtLeast => sign > 0,
            Side::Above => sign >= 0,
            Side::AtMost | Side::Below => false,
        }
    });
    let number = match Decimal::parse(text) {
        // A sign is of no use where all numbers are positive.
        _ if positive && text.starts_with('-') => Err(NotDecimal::Notation),
        parsed => parsed,
    };
    let number = number.map_err(|error| match error {
        NotDecimal::Notation => {
            let positive = if positive { "positive " } else { "" };
            format!("must be a {positive}decimal number in plain notation, such as \"15.54\"")
        }
        NotDecimal::Digits => format!("must have at most {} significant digits", Decimal::MAX_DIGITS),
    })?;
    let outside = bounds.iter().find(|bound| {
        bound.decimal.is_some_and(|limit| {
            let order = number.compare(&limit);
            !match bound.side {
                Side::AtLeast => order.is_ge(),
                Side::AtMost => order.is_le(),
                Side::Above => order.is_gt(),
                Side::Below => order.is_lt(),
            }
        })
    });
    if let Some(bound) = outside {
        return Err(bound.rule());
    }
    number.bytes().ok_or_else(|| format!("must have at most {} digits after the point", Decimal::MAX_SCALE))
}

fn check_length(rules: &Text, text: &str) -> Result<(), String> {
    if rules.least == 0 && rules.most.is_none() {
        return Ok(());
    }
    let count = text.chars().count();
    if count >= rules.least && rules.most.is_none_or(|most| count <= most) {
        return Ok(());
    }
    Err(format!("must have {}", bounded(rules.least, rules.most, "character")))
}

fn check_count(rules: &Array, count: usize) -> Result<(), String> {
    if count >= rules.least && rules.most.is_none_or(|most| count <= most) {
        return Ok(());
    }
    Err(format!("must have {}", bounded(rules.least, rules.most, "item")))
}

/// "1 to 64 characters", "at most 10 items".
fn bounded(least: usize, most: Option<usize>, what: &str) -> String {
    let (count, last) = match (least, most) {
        (0, Some(most)) => (format!("at most {most}"), most),
        (least, Some(most)) => (range(least, most), most),
        (least, None) => (format!("at least {least}"), least),
    };
    let plural = if last == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The name of an item of an array: its index in decimal digits.
fn index_name(mut index: usize, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (index % 10) as u8;
        index /= 10;
        if index == 0 {
            return &digits[at..];
        }
    }
}
