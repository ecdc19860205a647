//! Which file may use which. That no crate knows what is above it, the compiler holds; inside a crate this test does.

mod files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::harness::tests;
use files::Files;

tests!["layering":
    no_crate_is_left_out,
    no_files_use_each_other,
    circles_are_found,
];

/// The crates, each a directory of `api`.
const CRATES: [&str; 5] = ["cli", "engine", "http", "model", "streams"];

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("api")
}

async fn no_crate_is_left_out() {
    let directories = std::fs::read_dir(api()).expect("the sources").map(|entry| entry.expect("an entry"));
    let found: BTreeSet<_> =
        directories.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(found, CRATES.map(str::to_owned).into());
}

/// A reader who opens one file of a circle has to open them all.
async fn no_files_use_each_other() {
    for name in CRATES {
        let circles = Files::read(&api().join(name)).circles();
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

async fn circles_are_found() {
    let circle = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let through_a_name = Files::of(&[
        ("room", "mod one; mod two; pub use one::One;"),
        ("room::one", "use super::two::Two; pub struct One(Two);"),
        ("room::two", "pub struct Two; impl Two { fn one() { super::One::new() } }"),
        ("other", "use crate::room::One;"),
    ]);
    assert_eq!(through_a_name.circles(), [circle(&["room::one", "room::two"])]);
    let through_a_definition = Files::of(&[
        ("room", "mod one; pub struct Room; fn one(one: one::One) {}"),
        ("room::one", "use super::Room; pub struct One;"),
    ]);
    assert_eq!(through_a_definition.circles(), [circle(&["room", "room::one"])]);
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
