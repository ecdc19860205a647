//! All definitions of a server: which of them go together.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{
    OUR_SCHEMAS, append_of_batch, camel_case, operations, schemas_of_owner, schemas_of_title,
};
use super::single::{Definition, Owner};
use crate::item::{Mistake, Mistakes};

/// All definitions of a server. Their names, routes, owners and the names in the OpenAPI document agree.
#[derive(Debug, Clone)]
pub struct Definitions(Vec<Arc<Definition>>);

/// Why definitions cannot be loaded: a line for each mistake, with the file, the place in it, and the rule.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or a directory cannot be read, or the directory has no definition.
    #[error("{0}")]
    Unreadable(String),
    /// What was read has mistakes.
    #[error("{0}")]
    Mistakes(String),
}

impl LoadError {
    fn unreadable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unreadable(format!("{} cannot be read: {error}", path.display()))
    }

    fn mistakes(file: &Path, mistakes: &Mistakes) -> Self {
        let lines: Vec<_> = mistakes.lines().map(|line| format!("{}: {line}", file.display())).collect();
        Self::Mistakes(lines.join("\n"))
    }
}

impl Definitions {
    /// Reads every `*.json` of a directory, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read, or is not a definition. Two definitions contradict each other: of each that
    /// contradicts those before it one mistake is named. The directory has no definition.
    pub fn of_directory(path: &Path) -> Result<Self, LoadError> {
        let paths = |entries: fs::ReadDir| entries.map(|entry| Ok(entry?.path())).collect();
        let files = fs::read_dir(path).and_then(paths);
        let mut files: Vec<PathBuf> = files.map_err(|error| LoadError::unreadable(path, &error))?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        if files.is_empty() {
            return Err(LoadError::Unreadable(format!(
                "{} has no file that ends with .json",
                path.display()
            )));
        }
        let (mut definitions, mut errors) = (Vec::new(), Vec::new());
        for file in &files {
            let read = Self::read(file).and_then(|definition| match agree(&definition, &definitions) {
                Ok(()) => Ok(definition),
                Err(mistake) => Err(LoadError::mistakes(file, &mistake.into())),
            });
            match read {
                Ok(definition) => definitions.push(Arc::new(definition)),
                Err(error) => errors.push(error.to_string()),
            }
        }
        if errors.is_empty() { Ok(Self(definitions)) } else { Err(LoadError::Mistakes(errors.join("\n"))) }
    }

    /// Trades alone.
    pub fn built_in() -> Self {
        Definition::trades().into()
    }

    /// Reads one file.
    ///
    /// # Errors
    /// The file cannot be read or is not a definition.
    pub fn read(file: &Path) -> Result<Definition, LoadError> {
        let text = fs::read_to_string(file).map_err(|error| LoadError::unreadable(file, &error))?;
        Definition::parse(&text).map_err(|mistakes| LoadError::mistakes(file, &mistakes))
    }

    /// Each definition.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.0.iter()
    }

    /// The owners of each collection of owners, once.
    pub fn owners(&self) -> Vec<&Owner> {
        let mut known = HashSet::new();
        self.iter()
            .map(|definition| &definition.owner)
            .filter(|owner| known.insert(&owner.collection))
            .collect()
    }

    /// The definition of this history.
    pub fn get(&self, name: &str) -> Option<&Arc<Definition>> {
        self.0.iter().find(|definition| &*definition.name == name)
    }

    /// Whether the OpenAPI document may have a schema of this name, as far as definitions were checked for
    /// it.
    pub fn has_schema(&self, name: &str) -> bool {
        OUR_SCHEMAS.contains(&name)
            || self.iter().any(|definition| names(definition).any(|(_, schema)| schema == name))
    }
}

impl From<Definition> for Definitions {
    /// This one alone.
    fn from(definition: Definition) -> Self {
        Self(vec![Arc::new(definition)])
    }
}

/// The names of schemas and operations that a definition makes in the OpenAPI document, and the members of
/// the definition that they come from.
fn names(definition: &Definition) -> impl Iterator<Item = (&'static str, String)> {
    let operations = operations(&definition.name, &definition.owner.collection);
    let of_title = schemas_of_title(&definition.title).map(|schema| ("/title", schema));
    operations
        .map(|operation| ("/history", operation))
        .into_iter()
        .chain(of_title)
        .chain([("/title", append_of_batch(&definition.title))])
        .chain(schemas_of_owner(&definition.owner.title()).map(|schema| ("/owner/field", schema)))
}

/// Whether a definition agrees with those before it.
fn agree(one: &Definition, before: &[Arc<Definition>]) -> Result<(), Mistake> {
    let (name, owner) = (&*one.name, &one.owner);
    let collection = owner.collection.as_str();
    let mistake = |pointer: &str, rule: String| Err(Mistake::new(pointer, rule));
    if before.iter().any(|other| *other.name == *name) {
        return mistake("/history", format!("must not be {name}, which another file defines"));
    }
    if before.iter().any(|other| other.owner.collection == name) {
        return mistake("/history", format!("must not be {name}, which is a collection of owners"));
    }
    if before.iter().any(|other| *other.name == *collection) {
        return mistake("/owner/collection", format!("must not be {collection}, which is a history"));
    }
    let mut routes: Vec<&str> =
        before.iter().flat_map(|other| [&*other.name, other.owner.collection.as_str()]).collect();
    for (pointer, route) in [("/history", name), ("/owner/collection", collection)] {
        let alike = |other: &&&str| **other != route && camel_case(other) == camel_case(route);
        if let Some(other) = routes.iter().find(alike) {
            return mistake(pointer, format!("must differ from {other} by more than hyphens"));
        }
        routes.push(route);
    }
    let relatives: Vec<_> = before.iter().filter(|other| other.owner.collection == collection).collect();
    if let Some(known) = relatives.iter().map(|other| &other.owner).find(|known| *known != owner) {
        let (field, kind) = (&known.field, known.kind);
        let rule = format!(
            "must have the field {field} of type {kind}, because another history of {collection} has"
        );
        return mistake("/owner", rule);
    }
    if relatives.iter().map(|other| &*other.name).chain([name]).any(|history| history == owner.field) {
        let rule = format!("must not be {}, which is a history of {collection}", owner.field);
        return mistake("/owner/field", rule);
    }
    let mut taken = HashMap::new();
    // If several definitions make one name, the message names the first.
    for other in before.iter().rev() {
        taken.extend(names(other).map(|(_, made)| (made, &*other.name)));
    }
    for (pointer, made) in names(one) {
        if pointer == "/owner/field" && !relatives.is_empty() {
            break;
        }
        let taken_by = match taken.get(&made) {
            Some(other) => format!("which {other} has"),
            None if OUR_SCHEMAS.contains(&&*made) => "which the server has itself".to_owned(),
            None => {
                taken.insert(made, name);
                continue;
            }
        };
        let rule = format!("makes the name {made} in the OpenAPI document, {taken_by}");
        return mistake(pointer, rule);
    }
    Ok(())
}
