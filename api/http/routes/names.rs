//! What a definition puts into the templates of its routes: their addresses, and their texts in the OpenAPI
//! document.

use std::sync::LazyLock;

use pagebucket_model::definition::{Definition, camel_case, capitalised};
use pagebucket_model::domain::{Limit, OwnerType};
use pagebucket_model::item::Noun;
use regex::{Captures, Regex};

/// The texts for the placeholders of templates, such as `{items}`.
#[derive(Debug)]
pub(crate) struct Names(Vec<(&'static str, String)>);

impl Names {
    /// The names of one definition.
    pub(crate) fn of(definition: &Definition) -> Self {
        let (item, owner) = (definition.item.noun(), &definition.owner);
        let owner_noun = Noun::of_name(&owner.title());
        let dated = if definition.date.required { "" } else { ", now" };
        let rule = match owner.kind {
            OwnerType::Integer => ": decimal digits, without a sign or a leading zero",
            OwnerType::String => ": 1 to 64 letters, digits and hyphens; upper and lower case differ",
            OwnerType::Uuid => ": a UUID; upper and lower case do not differ, and answers are in lower case",
        };
        Self(vec![
            // In addresses.
            ("owners", owner.collection.clone()),
            ("ownerId", format!("{{{}}}", owner.field)),
            ("items", definition.name.to_string()),
            // Identifiers.
            ("ownerField", owner.field.clone()),
            ("Owner", owner.title()),
            ("Owners", camel_case(&owner.collection)),
            ("Item", definition.title.clone()),
            ("Items", camel_case(&definition.name)),
            // Words.
            ("owner", owner_noun.one().to_owned()),
            ("anOwner", owner_noun.article().to_owned()),
            ("AnOwner", capitalised(owner_noun.article())),
            ("manyOwners", owner_noun.many().to_owned()),
            ("ManyOwners", capitalised(owner_noun.many())),
            ("item", item.one().to_owned()),
            ("anItem", item.article().to_owned()),
            ("manyItems", item.many().to_owned()),
            ("ManyItems", capitalised(item.many())),
            // Numbers and sentences.
            ("pageSize", definition.page_size.to_string()),
            ("defaultLimit", Limit::of_page(definition.page_size).get().to_string()),
            ("unlessDated", dated.to_owned()),
            ("ownerIdRule", rule.to_owned()),
        ])
    }

    /// The names of one definition, and other texts.
    pub(crate) fn with(mut self, more: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.0.extend(more);
        self
    }

    /// The text with each placeholder filled. Other words in braces stay, such as `{page}` in an address.
    pub(crate) fn fill(&self, template: &str) -> String {
        static PLACEHOLDER: LazyLock<Regex> =
            LazyLock::new(|| Regex::new(r"\{(\w+)\}").expect("the pattern is a constant"));
        let filled = |found: &Captures<'_>| {
            let known = self.0.iter().find(|(name, _)| *name == &found[1]);
            known.map_or_else(|| found[0].to_owned(), |(_, text)| text.clone())
        };
        PLACEHOLDER.replace_all(template, filled).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_addresses_and_texts_once() {
        let text = r#"{ "history": "audit-entries-2", "title": "AuditEntry", "date": "at",
            "owner": { "collection": "items", "field": "item", "type": "string" },
            "item": { "type": "object", "properties": { "at": { "type": "string", "format": "date-time" } } } }"#;
        let names = Names::of(&Definition::parse(text).unwrap());
        assert_eq!(
            names.fill("/v1/{owners}/{ownerId}/{items}/pages/{page}"),
            "/v1/items/{item}/audit-entries-2/pages/{page}"
        );
        assert_eq!(
            names.fill("list{Items}: {anItem} of {anOwner}"),
            "listAuditEntries2: an audit entry of an item"
        );
        assert_eq!(names.fill("{} {item {item} } {"), "{} {item audit entry } {");
    }
}
