//! Checks that the collections are those that this version relies on.
//!
//! A collection that has the name of a history and is not one of ours is refused first. After migrations every guard must
//! exist too. If a collection is dropped, the next append creates it again without guards, and the error would stay hidden
//! until two writers collide.

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error as DriverError;

use super::connection::{ConnectError, describe};
use super::error::code;
use super::migrations::histories;
use super::values::whole_number;
use super::{api_keys, indexes, page_views};
use crate::definition::Definitions;

/// `listIndexes` of a collection that does not exist.
const NAMESPACE_NOT_FOUND: i32 = 26;

/// Refuses collections that have the name of a history and that pagebucket did not create. Missing ones are accepted.
pub(super) async fn refuse_foreign(
    database: &Database,
    definitions: &Definitions,
) -> Result<(), ConnectError> {
    let known = histories::all(database).await?;
    for definition in definitions.iter().filter(|definition| !known.contains_key(&*definition.name)) {
        let Some(options) = options(database, &definition.name).await? else { continue };
        // Earlier versions had only trades, and remembered no definition.
        if !(definition.is_trades() && options.contains_key("clusteredIndex")) {
            return Err(ConnectError::Foreign(definition.name.to_string()));
        }
    }
    Ok(())
}

/// Refuses a collection that is missing or lacks a guard.
pub(super) async fn check_guards(database: &Database, definitions: &Definitions) -> Result<(), ConnectError> {
    for definition in definitions.iter() {
        let options = options(database, &definition.name).await?;
        if options.is_some_and(|options| !options.contains_key("clusteredIndex")) {
            return Err(ConnectError::Foreign(definition.name.to_string()));
        }
        check(database, &definition.name, &[&definition.owner.field, "page"]).await?;
    }
    check(database, page_views::COLLECTION, &["page", "timestamp"]).await?;
    check(database, api_keys::COLLECTION, &["name"]).await
}

/// Refuses a collection that is missing, or has no validator or no unique index on these fields.
async fn check(database: &Database, collection: &str, unique: &[&str]) -> Result<(), ConnectError> {
    let unguarded = |guard| Err(ConnectError::Unguarded { collection: collection.to_owned(), guard });
    let options = options(database, collection).await?;
    let options = options.ok_or_else(|| ConnectError::Missing(collection.to_owned()))?;
    if !has_validator(&options) {
        return unguarded("validator".to_owned());
    }
    let indexes = indexes::list(database, collection).await.map_err(|error| match code(&error) {
        Some(NAMESPACE_NOT_FOUND) => ConnectError::Missing(collection.to_owned()),
        _ => unexpected(&error),
    })?;
    if !indexes.iter().any(|index| is_unique(index, unique)) {
        return unguarded(format!("unique index on {}", unique.join(" and ")));
    }
    Ok(())
}

/// The options of a collection, if it exists.
async fn options(database: &Database, collection: &str) -> Result<Option<Document>, ConnectError> {
    // As documents: the driver's type drops options that later servers add.
    let list = doc! { "listCollections": 1, "filter": { "name": collection } };
    let mut found = database.run_cursor_command(list).await.map_err(|error| unexpected(&error))?;
    let found = found.try_next().await.map_err(|error| unexpected(&error))?;
    Ok(found.map(|collection| collection.get_document("options").cloned().unwrap_or_default()))
}

fn has_validator(options: &Document) -> bool {
    // An option that is not listed has the server's default, which is the value compared with here.
    let is = |option: &str, value: &str| options.get_str(option).is_ok_and(|given| given == value);
    let validator = options.get_document("validator");
    validator.is_ok_and(|validator| ["$jsonSchema", "$expr"].iter().all(|part| validator.contains_key(part)))
        && (is("validationLevel", "strict") || !options.contains_key("validationLevel"))
        && (is("validationAction", "error") || !options.contains_key("validationAction"))
}

fn is_unique(index: &Document, fields: &[&str]) -> bool {
    let ascending = |value: &Bson| whole_number(value) == Some(1);
    let on_fields =
        index.get_document("key").is_ok_and(|key| key.keys().eq(fields) && key.values().all(ascending));
    let partial = ["partialFilterExpression", "sparse"].iter().any(|option| index.contains_key(option));
    on_fields && index.get_bool("unique").unwrap_or(false) && !partial
}

fn unexpected(error: &DriverError) -> ConnectError {
    describe(error, "the given address")
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
    fn only_an_index_of_all_is_the_guard() {
        let is_unique_page = |index: &Document| is_unique(index, &["customerId", "page"]);
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
