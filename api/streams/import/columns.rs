//! Which column (CSV) or field (NDJSON) holds what.

use std::io;
use std::str::FromStr;
use std::sync::Arc;

use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Invalid, OwnerId};
use pagebucket_model::item::{ColumnKind, ValueKinds};

use super::trades;

/// Why a file cannot be imported. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// It cannot be read at all.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// A sentence about the file, which it calls "it".
    #[error("{0}")]
    File(String),
    /// A name that the user gives for a column makes no sense.
    #[error("the column of {property} {rule}")]
    Column {
        /// The property, or the owner.
        property: String,
        /// What is wrong, after the flag that names it.
        rule: String,
    },
}

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
pub struct Columns {
    pub(crate) definition: Arc<Definition>,
    /// The owner of all rows, unless each names its own: in the first column.
    pub(crate) owner: Option<OwnerId>,
    /// The owner's column, if there is one, and the properties in their order.
    pub(crate) columns: Vec<Column>,
    /// Whether the sign of a trade's quantity says its type where no column does.
    pub(crate) signed: bool,
    /// The flag with which the user names columns.
    pub(crate) flag: &'static str,
}

/// A property, or the owner, and its names in the file.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) property: String,
    pub(crate) values: ValueKinds,
    /// Whether a row without it is bad.
    pub(crate) required: bool,
    /// The names that are tried, in order: the user's, or the default ones.
    pub(crate) names: Vec<String>,
    /// Whether the name is the user's.
    given: bool,
}

impl Columns {
    /// `owner`: the owner of all rows, if there is one.
    ///
    /// # Errors
    /// A name is given twice, or for a property that no item has.
    pub fn new(
        definition: &Arc<Definition>,
        names: &[ColumnName],
        owner: Option<OwnerId>,
    ) -> Result<Self, OpenError> {
        let field = &*definition.owner.field;
        let properties = || definition.item.properties().map(|property| property.name);
        for (index, ColumnName { property, .. }) in names.iter().enumerate() {
            let rule = if property == field && owner.is_some() {
                "names the owner of all rows, as --owner does".to_owned()
            } else if property != field && !properties().any(|name| name == property) {
                let all: Vec<_> = std::iter::once(field).chain(properties()).collect();
                let article = definition.item.noun().article();
                format!("names no property of {article}; there are {}", all.join(", "))
            } else if names[..index].iter().any(|before| before.property == *property) {
                "is given more than once".to_owned()
            } else {
                continue;
            };
            return Err(OpenError::Column { property: property.clone(), rule });
        }
        // What the user calls another property is none of these.
        let is_taken = |name: &str, property: &str| {
            name != property && names.iter().any(|given| given.name == name && given.property != property)
        };
        let column = |property: &str, values, required| {
            let given = names.iter().find(|given| given.property == property);
            let names = match given {
                Some(given) => vec![given.name.clone()],
                None => {
                    let mut names = trades::default_names(definition, property);
                    names.retain(|name| !is_taken(name, property));
                    names
                }
            };
            Column { property: property.to_owned(), values, required, names, given: given.is_some() }
        };
        let signed =
            trades::may_be_signed(definition) && !names.iter().any(|given| given.property == trades::SIDE);
        let text = ValueKinds { kind: Some(ColumnKind::Text), null: false };
        let of_owner = owner.is_none().then(|| column(field, text, true));
        let of_item = definition.item.properties().map(|property| {
            // The moment of an import means nothing for the rows of a file.
            let required = property.required || property.name == definition.date.name;
            column(property.name, property.values, required)
        });
        let columns = of_owner.into_iter().chain(of_item).collect();
        Ok(Self { definition: Arc::clone(definition), owner, columns, signed, flag: "--column" })
    }

    /// The same for documents, where the sign of a quantity says nothing: every trade needs its type.
    #[must_use]
    pub fn of_documents(self) -> Self {
        Self { signed: false, flag: "--map", ..self }
    }

    /// Each property, or the owner, with the names under which it is looked for, in their order.
    pub fn names(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.columns.iter().map(|column| (&*column.property, &*column.names))
    }

    /// The places of the columns in the header of a CSV file; `None` for one that is not there.
    ///
    /// # Errors
    /// One that is needed is missing, or there twice. Or the items are no rows of a table.
    pub(crate) fn locate(&self, header: &[String]) -> Result<Vec<Option<usize>>, OpenError> {
        if let Err(Invalid(why)) = self.definition.item.columns() {
            let many = self.definition.item.noun().many();
            return Err(OpenError::File(format!(
                "it is CSV, and {many} are no rows of CSV, because {why}: give them as NDJSON"
            )));
        }
        let located = self.columns.iter().map(|column| {
            let Column { property, names, given, .. } = column;
            let found = column.locate(header, self.flag)?;
            let by_sign = self.signed && property == trades::SIDE;
            if found.is_some() || by_sign || !(column.required || *given) {
                return Ok(found);
            }
            let (tried, there) = (quoted(names, " or "), listing(header));
            Err(OpenError::File(if *property == self.definition.owner.field && !given {
                let owner = self.definition.owner.noun();
                format!(
                    "it has no column {tried}, so the {owner} is unknown; give --owner ID for all rows, or name a column with --column {property}=NAME (there {there})"
                )
            } else {
                format!("it has no column {tried}; name one with --column {property}=NAME (there {there})")
            }))
        });
        located.collect()
    }
}

impl Column {
    /// The place of that of its names that the header has.
    fn locate(&self, header: &[String], flag: &str) -> Result<Option<usize>, OpenError> {
        let names: Vec<_> = self
            .names
            .iter()
            .map(|name| &**name)
            .filter(|name| header.iter().any(|column| column == name))
            .collect();
        self.one_of(&names, flag).map_err(|rule| OpenError::File(format!("it has the columns {rule}")))?;
        let Some(name) = names.first() else { return Ok(None) };
        let mut places = header.iter().enumerate().filter(|(_, column)| column == name);
        match (places.next(), places.next()) {
            (Some((place, _)), None) => Ok(Some(place)),
            _ => Err(OpenError::File(format!("it has the column {name:?} more than once"))),
        }
    }

    /// Checks that there is at most one of its names, of which these are there. A column without a name is
    /// one only where no other is.
    ///
    /// # Errors
    /// The end of a sentence: these, and how to say which of them is meant.
    pub(crate) fn one_of(&self, there: &[&str], flag: &str) -> Result<(), String> {
        let names: Vec<_> =
            there.iter().filter(|name| !name.is_empty()).map(|name| (*name).to_owned()).collect();
        if names.len() < 2 {
            return Ok(());
        }
        let (names, property) = (quoted(&names, " and "), &self.property);
        Err(format!("{names}, each of which may be {property:?}: say which with {flag} {property}=NAME"))
    }
}

/// What other programs write between fields.
const SEPARATORS: [(char, &str); 3] = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")];

/// The columns there are, for the end of a sentence.
fn listing(there: &[String]) -> String {
    /// A wrong file may have any number.
    const MOST: usize = 50;
    let more = there.len().saturating_sub(MOST);
    let shown = quoted(&there[..there.len() - more], ", ");
    if let [only] = there
        && let Some((_, name)) = SEPARATORS.iter().find(|(separator, _)| only.contains(*separator))
    {
        return format!("is {shown}, with {name} where CSV has commas");
    }
    let verb = if there.len() == 1 { "is" } else { "are" };
    if more == 0 { format!("{verb} {shown}") } else { format!("{verb} {shown} and {more} more") }
}

fn quoted(names: &[String], separator: &str) -> String {
    let short = |name: &String| format!("{:?}", name.chars().take(64).collect::<String>());
    names.iter().map(short).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locate(header: &str, names: &[&str], owner: Option<u64>) -> Result<Vec<Option<usize>>, String> {
        let header: Vec<_> = header.split(',').map(str::to_owned).collect();
        let names: Vec<ColumnName> = names.iter().map(|name| name.parse().unwrap()).collect();
        let columns = Columns::new(&Arc::new(Definition::trades()), &names, owner.map(OwnerId::Integer));
        let located = columns.and_then(|columns| columns.locate(&header));
        let mut located = located.map_err(|error| error.to_string())?;
        if owner.is_some() {
            located.insert(0, None);
        }
        Ok(located)
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
        let there = "a,b,b,qty,cash,ticker,";
        let found = locate(there, &["date="], Some(7)).unwrap();
        assert_eq!(found, [None, None, Some(5), Some(3), Some(6), None]);
        let error = locate(there, &["date=", "price=cost"], Some(7)).unwrap_err();
        assert!(
            error.contains("\"cost\"") && error.contains("\"cash\"") && error.contains("--column price=")
        );
        let error = locate(there, &["date=", "price=b"], Some(7)).unwrap_err();
        assert!(error.contains("more than once"), "{error}");
        let error = locate(there, &["date="], None).unwrap_err();
        assert!(error.contains("--owner") && error.contains("--column customerId="), "{error}");
        let error = locate(there, &["type=side"], Some(7)).unwrap_err();
        assert!(error.contains("no column \"side\""), "{error}");
    }

    #[test]
    fn two_columns_that_may_be_one_property_are_refused() {
        for (header, names) in [
            (
                "date,symbol,type,quantity,price,amount",
                "\"amount\" and \"quantity\", each of which may be \"qty\"",
            ),
            ("date,timestamp,ticker,qty", "\"date\" and \"timestamp\""),
            ("date,symbol,ticker,qty", "\"ticker\" and \"symbol\""),
        ] {
            let error = locate(header, &[], Some(7)).unwrap_err();
            assert!(error.contains(names) && error.contains("with --column "), "{error}");
        }
        let there = "date,symbol,type,quantity,price,amount";
        assert_eq!(locate(there, &["qty=quantity"], Some(7)).unwrap()[3], Some(3));
        // What is another property is no quantity.
        let found = locate("date,symbol,quantity,amount", &["price=amount"], Some(7)).unwrap();
        assert_eq!(found, [None, None, Some(1), Some(2), Some(0), Some(3)]);
        let error = locate("date,symbol,amount", &["price=amount"], Some(7)).unwrap_err();
        assert!(error.contains("no column \"qty\" or \"quantity\";"), "{error}");
        // pandas writes a column without a name beside the others.
        assert_eq!(locate(",date,ticker,qty", &[], Some(7)).unwrap()[4], Some(1));
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
