//! What a definition puts into the OpenAPI document: names, words and examples. The texts of an operation are
//! made with `format!` of them, so that a wrong name does not compile.

use pagebucket_model::definition::{Definition, Definitions, camel_case, capitalised};
use pagebucket_model::item::Noun;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{Ref, RefOr, Schema};

use super::examples::{Examples, text_of};
use super::{OWNER_ID, items};

/// What references to schemas begin with.
pub(crate) const REFERENCE: &str = "#/components/schemas/";

/// The names of one history and its owners.
pub(crate) struct Names<'a> {
    pub definitions: &'a Definitions,
    pub definition: &'a Definition,
    // In addresses and bodies: "customers", "trades", "customerId".
    pub owners: String,
    pub items: String,
    pub owner_field: String,
    // In names of operations and schemas: "Customer", "Customers", "Trade", "Trades".
    pub owner_type: String,
    pub owners_type: String,
    pub item_type: String,
    pub items_type: String,
    // In sentences: "customer", "a customer", "customers".
    pub owner: String,
    pub an_owner: String,
    pub many_owners: String,
    // "trade", "a trade", "trades".
    pub item: String,
    pub an_item: String,
    pub many_items: String,
    /// The id of an owner, in addresses.
    pub owner_example: String,
    pub examples: Examples,
    /// The schemas of the items.
    pub schemas: Map<String, Value>,
}

impl<'a> Names<'a> {
    /// The names of one of these definitions.
    pub(crate) fn of(definitions: &'a Definitions, definition: &'a Definition) -> Self {
        let (item, owner) = (definition.item.noun(), &definition.owner);
        let noun = Noun::of_name(&owner.title());
        let schemas = items::schemas(definition).into_iter().collect();
        let examples = Examples::of(definition, &schemas);
        Self {
            definitions,
            definition,
            owners: owner.collection.clone(),
            items: definition.name.to_string(),
            owner_field: owner.field.clone(),
            owner_type: owner.title(),
            owners_type: camel_case(&owner.collection),
            item_type: definition.title.clone(),
            items_type: camel_case(&definition.name),
            owner: noun.one().to_owned(),
            an_owner: noun.article().to_owned(),
            many_owners: noun.many().to_owned(),
            item: item.one().to_owned(),
            an_item: item.article().to_owned(),
            many_items: item.many().to_owned(),
            owner_example: text_of(&examples.owner),
            examples,
            schemas,
        }
    }

    /// The definitions of all histories of these owners.
    pub(crate) fn histories(&self) -> impl Iterator<Item = &'a Definition> {
        let collection = &self.definition.owner.collection;
        let all = self.definitions.iter().map(|definition| &**definition);
        all.filter(move |other| other.owner.collection == *collection)
    }

    /// The schema of a view, by its name: `ItemPage` is `TradePage`, `OwnerListing` is `CustomerListing`.
    pub(crate) fn schema<T: ToSchema>(&self) -> RefOr<Schema> {
        Ref::from_schema_name(self.schema_name(&T::name())).into()
    }

    /// The schema of an owner's id.
    pub(crate) fn owner_id(&self) -> RefOr<Schema> {
        super::schema(items::owner_id(self.definition.owner.kind))
    }

    /// Other schemas than those with `Item` or `Owner` in their names belong to no definition.
    pub(crate) fn schema_name(&self, template: &str) -> String {
        template.replace("Item", &self.item_type).replace("Owner", &self.owner_type)
    }

    /// The schema that a view has for this history: doc comments have names in braces.
    pub(crate) fn filled(&self, template: Value) -> Value {
        match template {
            Value::String(text) => match text.strip_prefix(REFERENCE) {
                Some(name) => json!(format!("{REFERENCE}{}", self.schema_name(name))),
                None => json!(self.fill(&text)),
            },
            Value::Array(values) => values.into_iter().map(|value| self.filled(value)).collect(),
            Value::Object(members)
                if members.get("$ref") == Some(&json!(format!("{REFERENCE}{OWNER_ID}"))) =>
            {
                items::owner_id(self.definition.owner.kind)
            }
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (self.fill(&name), self.filled(value))).collect()
            }
            other => other,
        }
    }

    /// The text with each name in braces filled in.
    pub(crate) fn fill(&self, template: &str) -> String {
        let names = [
            ("{owners}", self.owners.clone()),
            ("{items}", self.items.clone()),
            ("{ownerField}", self.owner_field.clone()),
            ("{ownerExample}", self.owner_example.clone()),
            ("{owner}", self.owner.clone()),
            ("{anOwner}", self.an_owner.clone()),
            ("{manyOwners}", self.many_owners.clone()),
            ("{ManyOwners}", capitalised(&self.many_owners)),
            ("{item}", self.item.clone()),
            ("{anItem}", self.an_item.clone()),
            ("{manyItems}", self.many_items.clone()),
            ("{ManyItems}", capitalised(&self.many_items)),
            ("{pageSize}", self.definition.page_size.to_string()),
        ];
        names.iter().fold(template.to_owned(), |text, (name, filled)| text.replace(name, filled))
    }
}

/// The address of a route of this definition: `/v1/{owners}/{ownerId}/{items}` as
/// `/v1/customers/{customerId}/trades`.
pub(crate) fn address(template: &str, definition: &Definition) -> String {
    let owner = &definition.owner;
    let address = template.replace("{owners}", &owner.collection).replace("{items}", &definition.name);
    address.replace("{ownerId}", &format!("{{{}}}", owner.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_addresses_and_texts_once() {
        let text = r#"{ "history": "audit-entries-2", "title": "AuditEntry", "date": "at",
            "owner": { "collection": "items", "field": "item", "type": "string" },
            "item": { "type": "object", "properties": { "at": { "type": "string", "format": "date-time" } } } }"#;
        let definition = Definition::parse(text).unwrap();
        assert_eq!(
            address("/v1/{owners}/{ownerId}/{items}/pages/{page}", &definition),
            "/v1/items/{item}/audit-entries-2/pages/{page}"
        );
        let definitions = Definitions::from(Definition::parse(text).unwrap());
        let names = Names::of(&definitions, &definition);
        assert_eq!(names.fill("{anItem} of {anOwner}, {name}"), "an audit entry of an item, {name}");
        assert_eq!(names.fill("{} {item {item} } {"), "{} {item audit entry } {");
    }
}
