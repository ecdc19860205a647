//! What the sources say about names: which types share one, and which files do not say what they are.

use std::collections::{BTreeMap, BTreeSet};

use syn::Item;
use syn::visit::{self, Visit};

/// A source, by the path of its file.
pub type Sources = BTreeMap<String, String>;

/// Names of types that are defined more than once, in functions and tests too.
pub fn shared(sources: &Sources) -> BTreeSet<String> {
    let mut types = Types::default();
    for text in sources.values() {
        types.visit_file(&syn::parse_file(text).expect("a source that compiles"));
    }
    types.0.into_iter().filter(|(_, times)| *times > 1).map(|(name, _)| name).collect()
}

/// Files without a module doc.
pub fn undocumented(sources: &Sources) -> Vec<&str> {
    let has_none = |text: &str| {
        let file = syn::parse_file(text).expect("a source that compiles");
        !file.attrs.iter().any(|attribute| attribute.path().is_ident("doc"))
    };
    sources.iter().filter(|(_, text)| has_none(text)).map(|(path, _)| path.as_str()).collect()
}

/// How often each name is defined. What a macro defines is not seen.
#[derive(Default)]
struct Types(BTreeMap<String, usize>);

impl<'ast> Visit<'ast> for Types {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            _ => None,
        };
        if let Some(name) = name {
            *self.0.entry(name.to_string()).or_default() += 1;
        }
        visit::visit_item(self, item);
    }
}
