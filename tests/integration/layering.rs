//! Which file may use which. That no crate knows what is above it, the compiler holds; inside a crate this
//! test does.

mod files;
mod names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use files::Files;
use names::Sources;

/// The crates, each a directory of `api`.
const CRATES: [&str; 9] =
    ["cli", "embedded", "engine", "http", "model", "page_views", "server", "service", "streams"];

/// What a reader takes in at a glance.
const MOST_IN_A_ROOM: usize = 16;

/// Names of types that stand for several, at most ten, each with the reason why it stays.
const SHARED_NAMES: [(&str, &str); 8] = [
    ("Batch", "the part of a commit, in both policies of group commit, whose trait has it as a type"),
    ("Inner", "what is behind an `Arc`, private in each file: Rust's own idiom"),
    ("Item", "the name of a schema in the OpenAPI document is that of what it describes"),
    ("Owner", "as `Item`"),
    ("Record", "the model of `keys` names what it models"),
    ("Request", "as `Batch`"),
    ("Shared", "as `Inner`"),
    ("Statement", "as `Record`"),
];

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("api")
}

#[test]
fn no_crate_is_left_out() {
    let directories = std::fs::read_dir(api()).expect("the sources").map(|entry| entry.expect("an entry"));
    let found: BTreeSet<_> =
        directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, CRATES.map(str::to_owned).into());
}

/// A reader who opens one file of a circle has to open them all.
#[test]
fn no_files_use_each_other() {
    for name in CRATES {
        let circles = Files::read(&api().join(name)).circles();
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

/// Nor can a directory be read alone that is in a circle with what stands beside it.
#[test]
fn no_rooms_use_each_other() {
    for name in CRATES {
        let circles = Files::read(&api().join(name)).circles_of_rooms();
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

#[test]
fn no_room_is_crowded() {
    for name in CRATES {
        let crowded = Files::read(&api().join(name)).crowded(MOST_IN_A_ROOM);
        assert!(crowded.is_empty(), "{name}: {crowded:?}");
    }
}

/// All sources below `api`, apart from tests beside them.
fn sources() -> Sources {
    let (mut sources, mut directories) = (Sources::new(), vec![api()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.extend((!path.ends_with("tests")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source");
                sources.insert(path.display().to_string(), text);
            }
        }
    }
    sources
}

/// One name for one thing: a search for it leads to one definition.
#[test]
fn a_name_of_a_type_means_one() {
    let known = SHARED_NAMES.map(|(name, _reason)| name.to_owned());
    assert!(known.len() <= 10);
    assert_eq!(names::shared(&sources()), known.into());
}

#[test]
fn every_file_says_what_it_is() {
    let sources = sources();
    let undocumented = names::undocumented(&sources);
    assert!(undocumented.is_empty(), "no module doc: {undocumented:#?}");
}

#[test]
fn shared_names_and_files_without_docs_are_found() {
    let sources = Sources::from([
        ("one.rs".to_owned(), "//! One.\nstruct One; type Two = One; mod tests { enum Three {} }".to_owned()),
        (
            "two.rs".to_owned(),
            "/// An item's.\nfn two() { struct Three; impl Iterator for Three { type Item = One; } }"
                .to_owned(),
        ),
        ("three.rs".to_owned(), "//! Three.\ntrait Two { type One; } struct Item;".to_owned()),
    ]);
    assert_eq!(names::shared(&sources), ["Three", "Two"].map(str::to_owned).into());
    assert_eq!(names::undocumented(&sources), ["two.rs"]);
}

fn circle(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn circles_are_found() {
    let through_a_name = Files::of(&[
        ("room", "mod one; mod two; pub use one::One;"),
        ("room::one", "use super::two::Two; pub struct One(Two);"),
        ("room::two", "pub struct Two; impl Two { fn one() { super::One::new() } }"),
        ("other", "use crate::room::One;"),
    ]);
    assert_eq!(through_a_name.circles(), BTreeSet::from([circle(&["room::one", "room::two"])]));
    let through_a_definition = Files::of(&[
        ("room", "mod one; pub struct Room; fn one(one: one::One) {}"),
        ("room::one", "use super::Room; pub struct One;"),
    ]);
    assert_eq!(through_a_definition.circles(), BTreeSet::from([circle(&["room", "room::one"])]));
    let none = Files::of(&[
        ("room", "mod one; mod two; pub use two::Two; use one::One;"),
        ("room::one", "use super::Two; #[cfg(test)] mod tests { use super::super::two::helper; }"),
        (
            "room::two",
            "pub(in crate::room) struct Two; #[cfg(test)] mod tests { use crate::room::one::One; }",
        ),
    ]);
    assert!(none.circles().is_empty());
}

#[test]
fn circles_of_rooms_are_found() {
    let rooms = Files::of(&[
        ("one", "mod inner;"),
        ("one::inner", "use crate::two::Two; pub struct Inner;"),
        ("two", "mod other; pub struct Two;"),
        ("two::other", "use crate::one::inner::Inner;"),
        ("three", "use crate::one::inner::Inner;"),
    ]);
    assert!(rooms.circles().is_empty(), "no file of them is in a circle");
    assert_eq!(rooms.circles_of_rooms(), BTreeSet::from([circle(&["one", "two"])]));
    assert_eq!(rooms.crowded(2), [(String::new(), 3)].into());
}
