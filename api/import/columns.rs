//! Which column (CSV) or field (NDJSON) holds what.

use super::error::OpenError;

/// Names given by the user. `None` stands for the first of the default names that the file has. A name may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns {
    /// The customer.
    pub customer: Option<String>,
    /// `buy` or `sell`. Without it a negative quantity is a sell.
    pub side: Option<String>,
    /// The ticker.
    pub ticker: Option<String>,
    /// The quantity.
    pub qty: Option<String>,
    /// The price per unit. Without it trades have no price.
    pub price: Option<String>,
    /// The date.
    pub date: Option<String>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Customer,
    Side,
    Ticker,
    Qty,
    Price,
    Date,
}

/// One thing for each role.
pub(super) type PerRole<T> = [T; Role::ALL.len()];

impl Role {
    /// In the order of [`PerRole`].
    pub const ALL: [Self; 6] = [Self::Customer, Self::Side, Self::Ticker, Self::Qty, Self::Price, Self::Date];

    /// The names tried in order where the user gives none. pandas writes an empty name over the index of a table.
    pub fn default_names(self) -> &'static [&'static str] {
        match self {
            Self::Customer => &["customerId", "customer_id"],
            Self::Side => &["type"],
            Self::Ticker => &["ticker", "symbol"],
            Self::Qty => &["qty", "amount", "quantity"],
            Self::Price => &["price"],
            Self::Date => &["date", "timestamp", ""],
        }
    }

    /// The flag that names the column.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Customer => "--customer-column",
            Self::Side => "--type-column",
            Self::Ticker => "--ticker-column",
            Self::Qty => "--qty-column",
            Self::Price => "--price-column",
            Self::Date => "--date-column",
        }
    }
}

impl Columns {
    /// The user's name for a role.
    pub(super) fn given(&self, role: Role) -> Option<&str> {
        match role {
            Role::Customer => &self.customer,
            Role::Side => &self.side,
            Role::Ticker => &self.ticker,
            Role::Qty => &self.qty,
            Role::Price => &self.price,
            Role::Date => &self.date,
        }
        .as_deref()
    }

    /// The names to try for a role, in order.
    pub(super) fn names(&self, role: Role) -> Vec<&str> {
        self.given(role).map_or_else(|| role.default_names().to_vec(), |name| vec![name])
    }

    /// Finds the columns in the header of a CSV file; not that of the customer if `customer_known`.
    pub(super) fn locate(
        &self,
        header: &[String],
        customer_known: bool,
    ) -> Result<PerRole<Option<usize>>, OpenError> {
        let mut found = [None; Role::ALL.len()];
        for role in Role::ALL {
            if role == Role::Customer && customer_known {
                continue;
            }
            let names = self.names(role);
            let name = names.iter().find(|name| header.iter().any(|column| column == *name));
            found[role as usize] = match name {
                Some(name) => Some(only(header, name)?),
                None if self.given(role).is_none() && matches!(role, Role::Side | Role::Price) => None,
                None => {
                    let tried = names.iter().map(|&name| name.to_owned()).collect();
                    return Err(match role {
                        Role::Customer if self.given(role).is_none() => {
                            OpenError::NoCustomer { tried, there: header.to_vec() }
                        }
                        _ => OpenError::NoColumn { flag: role.flag(), tried, there: header.to_vec() },
                    });
                }
            };
        }
        Ok(found)
    }
}

/// The place of a name that must be there once.
fn only(header: &[String], name: &str) -> Result<usize, OpenError> {
    let mut places = header.iter().enumerate().filter(|(_, column)| *column == name);
    match (places.next(), places.next()) {
        (Some((place, _)), None) => Ok(place),
        _ => Err(OpenError::Twice { name: name.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn the_real_file_needs_no_names() {
        let found = Columns::default().locate(&header(",amount,price,sid,symbol,txn_dollars"), true).unwrap();
        assert_eq!(found, [None, None, Some(4), Some(1), Some(2), Some(0)]);
        let found = Columns::default().locate(&header("customerId,date,type,ticker,qty"), false).unwrap();
        assert_eq!(found, [Some(0), Some(2), Some(3), Some(4), None, Some(1)]);
    }

    #[test]
    fn a_name_given_must_be_there_once() {
        let there = header("a,b,b,qty,amount,ticker,");
        let mut columns = Columns { date: Some(String::new()), ..Columns::default() };
        assert_eq!(columns.locate(&there, true).unwrap(), [None, None, Some(5), Some(3), None, Some(6)]);
        columns.price = Some("cost".to_owned());
        let error = columns.locate(&there, true).unwrap_err().to_string();
        assert!(
            error.contains("\"cost\"") && error.contains("\"amount\"") && error.contains("--price-column")
        );
        columns.price = Some("b".to_owned());
        assert!(columns.locate(&there, true).unwrap_err().to_string().contains("more than once"));
        columns.price = None;
        let error = columns.locate(&there, false).unwrap_err().to_string();
        assert!(error.contains("--customer 7") && error.contains("--customer-column"), "{error}");
    }
}
