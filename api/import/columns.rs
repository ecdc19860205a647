//! Which column (CSV) or field (NDJSON) holds what.

use std::str::FromStr;
use std::sync::Arc;

use super::error::OpenError;
use super::trades;
use crate::definition::Definition;
use crate::domain::OwnerId;
use crate::item::{ColumnKind, Values};

/// The name that a property, or the owner, has in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// A property of the item, or the field of the owner.
    pub property: String,
    /// Its name in the file. It may be empty.
    pub name: String,
}

impl FromStr for ColumnName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (property, name) = text.split_once('=').ok_or("must be PROPERTY=NAME, such as date=timestamp")?;
        Ok(Self { property: property.to_owned(), name: name.to_owned() })
    }
}

/// What a row has: whose item it is, and its properties.
#[derive(Debug)]
pub(super) struct Columns {
    pub(super) definition: Arc<Definition>,
    pub(super) owner: Owner,
    /// In the order of the properties.
    pub(super) properties: Vec<Column>,
    /// Whether the sign of a trade's quantity says its type where no column does.
    pub(super) signed: bool,
}

/// Where the owner of a row is found.
#[derive(Debug)]
pub(super) enum Owner {
    /// All rows have this owner.
    Of(OwnerId),
    /// Each row names its own.
    In(Column),
}

/// A property, or the owner, and its names in the file.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) property: String,
    pub(super) values: Values,
    /// Whether a row without it is bad.
    pub(super) required: bool,
    /// The names that are tried, in order: the user's, or the default ones.
    pub(super) names: Vec<String>,
    /// Whether the name is the user's.
    given: bool,
}

impl Columns {
    /// `owner`: the owner of all rows, if there is one.
    ///
    /// # Errors
    /// A name is given twice, or for a property that no item has.
    pub(super) fn new(
        definition: &Arc<Definition>,
        names: &[ColumnName],
        owner: Option<OwnerId>,
    ) -> Result<Self, OpenError> {
        let field = &definition.owner.field;
        let properties = || definition.item.properties().map(|property| property.name);
        for (index, ColumnName { property, .. }) in names.iter().enumerate() {
            let rule = if property == field {
                owner.as_ref().map(|_| "names the owner of all rows, as --owner does".to_owned())
            } else if properties().any(|name| name == property) {
                None
            } else {
                let all: Vec<_> = std::iter::once(field.as_str()).chain(properties()).collect();
                let article = definition.item.noun().article();
                Some(format!("names no property of {article}; there are {}", all.join(", ")))
            };
            let twice = names[..index].iter().any(|before| before.property == *property);
            if let Some(rule) = rule.or_else(|| twice.then(|| "is given more than once".to_owned())) {
                return Err(OpenError::Column { property: property.clone(), rule });
            }
        }
        let column = |property: &str, values, required| {
            let given = names.iter().find(|given| given.property == property);
            let defaults = || match trades::default_names(definition, property) {
                Some(names) => names.iter().map(|&name| name.to_owned()).collect(),
                None => vec![property.to_owned()],
            };
            let names = given.map_or_else(defaults, |given| vec![given.name.clone()]);
            Column { property: property.to_owned(), values, required, names, given: given.is_some() }
        };
        let signed =
            trades::may_be_signed(definition) && !names.iter().any(|given| given.property == trades::SIDE);
        let of_item = definition.item.properties().map(|property| {
            // The moment of an import means nothing for the rows of a file.
            let required = property.required || property.name == definition.date.name;
            column(property.name, property.values, required)
        });
        let properties = of_item.collect();
        let owner = match owner {
            Some(owner) => Owner::Of(owner),
            None => Owner::In(column(field, Values { kind: Some(ColumnKind::Text), null: false }, true)),
        };
        Ok(Self { definition: Arc::clone(definition), owner, properties, signed })
    }

    /// Where the owner and the properties are in the header of a CSV file.
    ///
    /// # Errors
    /// One that is needed is missing, or there twice. Or the items are no rows of a table.
    pub(super) fn locate(&self, header: &[String]) -> Result<Located, OpenError> {
        if self.definition.item.columns().is_none() {
            return Err(OpenError::NotFlat { many: self.definition.item.noun().many().to_owned() });
        }
        let owner = match &self.owner {
            Owner::Of(_) => None,
            Owner::In(column) => Some(column.locate(header)?.ok_or_else(|| {
                let (property, tried, there) =
                    (column.property.clone(), column.names.clone(), header.to_vec());
                let owner = self.definition.owner.noun();
                match column.given {
                    true => OpenError::NoColumn { property, tried, there },
                    false => OpenError::NoOwner { owner, property, tried, there },
                }
            })?),
        };
        let properties = self.properties.iter().map(|column| {
            let found = column.locate(header)?;
            let by_sign = self.signed && column.property == trades::SIDE;
            if found.is_none() && !by_sign && (column.required || column.given) {
                let (property, tried, there) =
                    (column.property.clone(), column.names.clone(), header.to_vec());
                return Err(OpenError::NoColumn { property, tried, there });
            }
            Ok(found)
        });
        Ok(Located { owner, properties: properties.collect::<Result<_, _>>()? })
    }
}

/// Indices of the columns of a CSV file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) owner: Option<usize>,
    /// In the order of the properties; `None` where the file has no such column.
    pub(super) properties: Vec<Option<usize>>,
}

impl Column {
    /// The place of the first of its names that the header has.
    fn locate(&self, header: &[String]) -> Result<Option<usize>, OpenError> {
        let name = self.names.iter().find(|name| header.contains(name));
        let Some(name) = name else { return Ok(None) };
        let mut places = header.iter().enumerate().filter(|(_, column)| *column == name);
        match (places.next(), places.next()) {
            (Some((place, _)), None) => Ok(Some(place)),
            _ => Err(OpenError::Twice { name: name.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(header: &str, names: &[&str], owner: Option<u64>) -> Result<Vec<Option<usize>>, String> {
        let header: Vec<_> = header.split(',').map(str::to_owned).collect();
        let names: Vec<ColumnName> = names.iter().map(|name| name.parse().unwrap()).collect();
        let columns = Columns::new(&Arc::new(Definition::trades()), &names, owner.map(OwnerId::Integer));
        let located =
            columns.and_then(|columns| columns.locate(&header)).map_err(|error| error.to_string())?;
        Ok([vec![located.owner], located.properties].concat())
    }

    #[test]
    fn the_real_file_needs_no_names() {
        let found = locate(",amount,price,sid,symbol,txn_dollars", &[], Some(7)).unwrap();
        assert_eq!(found, [None, None, Some(4), Some(1), Some(0), Some(2)]);
        let found = locate("customerId,date,type,ticker,qty", &[], None).unwrap();
        assert_eq!(found, [Some(0), Some(2), Some(3), Some(4), Some(1), None]);
    }

    #[test]
    fn a_name_given_must_be_there_once() {
        let there = "a,b,b,qty,amount,ticker,";
        let found = locate(there, &["date="], Some(7)).unwrap();
        assert_eq!(found, [None, None, Some(5), Some(3), Some(6), None]);
        let error = locate(there, &["date=", "price=cost"], Some(7)).unwrap_err();
        assert!(
            error.contains("\"cost\"") && error.contains("\"amount\"") && error.contains("--column price=")
        );
        let error = locate(there, &["date=", "price=b"], Some(7)).unwrap_err();
        assert!(error.contains("more than once"), "{error}");
        let error = locate(there, &["date="], None).unwrap_err();
        assert!(error.contains("--owner") && error.contains("--column customerId="), "{error}");
        let error = locate(there, &["type=side"], Some(7)).unwrap_err();
        assert!(error.contains("no column \"side\""), "{error}");
    }

    #[test]
    fn a_name_is_for_a_property() {
        for (names, owner, part) in [
            (
                &["side=a"][..],
                None,
                "no property of a trade; there are customerId, type, ticker, qty, date, price",
            ),
            (&["date=a", "date=b"], None, "more than once"),
            (&["customerId=a"], Some(7), "--owner"),
        ] {
            let error = locate("a", names, owner).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!("date".parse::<ColumnName>().is_err());
    }
}
