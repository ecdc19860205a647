//! One JSON object a line.

use super::columns::{Column, Columns, Owner};
use super::row::{Cell, Cells};
use super::value::Value;
use crate::domain::{Json, Member, OwnerId};
use crate::item::Draft;

impl Columns {
    /// The item of one line, and its owner.
    ///
    /// # Errors
    /// All that is wrong with it, as one sentence.
    pub(super) fn of_line(&self, line: &[u8]) -> Result<(OwnerId, Draft), String> {
        let raw = Json::check(line).map_err(|error| {
            // Of one line, serde_json says that it is line 1.
            format!("is not JSON: {}", error.to_string().replace(" at line 1 column ", ", at byte "))
        })?;
        let members = match Json::read(raw) {
            Json::Object(members) => members,
            other => return Err(format!("must be an object, not {}", other.kind())),
        };
        let owner = match &self.owner {
            Owner::Of(_) => None,
            Owner::In(column) => cell(column, &members)?,
        };
        let properties =
            self.properties.iter().map(|column| cell(column, &members)).collect::<Result<Vec<_>, _>>()?;
        let others = self.others(members, &owner, &properties);
        self.item(&Cells { owner, properties, others })
    }

    /// The members that an item keeps though they are no properties.
    fn others<'a>(
        &self,
        mut members: Vec<Member<'a>>,
        owner: &Option<Cell<'_>>,
        properties: &[Option<Cell<'_>>],
    ) -> Vec<Member<'a>> {
        let Some(values) = self.definition.item.other_members() else { return Vec::new() };
        let in_use = |name: &str| {
            owner.iter().chain(properties.iter().flatten()).any(|cell| cell.name == name)
                || self.properties.iter().any(|column| column.property == name)
        };
        members.retain(|Member { name, value }| {
            let kept = |name: &str| !in_use(name) && !self.definition.item.is_reserved(name);
            name.as_deref().is_none_or(kept) && (values.null || value.get() != "null")
        });
        members
    }
}

/// The cell of a property, under the first of its names that is there and, unless the property may be null, not null.
///
/// # Errors
/// It is there twice.
fn cell<'a>(column: &'a Column, members: &[Member<'a>]) -> Result<Option<Cell<'a>>, String> {
    for name in &column.names {
        let mut named = members.iter().filter(|member| member.name.as_deref() == Some(name));
        let Some(member) = named.next() else { continue };
        let value = match column.values.kind {
            Some(_) => Value::read(member.value),
            None => Value::Json(member.value),
        };
        if value.is_null() && !column.values.null {
            continue;
        }
        if named.next().is_some() {
            return Err(format!("gives {name:?} more than once"));
        }
        return Ok(Some(Cell { name, value }));
    }
    Ok(None)
}
