//! Checks that the collections are those that this version relies on.
//!
//! A collection that has the name of a history and is not one of ours is refused first. After migrations
//! every guard must exist too. If a collection is dropped, the next append creates it again without guards,
//! and the error would stay hidden until two writers collide.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use mongodb::Database;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error as DriverError;
use pagebucket_model::definition::Definitions;

use super::migrations::creation::commands;
use crate::api_keys;
use crate::append::keys::RECORDS;
use crate::mongo::connection::{ConnectError, describe};
use crate::mongo::error::{NAMESPACE_NOT_FOUND, code};
use crate::mongo::indexes;
use crate::mongo::values::whole_number;
use crate::store::histories;

/// The collection of page views, which a crate above this one counts.
pub const PAGE_VIEWS: &str = "page_views";

/// The other collections with a validator, and the fields of the unique index of each.
const GUARDED: [(&str, &[&str]); 2] =
    [(PAGE_VIEWS, &["page", "timestamp"]), (api_keys::COLLECTION, &["name"])];

/// The other collections that are written by numbered commands, for the labels of metrics.
pub const NUMBERED: [&str; 2] = [PAGE_VIEWS, api_keys::COLLECTION];

/// Refuses collections that have the name of a history and that pagebucket did not create. Missing ones are
/// accepted.
pub(crate) async fn refuse_foreign(
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
pub(crate) async fn check_guards(database: &Database, definitions: &Definitions) -> Result<(), ConnectError> {
    for definition in definitions.iter() {
        let options = options(database, &definition.name).await?;
        if options.is_some_and(|options| !options.contains_key("clusteredIndex")) {
            return Err(ConnectError::Foreign(definition.name.to_string()));
        }
        check(database, &definition.name, &[&definition.owner.field, "page"]).await?;
    }
    for (collection, unique) in GUARDED {
        check(database, collection, unique).await?;
    }
    Ok(())
}

/// What is not as migrations create it: a sentence for each.
pub(crate) async fn differences(
    database: &Database,
    definitions: &Definitions,
) -> Result<Vec<String>, ConnectError> {
    let mut found = Vec::new();
    for definition in definitions.iter() {
        let name = &*definition.name;
        match options(database, name).await? {
            None => found.push(ConnectError::Missing(name.to_owned()).to_string()),
            Some(options) if !options.contains_key("clusteredIndex") => {
                found.push(ConnectError::Foreign(name.to_owned()).to_string());
            }
            Some(options) => {
                let [_, designed, indexes] = commands(definition);
                if !has_validator(&options) || options.get("validator") != designed.get("validator") {
                    found.push(format!("{name}: its validator is not the one that migrations create"));
                }
                let stored = list_indexes(database, name).await?;
                let designed = indexes.get_array("indexes").into_iter().flatten();
                let designed: Vec<_> = designed.filter_map(Bson::as_document).collect();
                found.extend(of_indexes(&designed, &stored).map(|what| format!("{name}: {what}")));
            }
        }
    }
    for (collection, unique) in GUARDED {
        match check(database, collection, unique).await {
            Err(error @ (ConnectError::Missing(_) | ConnectError::Unguarded { .. })) => {
                found.push(error.to_string());
            }
            checked => checked?,
        }
    }
    match list_indexes(database, RECORDS).await {
        Err(error @ ConnectError::Missing(_)) => found.push(error.to_string()),
        indexes => {
            let forgets = |index: &Document| {
                let key = index.get_document("key");
                index.contains_key("expireAfterSeconds") && key.is_ok_and(|key| key.keys().eq(["touched"]))
            };
            // The index is made by the start of a server. Before that there are no records.
            let count = database.collection::<Document>(RECORDS).estimated_document_count().await;
            if !indexes?.iter().any(forgets) && count.map_err(|error| unexpected(&error))? > 0 {
                found.push(format!("{RECORDS}: its index on touched, which deletes old records, is missing"));
            }
        }
    }
    Ok(found)
}

/// How the indexes of a history differ from the designed ones. Others are no difference, unless they refuse
/// or delete pages.
fn of_indexes<'a>(designed: &'a [&'a Document], stored: &'a [Document]) -> impl Iterator<Item = String> + 'a {
    let fields = |index: &Document| {
        let key = index.get_document("key").map(|key| key.keys().cloned().collect::<Vec<_>>().join(" and "));
        let unique = if index.get_bool("unique").unwrap_or(false) { "unique " } else { "" };
        (unique, key.unwrap_or_default())
    };
    let is_there = |index: &Document| stored.iter().any(|stored| effect(stored) == effect(index));
    let missing = designed.iter().filter(move |index| !is_there(index)).map(move |index| {
        let (unique, fields) = fields(index);
        format!("its {unique}index on {fields} is missing, or not as migrations create it")
    });
    let is_designed = |index: &Document| designed.iter().any(|designed| effect(index) == effect(designed));
    let is_of_id = |index: &Document| index.get_bool("clustered").unwrap_or(false);
    let harmful = |index: &Document| {
        index.get_bool("unique").unwrap_or(false) || index.contains_key("expireAfterSeconds")
    };
    let others = stored.iter().filter(move |index| !is_of_id(index) && !is_designed(index) && harmful(index));
    missing.chain(others.map(move |index| {
        let does = match index.contains_key("expireAfterSeconds") {
            true => "deletes pages",
            false => "may refuse appends",
        };
        format!("its index on {} is not of migrations, and {does}", fields(index).1)
    }))
}

/// What an index does, whatever its name: its options, without those that are off, with numbers as int64 and
/// fields in their order.
fn effect(index: &Document) -> BTreeMap<&str, Bson> {
    fn plain(value: &Bson) -> Bson {
        match value {
            Bson::Document(fields) => fields
                .iter()
                .flat_map(|(field, value)| [field.into(), plain(value)])
                .collect::<Vec<_>>()
                .into(),
            value => whole_number(value).map_or_else(|| value.clone(), Bson::Int64),
        }
    }
    let has_an_effect = |(option, value): &(&String, &Bson)| {
        !["v", "name", "ns", "background"].contains(&option.as_str()) && **value != Bson::Boolean(false)
    };
    let options = index.iter().filter(has_an_effect);
    options.map(|(option, value)| (option.as_str(), plain(value))).collect()
}

/// Refuses a collection that is missing, or has no validator or no unique index on these fields.
async fn check(database: &Database, collection: &str, unique: &[&str]) -> Result<(), ConnectError> {
    let unguarded = |guard| Err(ConnectError::Unguarded { collection: collection.to_owned(), guard });
    let options = options(database, collection).await?;
    let options = options.ok_or_else(|| ConnectError::Missing(collection.to_owned()))?;
    if !has_validator(&options) {
        return unguarded("validator".to_owned());
    }
    let indexes = list_indexes(database, collection).await?;
    if !indexes.iter().any(|index| is_unique(index, unique)) {
        return unguarded(format!("unique index on {}", unique.join(" and ")));
    }
    Ok(())
}

async fn list_indexes(database: &Database, collection: &str) -> Result<Vec<Document>, ConnectError> {
    indexes::list(database, collection).await.map_err(|error| match code(&error) {
        Some(NAMESPACE_NOT_FOUND) => ConnectError::Missing(collection.to_owned()),
        _ => unexpected(&error),
    })
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

    #[test]
    fn an_index_is_known_by_its_effect() {
        let designed =
            doc! { "key": { "swept": 1 }, "name": "swept_1", "partialFilterExpression": { "swept": false } };
        let differences = |stored: &[Document]| of_indexes(&[&designed], stored).collect::<Vec<_>>();
        let stored = |more: Document| {
            let mut index = doc! { "v": 2, "key": { "swept": 1.0 }, "name": "other", "sparse": false };
            index.extend(more);
            index
        };
        let partial = doc! { "partialFilterExpression": { "swept": false } };
        let whole = stored(partial.clone());
        let of_id = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true, "clustered": true };
        assert!(differences(&[of_id, whole.clone()]).is_empty());
        let missing = "its index on swept is missing, or not as migrations create it";
        for other in [
            stored(doc! {}),
            stored(doc! { "partialFilterExpression": { "swept": true } }),
            stored(doc! { "partialFilterExpression": { "swept": false }, "hidden": true }),
            doc! { "key": { "swept": -1 }, "partialFilterExpression": { "swept": false } },
        ] {
            assert_eq!(differences(std::slice::from_ref(&other)), [missing], "{other}");
        }
        let harmless = doc! { "key": { "history.qty": 1 }, "name": "mine" };
        assert!(differences(&[whole.clone(), harmless]).is_empty());
        for (option, told) in [
            (doc! { "unique": true }, "its index on last is not of migrations, and may refuse appends"),
            (doc! { "expireAfterSeconds": 0 }, "its index on last is not of migrations, and deletes pages"),
        ] {
            let mut other = doc! { "key": { "last": 1 } };
            other.extend(option);
            assert_eq!(differences(&[whole.clone(), other]), [told]);
        }
    }
}
