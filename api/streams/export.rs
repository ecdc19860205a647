//! Stored items as rows of a file: CSV with a header row, or NDJSON, as [`import`](crate::import) reads them.
//!
//! Each row has its owner and its `seq`, so that an interrupted export can continue after its last row.

use std::io::Write;
use std::sync::Arc;

use pagebucket_engine::{Corruption, Error, Stored};
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::OwnerId;
use pagebucket_model::item::write_cell;

pub use crate::format::Format;

/// Writes the items of one history as rows.
#[derive(Debug)]
pub struct Writer {
    definition: Arc<Definition>,
    /// The properties in the order of the columns; `None` for NDJSON.
    columns: Option<Vec<String>>,
}

impl Writer {
    /// `None` for CSV of items that are no rows of a table.
    pub fn new(definition: &Arc<Definition>, format: Format) -> Option<Self> {
        let columns = match format {
            Format::Ndjson => None,
            Format::Csv => Some(columns(definition)?),
        };
        Some(Self { definition: Arc::clone(definition), columns })
    }

    /// The definition of the items.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    /// What comes before the first row.
    pub fn header(&self) -> String {
        let columns =
            |columns: &Vec<String>| format!("{},seq,{}\r\n", self.definition.owner.field, columns.join(","));
        self.columns.as_ref().map(columns).unwrap_or_default()
    }

    /// Adds a row, its line break included.
    ///
    /// # Errors
    /// The item has a member that is no column: an earlier or another definition of the history allowed it.
    pub fn write(&self, owner: &OwnerId, item: &Stored<'_>, rows: &mut Vec<u8>) -> Result<(), Error> {
        // Writing to memory does not fail.
        match &self.columns {
            None => {
                let field = &self.definition.owner.field;
                let _ = match owner {
                    OwnerId::Integer(id) => write!(rows, "{{\"{field}\":{id},\"seq\":{}", item.seq),
                    OwnerId::Text(id) => write!(rows, "{{\"{field}\":\"{id}\",\"seq\":{}", item.seq),
                };
                item.write_members(rows);
                rows.extend_from_slice(b"}\n");
            }
            Some(columns) => {
                let not_a_cell = |name: &str, detail: &str| {
                    let field = format!("{name} of item {}", item.seq);
                    Error::from(Corruption::new(format!("of {owner}"), field, detail))
                };
                let mut cells = vec![None; columns.len()];
                for (name, value) in item.document().iter().filter_map(Result::ok) {
                    match columns.iter().position(|column| column == name.as_str()) {
                        Some(place) => cells[place] = Some(value),
                        None if name.as_str() == self.definition.key_field() => {}
                        None => return Err(not_a_cell(name.as_str(), "is no column of the definition")),
                    }
                }
                let _ = write!(rows, "{owner},{}", item.seq);
                for (name, cell) in columns.iter().zip(cells) {
                    rows.push(b',');
                    cell.map_or(Ok(()), |value| write_cell(value, rows))
                        .map_err(|corrupt| not_a_cell(name, corrupt.detail))?;
                }
                rows.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }
}

/// The properties of an item as columns, the date last, if every item is a row of a table.
pub fn columns(definition: &Definition) -> Option<Vec<String>> {
    let columns = definition.item.columns()?;
    let (date, others): (Vec<_>, Vec<_>) =
        columns.into_iter().map(str::to_owned).partition(|name| *name == definition.date.name);
    Some([others, date].concat())
}
