//! Which module may use which, read from the sources, so that the map in `lib.rs` stays true.

mod files;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::harness::tests;
use files::Files;

tests!["layering":
    modules_know_only_what_is_below_them,
    no_module_is_without_a_rule,
    no_files_use_each_other,
    circles_are_found,
];

/// A module of the crate; the modules of the crate that it may name; outside crates that it must not.
const RULES: [(&str, &[&str], &[&str]); 17] = [
    ("domain", &[], &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "tokio"]),
    ("metric", &[], &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "tokio"]),
    (
        "store",
        &["definition", "domain", "item", "metric"],
        &["axum", "utoipa", "tower", "tower_http", "hyper", "clap"],
    ),
    (
        "auth",
        &["client", "definition", "domain", "store"],
        &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "clap"],
    ),
    ("item", &["domain"], &["axum", "utoipa", "tower", "tower_http", "hyper", "tokio", "clap"]),
    (
        "definition",
        &["domain", "item"],
        &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "tokio", "clap"],
    ),
    ("embedded", &[], &["axum", "utoipa", "tower", "tower_http", "hyper", "clap"]),
    (
        "ingest",
        &["definition", "domain", "item", "store"],
        &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "clap"],
    ),
    (
        "import",
        &["definition", "domain", "format", "ingest", "item"],
        &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper"],
    ),
    (
        "adopt",
        &["definition", "domain", "import", "ingest", "item", "store"],
        &["axum", "utoipa", "tower", "tower_http", "hyper", "clap"],
    ),
    ("format", &[], &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "tokio"]),
    (
        "export",
        &["definition", "domain", "format", "item", "store"],
        &["mongodb", "axum", "utoipa", "tower", "tower_http", "hyper", "tokio"],
    ),
    ("client", &[], &["mongodb", "axum", "utoipa", "tower", "tower_http", "clap"]),
    (
        "http",
        &["auth", "definition", "domain", "export", "ingest", "item", "metric", "store"],
        &["mongodb", "clap"],
    ),
    ("config", &["domain"], &["mongodb", "axum", "utoipa"]),
    ("telemetry", &["config", "metric"], &["mongodb", "axum", "utoipa"]),
    ("server", &["config", "domain", "http", "metric", "store", "telemetry"], &["mongodb", "clap", "utoipa"]),
];

/// May name everything.
const TOP: [&str; 3] = ["cli", "lib", "main"];

fn api() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("api")
}

/// The module's own file, and all below its directory.
fn sources(module: &str) -> Vec<PathBuf> {
    let mut found = vec![api().join(format!("{module}.rs"))];
    let mut directories = vec![api().join(module)];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// Names that stand before `::` in code, and `crate::` names with what follows them.
fn named(line: &str, of: &str) -> BTreeSet<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(of) {
        let boundary =
            code[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != ':');
        let rest: String =
            code[at + of.len()..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if boundary {
            found.insert(rest);
        }
    }
    found
}

async fn modules_know_only_what_is_below_them() {
    let mut broken = Vec::new();
    for (module, allowed, forbidden) in RULES {
        for path in sources(module) {
            let text = std::fs::read_to_string(&path).expect("a source");
            for (number, line) in text.lines().enumerate() {
                let at = format!("{}:{}: {}", path.display(), number + 1, line.trim());
                for other in named(line, "crate::") {
                    assert!(
                        !other.is_empty() || !line.contains("crate::{"),
                        "one `crate::` path a line: {at}"
                    );
                    if other != module && !allowed.contains(&other.as_str()) {
                        broken.push(at.clone());
                    }
                }
                if forbidden.iter().any(|name| !named(line, &format!("{name}::")).is_empty()) {
                    broken.push(at);
                }
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

async fn no_module_is_without_a_rule() {
    let ruled: BTreeSet<_> = RULES.iter().map(|(module, ..)| *module).chain(TOP).map(str::to_owned).collect();
    let files = std::fs::read_dir(api()).expect("the sources").map(|entry| entry.expect("an entry").path());
    let there: BTreeSet<_> =
        files.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect();
    assert_eq!(there, ruled);
    assert_eq!(named("use crate::http::Api;", "crate::"), BTreeSet::from(["http".to_owned()]));
    assert!(named("// crate::http", "crate::").is_empty());
    assert!(!named("    mongodb::Client::new()", "mongodb::").is_empty());
    assert!(named("use mymongodb::x;", "mongodb::").is_empty());
}

/// A reader who opens one file of a circle has to open them all.
async fn no_files_use_each_other() {
    let circles = Files::read(&api()).circles();
    assert!(circles.is_empty(), "{circles:#?}");
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
