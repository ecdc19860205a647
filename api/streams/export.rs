//! Stored items as rows of a file: CSV with a header row, or NDJSON, as [`import`](crate::import) reads them.
//!
//! Each row has its owner and its `seq`, so that an interrupted export can continue after its last row;
//! unless only other fields are asked for.

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use pagebucket_engine::reads::StoredItem;
use pagebucket_engine::{Corruption, Error};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Invalid, OwnerId};
use pagebucket_model::item::{write_cell, write_name, write_value};

pub use crate::format::Format;

/// Writes the items of one history as rows.
#[derive(Debug)]
pub struct Writer {
    definition: Arc<Definition>,
    format: Format,
    /// Whether rows have their owner.
    owner: bool,
    /// Whether rows have `seq`.
    seq: bool,
    /// The properties of a row in the order of the columns; `None` for all members of an item, as NDJSON.
    properties: Option<Vec<String>>,
    /// Whether what is none of the properties is left out, and not a fault.
    chosen: bool,
}

/// The fields of a row that an export has: its owner, its `seq`, and properties of the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    owner: bool,
    seq: bool,
    /// In the order of the columns.
    properties: Vec<String>,
}

const SEQ: &str = "seq";

impl Fields {
    /// Parses names with commas between them. Their order does not matter.
    ///
    /// # Errors
    /// One of them is no field of a row, or there twice.
    pub fn parse(definition: &Definition, text: &str) -> Result<Self, Invalid> {
        let known = Self::names(definition);
        let names: Vec<_> = text.split(',').collect();
        let mut different = HashSet::new();
        if !names.iter().all(|name| known.iter().any(|known| known == name) && different.insert(name)) {
            let rule = format!(
                "must be names from {}, each at most once, with commas between them",
                known.join(", ")
            );
            return Err(Invalid::new(rule));
        }
        let has = |name: &str| names.contains(&name);
        let properties = properties(definition).into_iter().filter(|name| has(name)).collect();
        Ok(Self { owner: has(&definition.owner.field), seq: has(SEQ), properties })
    }

    /// The names of all fields, in the order of the columns.
    pub fn names(definition: &Definition) -> Vec<String> {
        [vec![definition.owner.field.to_string(), SEQ.to_owned()], properties(definition)].concat()
    }
}

impl Writer {
    /// Of all fields. `None` for CSV of items that are no rows of a table.
    pub fn new(definition: &Arc<Definition>, format: Format) -> Option<Self> {
        let properties = match format {
            Format::Ndjson => None,
            Format::Csv => Some(columns(definition)?),
        };
        Some(Self {
            definition: Arc::clone(definition),
            format,
            owner: true,
            seq: true,
            properties,
            chosen: false,
        })
    }

    /// The same with these fields alone.
    #[must_use]
    pub fn with(self, Fields { owner, seq, properties }: Fields) -> Self {
        Self { owner, seq, properties: Some(properties), chosen: true, ..self }
    }

    /// The definition of the items.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// What comes before the first row.
    pub fn header(&self) -> String {
        let (Format::Csv, Some(properties)) = (self.format, &self.properties) else { return String::new() };
        let owner = self.owner.then_some(&*self.definition.owner.field);
        let names = owner.into_iter().chain(self.seq.then_some(SEQ));
        let names: Vec<_> = names.chain(properties.iter().map(String::as_str)).collect();
        format!("{}\r\n", names.join(","))
    }

    /// Adds a row, its line break included.
    ///
    /// # Errors
    /// The item has a member that is no column: an earlier or another definition of the history allowed it.
    pub fn write(&self, owner: &OwnerId, item: &StoredItem<'_>, rows: &mut Vec<u8>) -> Result<(), Error> {
        match (self.format, &self.properties) {
            (Format::Csv, Some(columns)) => self.write_record(columns, owner, item, rows),
            (_, properties) => self.write_object(properties.as_deref(), owner, item, rows),
        }
    }

    fn write_object(
        &self,
        properties: Option<&[String]>,
        owner: &OwnerId,
        item: &StoredItem<'_>,
        rows: &mut Vec<u8>,
    ) -> Result<(), Error> {
        rows.push(b'{');
        // Writing to memory does not fail.
        if self.owner {
            write_name(&self.definition.owner.field, rows);
            let _ = match owner {
                OwnerId::Integer(id) => write!(rows, "{id}"),
                OwnerId::Text(id) => write!(rows, "\"{id}\""),
            };
        }
        if self.seq {
            write_name(SEQ, rows);
            let _ = write!(rows, "{}", item.seq);
        }
        match properties {
            None => item.write_members(rows),
            Some(names) => {
                for name in names {
                    let Some(value) = item.document().get(name).ok().flatten() else { continue };
                    write_name(name, rows);
                    write_value(value, rows)
                        .map_err(|corrupt| corruption(owner, item, name, corrupt.detail))?;
                }
            }
        }
        rows.extend_from_slice(b"}\n");
        Ok(())
    }

    fn write_record(
        &self,
        columns: &[String],
        owner: &OwnerId,
        item: &StoredItem<'_>,
        rows: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut cells = vec![None; columns.len()];
        for (name, value) in item.document().iter().filter_map(Result::ok) {
            match columns.iter().position(|column| column == name.as_str()) {
                Some(place) => cells[place] = Some(value),
                None if self.chosen || name.as_str() == self.definition.key_field() => {}
                None => return Err(corruption(owner, item, name.as_str(), "is no column of the definition")),
            }
        }
        if self.owner {
            let _ = write!(rows, "{owner},");
        }
        if self.seq {
            let _ = write!(rows, "{},", item.seq);
        }
        for (name, cell) in columns.iter().zip(cells) {
            cell.map_or(Ok(()), |value| write_cell(value, rows))
                .map_err(|corrupt| corruption(owner, item, name, corrupt.detail))?;
            rows.push(b',');
        }
        // After the last cell.
        rows.pop();
        rows.extend_from_slice(b"\r\n");
        Ok(())
    }
}

fn corruption(owner: &OwnerId, item: &StoredItem<'_>, name: &str, detail: &str) -> Error {
    Corruption::new(format!("of {owner}"), format!("{name} of item {}", item.seq), detail).into()
}

/// The properties of an item as columns, the date last, if every item is a row of a table.
pub fn columns(definition: &Definition) -> Option<Vec<String>> {
    definition.item.columns().ok().map(|_| properties(definition))
}

/// The properties that the definition declares, the date last.
fn properties(definition: &Definition) -> Vec<String> {
    let names = definition.item.properties().map(|property| property.name.to_owned());
    let (date, others): (Vec<_>, Vec<_>) = names.partition(|name| *name == definition.date.name);
    [others, date].concat()
}
