//! From the cells of a row to an item.

use super::columns::{Column, Columns, Owner};
use super::json::{write_number, write_string};
use super::trades;
use super::value::Value;
use crate::domain::{DraftError, Fault, Invalid, Member, OwnerId, OwnerType};
use crate::item::Draft;

/// The value of a row under one name.
#[derive(Debug)]
pub(super) struct Cell<'a> {
    /// The column or field it was found under.
    pub(super) name: &'a str,
    pub(super) value: Value<'a>,
}

/// The cells of a row.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    pub(super) owner: Option<Cell<'a>>,
    /// In the order of the properties.
    pub(super) properties: Vec<Option<Cell<'a>>>,
    /// Members that are no properties, and that an item may have.
    pub(super) others: Vec<Member<'a>>,
}

/// Most faults of a row that are told. A row of 64 KiB may have ten thousand.
const MOST_FAULTS: usize = 10;

impl Columns {
    /// The item of a row, and its owner. The cells become JSON, and the schema checks that as it checks the API's.
    ///
    /// # Errors
    /// All that is wrong with the row, as one sentence.
    pub(super) fn item(&self, cells: &Cells<'_>) -> Result<(OwnerId, Draft), String> {
        let mut faults = Faults::default();
        let owner = match &self.owner {
            Owner::Of(owner) => Some(owner.clone()),
            Owner::In(column) => {
                let kind = self.definition.owner.kind;
                parse_owner(column, cells.owner.as_ref(), kind).map_err(|said| faults.push(0, said)).ok()
            }
        };
        let json = self.json(cells, &mut faults);
        faults.unwritten = faults.said.len();
        let draft = match self.definition.item.parse_line(&json, None) {
            Ok((_, draft)) => Some(draft),
            Err(DraftError::NotJson(error)) => return Err(format!("is not JSON: {error}")),
            Err(DraftError::Invalid(found)) => {
                found.kept().iter().for_each(|fault| self.add(fault, cells, &mut faults));
                faults.omitted += found.omitted();
                None
            }
        };
        for (index, cell) in cells.properties.iter().enumerate() {
            if let Some(Cell { name, value: Value::Empty }) = cell
                && !faults.said.iter().any(|(column, _)| *column == index + 1)
            {
                faults.push(index + 1, format!("{name:?} must not be empty"));
            }
        }
        match (owner, draft) {
            (Some(owner), Some(draft)) if faults.said.is_empty() => Ok((owner, draft)),
            _ => Err(faults.sentence()),
        }
    }

    /// The item as JSON, without what cannot be written, which is a fault.
    fn json(&self, cells: &Cells<'_>, faults: &mut Faults) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.push(b'{');
        let sign = self.sign(cells);
        for (index, (column, cell)) in self.properties.iter().zip(&cells.properties).enumerate() {
            let Some(Cell { name, value }) = cell else {
                if column.required && !(sign.is_some() && column.property == trades::SIDE) {
                    faults.push(index + 1, missing(column));
                }
                continue;
            };
            let from = out.len();
            begin_member(&column.property, &mut out);
            let written = match sign {
                Some((_, Some(digits))) if column.property == trades::QTY => {
                    write_number(digits, b"0.5", &mut out);
                    Ok(())
                }
                _ => value.write(column.values.kind, &mut out),
            };
            if let Err(Invalid(rule)) = written {
                out.truncate(from);
                let rule = self.rule(column, cells, &rule);
                faults.push(index + 1, format!("{name:?} {rule}{}", value.shown()));
            }
        }
        if let Some((side, _)) = sign {
            begin_member(trades::SIDE, &mut out);
            write_string(side, &mut out);
        }
        for Member { name, value } in &cells.others {
            match name {
                Some(name) => {
                    begin_member(name, &mut out);
                    Value::Json(value).write(None, &mut out).unwrap_or_default();
                }
                None => faults.push(usize::MAX, "has a field whose name is not Unicode text".to_owned()),
            }
        }
        out.push(b'}');
        out
    }

    /// Of a trade without a type: the type that the sign of its quantity says, and the digits, if it has any.
    fn sign<'v>(&self, cells: &'v Cells<'_>) -> Option<(&'static str, Option<&'v str>)> {
        let cell = |name: &str| {
            let at = self.properties.iter().position(|column| column.property == name)?;
            cells.properties[at].as_ref()
        };
        if !self.signed || cell(trades::SIDE).is_some() {
            return None;
        }
        Some(cell(trades::QTY).map_or(("buy", None), |cell| trades::split_sign(&cell.value)))
    }

    fn rule(&self, column: &Column, cells: &Cells<'_>, rule: &str) -> String {
        if column.property == trades::QTY && self.sign(cells).is_some() {
            trades::signed_rule(rule)
        } else {
            rule.to_owned()
        }
    }

    /// Adds a fault that the schema has found, with the name of the file and what the cell shows.
    fn add(&self, fault: &Fault, cells: &Cells<'_>, faults: &mut Faults) {
        let Fault { pointer, detail, .. } = fault;
        let Some(path) = pointer.strip_prefix('/') else {
            return faults.push(usize::MAX, detail.clone());
        };
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let Some(index) = self.properties.iter().position(|column| column.property == first) else {
            return faults.push(usize::MAX, format!("{path:?} {detail}"));
        };
        // What was not written has its fault already.
        if faults.said[..faults.unwritten].iter().any(|(column, _)| *column == index + 1) {
            return;
        }
        let column = &self.properties[index];
        faults.push(
            index + 1,
            match (&cells.properties[index], rest) {
                (None, _) => missing(column),
                (Some(Cell { name, .. }), Some(rest)) => format!("{:?} {detail}", format!("{name}/{rest}")),
                (Some(Cell { name, value }), None) => {
                    let rule = self.rule(column, cells, without_kind(detail));
                    format!("{name:?} {rule}{}", value.shown())
                }
            },
        );
    }
}

/// What is wrong with a row: each with its column, for the order.
#[derive(Default)]
struct Faults {
    said: Vec<(usize, String)>,
    /// Number of the first ones: of members that are not in the JSON.
    unwritten: usize,
    omitted: usize,
}

impl Faults {
    fn push(&mut self, column: usize, said: String) {
        self.said.push((column, said));
    }

    fn sentence(mut self) -> String {
        self.said.sort_by_key(|(column, _)| *column);
        let omitted = self.omitted + self.said.len().saturating_sub(MOST_FAULTS);
        let mut said: Vec<_> = self.said.into_iter().take(MOST_FAULTS).map(|(_, said)| said).collect();
        if omitted > 0 {
            said.push(format!("and {omitted} more faults"));
        }
        said.join("; ")
    }
}

fn begin_member(name: &str, out: &mut Vec<u8>) {
    if out.len() > 1 {
        out.push(b',');
    }
    write_string(name, out);
    out.push(b':');
}

fn missing(column: &Column) -> String {
    let names: Vec<_> = column.names.iter().map(|name| format!("{name:?}")).collect();
    format!("has no field {}", names.join(" or "))
}

fn parse_owner(column: &Column, cell: Option<&Cell<'_>>, kind: OwnerType) -> Result<OwnerId, String> {
    let Cell { name, value } = cell.ok_or_else(|| missing(column))?;
    let parsed = match (kind, value) {
        (OwnerType::String, Value::Text(text)) => kind.parse(text),
        (OwnerType::String, Value::Empty) => kind.parse(""),
        (OwnerType::String, _) => Err(Invalid("must be a string".to_owned())),
        (OwnerType::Integer, value) => value.number().and_then(|text| kind.parse(text)),
    };
    parsed.map_err(|Invalid(rule)| format!("{name:?} {rule}{}", value.shown()))
}

/// A rule without "not a string" and the like at its end: what the cell shows follows.
fn without_kind(rule: &str) -> &str {
    match rule.rsplit_once(", not ") {
        Some((rule, "null" | "a boolean" | "a number" | "a string" | "an array" | "an object")) => rule,
        _ => rule,
    }
}
