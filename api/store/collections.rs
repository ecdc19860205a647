//! Whether the collections are those that this version relies on.
//!
//! A `trades` that is not clustered is refused before anything else: it is not ours. Once migrations
//! are applied, every guard must be there too: a collection that was dropped is made anew by the next
//! append, without any of them, and nothing would look wrong until two writers meet.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error as DriverError;

use super::connection::{ConnectError, describe};
use super::error::code;
use super::trades::COLLECTION;

/// `listIndexes` of a collection that is not there.
const NAMESPACE_NOT_FOUND: i32 = 26;

/// Refuses somebody else's `trades`; none at all is fine.
pub(super) async fn refuse_foreign(database: &Database) -> Result<(), ConnectError> {
    options(database).await.map(|_| ())
}

/// Refuses a `trades` that is missing, or is without a guard that a migration gave it.
pub(super) async fn check_guards(database: &Database) -> Result<(), ConnectError> {
    let options = options(database).await?.ok_or(ConnectError::Missing)?;
    if !has_validator(&options) {
        return Err(ConnectError::Unguarded("validator"));
    }
    if !indexes(database).await?.iter().any(is_unique_page) {
        return Err(ConnectError::Unguarded("unique index on customerId and page"));
    }
    Ok(())
}

/// Those of `trades`, if it is there.
async fn options(database: &Database) -> Result<Option<Document>, ConnectError> {
    // As documents: the driver's own type has no words for what later servers add.
    let list = doc! { "listCollections": 1, "filter": { "name": COLLECTION } };
    let mut found = database.run_cursor_command(list).await.map_err(|error| unexpected(&error))?;
    let Some(collection) = found.try_next().await.map_err(|error| unexpected(&error))? else {
        return Ok(None);
    };
    match collection.get_document("options") {
        Ok(options) if options.contains_key("clusteredIndex") => Ok(Some(options.clone())),
        _ => Err(ConnectError::NotClustered),
    }
}

async fn indexes(database: &Database) -> Result<Vec<Document>, ConnectError> {
    let found = database.run_cursor_command(doc! { "listIndexes": COLLECTION }).await;
    match found {
        Ok(found) => found.try_collect().await.map_err(|error| unexpected(&error)),
        Err(error) if code(&error) == Some(NAMESPACE_NOT_FOUND) => Err(ConnectError::Missing),
        Err(error) => Err(unexpected(&error)),
    }
}

fn has_validator(options: &Document) -> bool {
    // The server's own defaults, where it does not name them.
    let is = |option: &str, value: &str| options.get_str(option).is_ok_and(|given| given == value);
    let validator = options.get_document("validator");
    validator.is_ok_and(|validator| ["$jsonSchema", "$expr"].iter().all(|part| validator.contains_key(part)))
        && (is("validationLevel", "strict") || !options.contains_key("validationLevel"))
        && (is("validationAction", "error") || !options.contains_key("validationAction"))
}

fn is_unique_page(index: &Document) -> bool {
    let ascending =
        |value: &Bson| value.as_i32() == Some(1) || value.as_i64() == Some(1) || value.as_f64() == Some(1.0);
    let on_page = index
        .get_document("key")
        .is_ok_and(|key| key.keys().eq(["customerId", "page"]) && key.values().all(ascending));
    let of_some = ["partialFilterExpression", "sparse"].iter().any(|option| index.contains_key(option));
    on_page && index.get_bool("unique").unwrap_or(false) && !of_some
}

fn unexpected(error: &DriverError) -> ConnectError {
    describe(error, "the address given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_validator_that_refuses_is_one() {
        let validator = doc! { "$jsonSchema": {}, "$expr": {} };
        assert!(has_validator(&doc! { "validator": &validator }));
        assert!(has_validator(
            &doc! { "validator": &validator, "validationLevel": "strict", "validationAction": "error" }
        ));
        for options in [
            doc! {},
            doc! { "validator": { "$jsonSchema": {} } },
            doc! { "validator": { "$expr": {} } },
            doc! { "validator": &validator, "validationLevel": "moderate" },
            doc! { "validator": &validator, "validationLevel": "off" },
            doc! { "validator": &validator, "validationAction": "warn" },
            doc! { "validator": &validator, "validationAction": "errorAndLog " },
        ] {
            assert!(!has_validator(&options), "{options}");
        }
    }

    #[test]
    fn only_an_index_of_all_pages_is_the_guard() {
        let key = || doc! { "customerId": 1, "page": 1.0 };
        assert!(is_unique_page(&doc! { "key": key(), "unique": true }));
        for index in [
            doc! { "key": key() },
            doc! { "key": key(), "unique": true, "sparse": true },
            doc! { "key": key(), "unique": true, "partialFilterExpression": {} },
            doc! { "key": { "page": 1, "customerId": 1 }, "unique": true },
            doc! { "key": { "customerId": 1, "page": 1, "count": 1 }, "unique": true },
            doc! { "key": { "customerId": 1, "page": -1 }, "unique": true },
        ] {
            assert!(!is_unique_page(&index), "{index}");
        }
    }
}
