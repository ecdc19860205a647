//! From a record or a line to the cells of a row, and from these to an item.

use std::borrow::Cow;
use std::fmt::Display;

use pagebucket_model::domain::{BrokenRule, Fault, Faults, Json, MAX_SAFE_INTEGER, Member, OwnerId};
use pagebucket_model::item::Draft;

use super::columns::{Column, Columns};
use super::csv::CsvRecord;
use super::row_faults::{RowFault, RowFaults};
use super::trades;
use super::value::{CellValue, Rounded, Unwritable, json, plain};

/// The value of a row under one name.
#[derive(Debug)]
struct Cell<'a> {
    /// The column or field it was found under.
    name: &'a str,
    value: CellValue<'a>,
}

/// After the faults of all columns.
const LAST: usize = usize::MAX;

impl Columns {
    /// The item of a record of CSV, and its owner.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub(crate) fn of_record(
        &self,
        record: &CsvRecord,
        header: &[String],
        places: &[Option<usize>],
    ) -> Result<(OwnerId, Draft), RowFaults> {
        let cells = self.columns.iter().zip(places).map(|(column, place)| {
            let place = (*place)?;
            let (field, quoted) = record.field(place);
            let value = match str::from_utf8(field) {
                Ok("") if !quoted => CellValue::Empty,
                Ok(text) => CellValue::Text(text.into()),
                Err(_) => CellValue::NotText("bytes that are no UTF-8 text"),
            };
            // An empty field says that there is no such property.
            let absent = matches!(value, CellValue::Empty) && !column.required;
            (!absent).then(|| Cell { name: &header[place], value })
        });
        self.item(&cells.collect::<Vec<_>>(), Vec::new())
    }

    /// The item of a line of NDJSON, and its owner.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn of_line(&self, line: &[u8]) -> Result<(OwnerId, Draft), RowFaults> {
        let raw = Json::check(line).map_err(|error| format!("is not JSON: {}", error.in_one_line()))?;
        let mut members = match Json::read(raw) {
            Json::Object(members) => members,
            other => return Err(RowFault::but_found("must be an object".to_owned(), other.kind()).into()),
        };
        let cells = self.columns.iter().map(|column| cell(column, &members, self.flag));
        let cells: Vec<_> = cells.collect::<Result<_, _>>()?;
        let Some(values) = self.definition.item.other_members() else {
            return self.item(&cells, Vec::new());
        };
        // An item keeps members that are no properties.
        members.retain(|Member { name, value }| {
            let in_use = |name: &str| {
                cells.iter().flatten().any(|cell| cell.name == name)
                    || self.columns.iter().any(|column| column.property == name)
            };
            let kept = |name: &str| !in_use(name) && !self.definition.item.is_reserved(name);
            name.as_deref().is_none_or(kept) && (values.null || value.get() != "null")
        });
        self.item(&cells, members)
    }

    /// Checks that no property has two names in a line of NDJSON.
    ///
    /// # Errors
    /// One has: the end of a sentence.
    pub(crate) fn check_names(&self, line: &[u8]) -> Result<(), String> {
        let Ok(Json::Object(members)) = Json::check(line).map(Json::read) else { return Ok(()) };
        let has = |name: &str| {
            members.iter().any(|member| member.name.as_deref() == Some(name) && member.value.get() != "null")
        };
        self.columns.iter().try_for_each(|column| {
            let names: Vec<_> = column.names.iter().map(|name| &**name).filter(|name| has(name)).collect();
            column.one_of(&names, self.flag)
        })
    }

    /// The item of a row, and its owner, from the cells of its columns and the members that are no
    /// properties. All of them become JSON, and the schema checks that as it checks the API's.
    ///
    /// # Errors
    /// All that is wrong with the row.
    fn item(
        &self,
        cells: &[Option<Cell<'_>>],
        others: Vec<Member<'_>>,
    ) -> Result<(OwnerId, Draft), RowFaults> {
        let sign = self.sign(cells);
        let mut owner = self.owner.clone();
        let mut values = Vec::with_capacity(cells.len() + others.len() + 1);
        // What is wrong with the row: each with its column, for the order.
        let mut said = Vec::new();
        for (at, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let Some(cell) = cell else {
                if column.required && !(sign.is_some() && column.property == trades::SIDE) {
                    said.push((at, missing(column)));
                }
                continue;
            };
            let json = match &sign {
                _ if at == 0 && self.owner.is_none() => match cell.value.owner(self.definition.owner.kind) {
                    Ok(id) => {
                        owner = Some(id);
                        continue;
                    }
                    Err(invalid) => Err(invalid.into()),
                },
                Some((_, Some(unsigned))) if column.property == trades::QTY => {
                    unsigned.json(column.values.kind)
                }
                _ => cell.value.json(column.values.kind),
            };
            let rule = match json {
                Ok(json) => {
                    values.push((Some(Cow::from(&column.property)), json));
                    continue;
                }
                Err(Unwritable::Invalid(invalid)) => invalid.into(),
                Err(Unwritable::NotANumber) => self.definition.item.not_a_number(&column.property),
                Err(Unwritable::Rounded(number)) => {
                    said.push((at, rounded(cell.name, number)));
                    continue;
                }
            };
            said.push((at, self.broken(column, cell, cells, &rule)));
        }
        if let Some((side, _)) = sign {
            values.push((Some(trades::SIDE.into()), json(side)));
        }
        for Member { name, value } in others {
            match plain(value) {
                Ok(json) => values.push((name, json)),
                Err(number) => said.push((LAST, rounded(name.as_deref().unwrap_or_default(), number))),
            }
        }
        let members =
            values.iter().map(|(name, value)| Member { name: name.as_deref().map(Into::into), value });
        let len = values.iter().map(|(_, value)| value.get().len()).sum();
        let mut faults = Faults::default();
        let draft = self.definition.item.parse_members(members.collect(), len, "", &mut faults);
        // What is not in the JSON has its fault already.
        let unwritten: Vec<_> = said.iter().map(|(at, _)| *at).collect();
        let found = faults.kept().iter().map(|fault| self.found(fault, cells));
        said.extend(found.filter(|(at, _)| !unwritten.contains(at)));
        for (at, cell) in cells.iter().enumerate() {
            if let Some(Cell { name, value: CellValue::Empty }) = cell
                && !said.iter().any(|(told, _)| *told == at)
            {
                said.push((at, RowFault::new(format!("{name:?} must not be empty"))));
            }
        }
        match (owner, draft) {
            (Some(owner), Some(draft)) if said.is_empty() => Ok((owner, draft)),
            _ => {
                said.sort_by_key(|(at, _)| *at);
                Err(RowFaults::new(said.into_iter().map(|(_, fault)| fault).collect(), faults.omitted()))
            }
        }
    }

    /// Of a trade without a type: the type that the sign of its quantity says, and the digits, if it has any.
    fn sign<'v>(&self, cells: &'v [Option<Cell<'_>>]) -> Option<(&'static str, Option<CellValue<'v>>)> {
        let cell = |name: &str| {
            let at = self.columns.iter().position(|column| column.property == name)?;
            cells[at].as_ref()
        };
        if !self.signed || cell(trades::SIDE).is_some() {
            return None;
        }
        Some(cell(trades::QTY).map_or(("buy", None), |cell| trades::split_sign(&cell.value)))
    }

    /// A fault that the schema has found, with its column, the name of the file and what the cell shows.
    fn found(&self, Fault { pointer, rule, .. }: &Fault, cells: &[Option<Cell<'_>>]) -> (usize, RowFault) {
        // What is not a cell has nothing to show but its type.
        let within = |name: Option<String>| {
            let of = |rule: &dyn Display| match &name {
                Some(name) => format!("{name:?} {rule}"),
                None => rule.to_string(),
            };
            match rule {
                BrokenRule::Type { rule, found } => RowFault::but_found(of(rule), *found),
                rule => RowFault::new(of(rule)),
            }
        };
        let Some(path) = pointer.strip_prefix('/') else { return (LAST, within(None)) };
        let (first, rest) = path.split_once('/').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let Some(at) = self.columns.iter().position(|column| column.property == first) else {
            return (LAST, within(Some(path.to_owned())));
        };
        let said = match (&cells[at], rest) {
            (None, _) => missing(&self.columns[at]),
            (Some(Cell { name, .. }), Some(rest)) => within(Some(format!("{name}/{rest}"))),
            (Some(cell), None) => self.broken(&self.columns[at], cell, cells, rule),
        };
        (at, said)
    }

    /// The rule that a cell breaks, with what the cell shows.
    fn broken(
        &self,
        column: &Column,
        cell: &Cell<'_>,
        cells: &[Option<Cell<'_>>],
        rule: &BrokenRule,
    ) -> RowFault {
        let Cell { name, value } = cell;
        let is_signed = || column.property == trades::QTY && self.sign(cells).is_some();
        let rule = match rule {
            // The cell shows what it is instead.
            BrokenRule::Type { rule, found: _ } => rule.clone(),
            BrokenRule::WholeNumber { least: 1, most } if is_signed() => trades::signed_rule(*most),
            rule => rule.to_string(),
        };
        RowFault::but_found(format!("{name:?} {rule}"), value.shown())
    }
}

/// The cell of a property, under that of its names that is there and, unless the property may be null, not
/// null.
///
/// # Errors
/// It is there twice, or two of its names are.
fn cell<'a>(column: &'a Column, members: &[Member<'a>], flag: &str) -> Result<Option<Cell<'a>>, String> {
    let mut cells = Vec::new();
    for name in &column.names {
        let mut named = members.iter().filter(|member| member.name.as_deref() == Some(name));
        let Some(member) = named.next() else { continue };
        if named.next().is_some() {
            return Err(format!("gives {name:?} more than once"));
        }
        let value = match column.values.kind {
            Some(_) => CellValue::read(member.value),
            None => CellValue::Json(member.value),
        };
        if !value.is_null() || column.values.null {
            cells.push(Cell { name, value });
        }
    }
    let names: Vec<_> = cells.iter().map(|cell| cell.name).collect();
    column.one_of(&names, flag).map_err(|rule| format!("has {rule}"))?;
    Ok(cells.into_iter().next())
}

/// The fault of a value in which a double would round a whole number.
fn rounded(name: &str, Rounded(digits): Rounded) -> RowFault {
    let rule = format!("{name:?} must have whole numbers of at most {MAX_SAFE_INTEGER} either way");
    RowFault::but_found(rule, digits)
}

fn missing(column: &Column) -> RowFault {
    let names: Vec<_> = column.names.iter().map(|name| format!("{name:?}")).collect();
    RowFault::new(format!("has no field {}", names.join(" or ")))
}
