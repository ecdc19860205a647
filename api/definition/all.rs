use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{self, camel_case};
use super::one::{Definition, Owner};
use crate::item::Mistake;

/// All definitions of a server. Their names, routes, owners and the names in the OpenAPI document agree.
#[derive(Debug, Clone)]
pub struct Definitions(Vec<Arc<Definition>>);

/// Why definitions cannot be loaded: the file, the place in it, and the rule, one sentence.
#[derive(Debug)]
pub struct LoadError {
    file: PathBuf,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Unreadable(String),
    Mistake(Mistake),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        match &self.cause {
            Cause::Unreadable(why) => write!(f, "{file} {why}"),
            Cause::Mistake(mistake) => write!(f, "{file}: {mistake}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl Definitions {
    /// Reads every `*.json` of a directory, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read or is not a definition, two do not agree, or there is none.
    pub fn of_directory(path: &Path) -> Result<Self, LoadError> {
        let unreadable = |error: std::io::Error| LoadError {
            file: path.to_owned(),
            cause: Cause::Unreadable(format!("cannot be read: {error}")),
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if file.extension().is_some_and(|extension| extension == "json") {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            let cause = Cause::Unreadable("has no file that ends with .json".to_owned());
            return Err(LoadError { file: path.to_owned(), cause });
        }
        let definitions = files.into_iter().map(|file| Ok((Self::read(&file)?, file)));
        Self::agreed(definitions.collect::<Result<_, LoadError>>()?)
    }

    /// Trades alone.
    pub fn built_in() -> Self {
        Self(vec![Arc::new(Definition::trades())])
    }

    /// Reads one file.
    ///
    /// # Errors
    /// The file cannot be read or is not a definition.
    pub fn read(file: &Path) -> Result<Definition, LoadError> {
        let failed = |cause| LoadError { file: file.to_owned(), cause };
        let text = std::fs::read_to_string(file)
            .map_err(|error| failed(Cause::Unreadable(format!("cannot be read: {error}"))))?;
        Definition::parse(&text).map_err(|mistake| failed(Cause::Mistake(mistake)))
    }

    /// Each definition.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.0.iter()
    }

    /// The definition of this history.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.0.iter().find(|definition| &*definition.name == name)
    }

    /// Whether the OpenAPI document may have a schema of this name, as far as definitions were checked for it.
    #[cfg(test)]
    pub fn has_schema(&self, name: &str) -> bool {
        let of = |definition: &Arc<Definition>| {
            let of_title = names::schemas_of_title(&definition.title);
            of_title
                .into_iter()
                .chain(names::schemas_of_owner(&definition.owner.title()))
                .any(|schema| schema == name)
        };
        names::is_our_schema(name) || self.iter().any(of)
    }

    /// Definitions with the files that they are from.
    fn agreed(definitions: Vec<(Definition, PathBuf)>) -> Result<Self, LoadError> {
        let mut agreement = Agreement::default();
        for (definition, file) in &definitions {
            agreement
                .add(definition)
                .map_err(|mistake| LoadError { file: file.clone(), cause: Cause::Mistake(mistake) })?;
        }
        Ok(Self(definitions.into_iter().map(|(definition, _)| Arc::new(definition)).collect()))
    }
}

/// What the definitions so far have taken.
#[derive(Default)]
struct Agreement<'a> {
    histories: Vec<&'a Definition>,
    owners: HashMap<&'a str, &'a Owner>,
    /// Histories and collections, by their names in the OpenAPI document.
    routes: HashMap<String, &'a str>,
    schemas: HashMap<String, &'a str>,
}

impl<'a> Agreement<'a> {
    fn add(&mut self, definition: &'a Definition) -> Result<(), Mistake> {
        let Definition { name, owner, .. } = definition;
        let collection = owner.collection.as_str();
        if self.histories.iter().any(|other| other.name == *name) {
            return Err(Mistake::new("/history", format!("must not be {name}, which another file defines")));
        }
        if self.owners.contains_key(&**name) {
            return Err(Mistake::new(
                "/history",
                format!("must not be {name}, which is a collection of owners"),
            ));
        }
        if self.histories.iter().any(|other| &*other.name == collection) {
            let rule = format!("must not be {collection}, which is a history");
            return Err(Mistake::new("/owner/collection", rule));
        }
        for (pointer, route) in [("/history", &**name), ("/owner/collection", collection)] {
            let other = *self.routes.entry(camel_case(route)).or_insert(route);
            if other != route {
                let rule = format!("must differ from {other} by more than hyphens");
                return Err(Mistake::new(pointer, rule));
            }
        }
        let known = self.owners.insert(collection, owner);
        if let Some(known) = known.filter(|known| *known != owner) {
            let (field, kind) = (&known.field, known.kind.name());
            let rule = format!(
                "must have the field {field} of type {kind}, because another history of {collection} has"
            );
            return Err(Mistake::new("/owner", rule));
        }
        self.histories.push(definition);
        for history in self.histories.iter().filter(|history| history.owner.collection == collection) {
            if *history.name == owner.field {
                let rule = format!("must not be {}, which is a history of {collection}", owner.field);
                return Err(Mistake::new("/owner/field", rule));
            }
        }
        let of_owner =
            if known.is_none() { names::schemas_of_owner(&owner.title()).to_vec() } else { Vec::new() };
        let of_title = names::schemas_of_title(&definition.title).map(|schema| ("/title", schema));
        for (pointer, schema) in
            of_title.into_iter().chain(of_owner.into_iter().map(|schema| ("/owner/field", schema)))
        {
            let taken_by = match self.schemas.get(&schema) {
                Some(other) => format!("which {other} has"),
                None if names::is_our_schema(&schema) => "which the server has itself".to_owned(),
                None => {
                    self.schemas.insert(schema, name);
                    continue;
                }
            };
            let rule = format!("makes the schema {schema} in the OpenAPI document, {taken_by}");
            return Err(Mistake::new(pointer, rule));
        }
        Ok(())
    }
}
