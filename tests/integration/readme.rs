//! The sessions with curl of the README and the tutorial, run as printed; what docs say of `compose.yaml`;
//! what the image is built from; how long pages are; and that what they link to and name is there.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::harness::{Service, Setup, shared, skip};

/// The text of a file of the repository.
fn text(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
}

/// A page's blocks of this language.
fn blocks<'a>(page: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let openings = page.split("\n```").skip(1).step_by(2);
    openings.filter_map(move |block| block.strip_prefix(language)?.strip_prefix('\n'))
}

/// Each `$ curl …` line of a page's blocks of this language, with what is printed below it.
fn session(page: &str, language: &str) -> Vec<(String, String)> {
    let blocks: Vec<_> = blocks(page, language).filter(|block| block.contains("$ curl")).collect();
    let mut session: Vec<(String, String)> = Vec::new();
    for line in blocks.iter().flat_map(|block| block.lines()) {
        match (line.strip_prefix("$ "), session.last_mut()) {
            (Some(command), _) => session.push((command.to_owned(), String::new())),
            (None, Some((command, answer))) if answer.is_empty() && command.ends_with('\\') => {
                command.pop();
                command.push_str(line.trim_start());
            }
            (None, Some((_, answer))) => answer.push_str(line.trim()),
            (None, None) => panic!("an answer before a command: {line}"),
        }
    }
    session
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_answers_as_printed() {
    the_session_is_as_printed(&Service::start().await).await;
}

/// Those of `examples/histories`, which a reader serves instead of trades.
#[tokio::test(flavor = "multi_thread")]
async fn the_examples_answer_as_printed() {
    let mut setup = Setup::on(shared().await);
    setup.definitions = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/histories").into());
    answers_as_printed("README.md", "shell-session", &setup.start().await).await;
}

/// The history that the tutorial defines.
#[tokio::test(flavor = "multi_thread")]
async fn the_tutorial_answers_as_printed() {
    let page = text("docs/tutorial.md");
    let directory = std::env::temp_dir().join(format!("pagebucket-tutorial-{:x}", rand::random::<u64>()));
    std::fs::create_dir(&directory).expect("a directory");
    let definition = blocks(&page, "json").next().expect("a definition");
    std::fs::write(directory.join("readings.json"), definition).expect("a file");
    let mut setup = Setup::on(shared().await);
    setup.definitions = Some(directory.clone());
    let service = setup.start().await;
    std::fs::remove_dir_all(directory).expect("it is there");
    answers_as_printed("docs/tutorial.md", "shell-session", &service).await;
}

/// Runs the session of trades against a service that has none yet.
pub async fn the_session_is_as_printed(service: &Service) {
    answers_as_printed("README.md", "console", service).await;
}

async fn answers_as_printed(page: &str, language: &str, service: &Service) {
    if Command::new("curl").arg("--version").output().await.is_err() {
        return skip(&format!("the session of {page}"), "no curl");
    }
    let session = session(&text(page), language);
    assert!(session.len() >= 5, "{page} has a session");
    for (command, printed) in session {
        let here = command.replace("http://127.0.0.1:8080", &service.client.url(""));
        let output = Command::new("sh").args(["-c", &here]).output().await.expect("a shell");
        let answer = String::from_utf8(output.stdout).expect("text");
        assert_eq!(comparable(&answer), comparable(&printed), "{command}");
    }
}

/// Without what differs every time: the time of an append, and the id of a request.
fn comparable(answer: &str) -> Value {
    let mut value: Value = serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"));
    if let Some(object) = value.as_object_mut() {
        if object.contains_key("ranges") {
            object.remove("date");
        }
        object.remove("requestId");
    }
    value
}

#[test]
fn compose_publishes_on_this_machine_alone() {
    let compose = text("compose.yaml");
    let ports = compose.split("ports:\n").skip(1).flat_map(|rest| {
        rest.lines().map(str::trim).take_while(|line| line.starts_with("- ")).collect::<Vec<_>>()
    });
    assert_eq!(ports.collect::<Vec<_>>(), ["- \"127.0.0.1:8080:8080\"", "- \"127.0.0.1:3000:3000\""]);
}

/// The page on MongoDB names what `compose.yaml` runs by default, and that no test has started it.
#[test]
fn compose_has_a_mongod_that_operators_are_told_of() {
    let (compose, page) = (text("compose.yaml"), text("docs/how-to/mongodb.md"));
    let image = compose.lines().find_map(|line| line.trim().strip_prefix("image: ${MONGO_IMAGE:-mongo:"));
    let version = image.and_then(|image| image.strip_suffix('}')).expect("an image with a version");
    let tested = page.split("\n## Tested versions").nth(1).expect("a section of tested versions");
    let tested = tested.split("\n## ").next().unwrap_or_default();
    assert!(tested.contains(&format!("{version} in `compose.yaml`")), "{version}: {tested}");
    let comment = compose.split("image: ${MONGO_IMAGE").next().unwrap_or_default();
    assert!(comment.contains("was not run here"), "{comment}");
}

/// `.dockerignore` leaves out all that it does not name.
#[test]
fn the_image_gets_all_that_it_copies() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (image, ignored) = (text("Dockerfile"), text(".dockerignore"));
    let admitted: Vec<_> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let copies =
        image.lines().filter_map(|line| line.strip_prefix("COPY ")).filter(|copy| !copy.starts_with("--"));
    let copied: Vec<_> = copies.flat_map(|copy| copy.split(' ').rev().skip(1)).collect();
    assert!(copied.len() > 5, "{copied:?}");
    // Docker without BuildKit does not look into a directory that is left out, unless a line names a path in
    // it.
    assert!(admitted.iter().all(|admitted| !admitted.contains('*')), "{admitted:?}");
    let manifest = text("Cargo.toml");
    let members =
        manifest.lines().find_map(|line| line.strip_prefix("members = [")).expect("the workspace's members");
    for member in members.split('"').skip(1).step_by(2) {
        assert!(copied.contains(&&*format!("{member}/Cargo.toml")), "cargo needs the manifest of {member}");
    }
    for source in copied {
        let is_admitted = admitted.iter().any(|admitted| Path::new(source).starts_with(admitted));
        assert!(is_admitted && root.join(source).exists(), "{source}");
    }
}

/// All pages below a directory, but those that tools have put there.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let (mut pages, mut directories) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let entry = entry.expect("an entry");
            let (path, kind) = (entry.path(), entry.file_type().expect("a kind"));
            let of_tools =
                [".git", "build", "dist", "node_modules", "target"].iter().any(|name| path.ends_with(name));
            if kind.is_dir() && !of_tools {
                directories.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// Whether a page has a heading, or an element, of this anchor.
fn has_anchor(page: &str, anchor: &str) -> bool {
    let slug = |heading: &str| -> String {
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    let mut headings = page.lines().filter(|line| line.starts_with('#'));
    headings.any(|line| slug(line.trim_start_matches('#')) == anchor)
        || page.contains(&format!("id=\"{anchor}\""))
}

#[test]
fn links_of_docs_lead_somewhere() {
    for page in pages(Path::new(env!("CARGO_MANIFEST_DIR"))) {
        let text = std::fs::read_to_string(&page).expect("a page");
        let targets =
            text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        for target in targets.filter(|target| !target.contains("://") && !target.contains(' ')) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let there = if path.is_empty() { page.clone() } else { page.with_file_name("").join(path) };
            assert!(there.exists(), "{}: {target}", page.display());
            if !anchor.is_empty() {
                let there = std::fs::read_to_string(there).expect("a page");
                assert!(has_anchor(&there, anchor), "{}: {target}", page.display());
            }
        }
    }
}

/// Pages that the program writes are looked up, not read, and may have any length.
#[test]
fn pages_of_docs_are_short_and_linked_by_their_index() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let index = text("docs/README.md");
    let mut all_words = 0;
    for page in pages(&docs) {
        let text = std::fs::read_to_string(&page).expect("a page");
        let name = page.strip_prefix(&docs).expect("it is there").to_str().expect("text");
        assert!(name == "README.md" || index.contains(&format!("]({name})")), "docs/README.md: {name}");
        let words = text.split_whitespace().count();
        if !text.contains("This page is generated") {
            assert!(words <= 2_500, "docs/{name} has {words} words");
            all_words += words;
        }
    }
    assert!(all_words <= 45_000, "docs have {all_words} words");
}

/// Each protocol stands once, in the documentation of the module that the page of the architecture links.
#[test]
fn protocols_stand_in_the_docs_of_their_modules() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let page = std::fs::read_to_string(docs.join("architecture.md")).expect("a page");
    let (_, section) = page.split_once("\n## The protocols\n").expect("a section of protocols");
    let section = section.split("\n## ").next().unwrap_or_default();
    let links = section.split("](../api/").skip(1).filter_map(|rest| rest.split_once(')'));
    let homes: Vec<_> = links.map(|(path, _)| path).collect();
    assert!(homes.len() > 10, "{homes:?}");
    for home in homes {
        let source = std::fs::read_to_string(docs.join("../api").join(home)).expect(home);
        let told: usize = source
            .lines()
            .filter_map(|line| line.strip_prefix("//!"))
            .map(|line| line.split(' ').count())
            .sum();
        assert!(told > 90, "{home} says its protocol in {told} words");
    }
}

#[test]
fn docs_name_sources_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["api/", "benches/", "clients/", "examples/", "migrations/", "scripts/", "tests/", "web/"];
    for page in ["docs/architecture.md", "docs/changing.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        let marked = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
        let is_path = |marked: &&str| {
            places.iter().any(|place| marked.starts_with(place)) && !marked.contains([' ', '{', '*', '…'])
        };
        let missing: Vec<_> = marked.filter(is_path).filter(|path| !root.join(path).exists()).collect();
        assert!(missing.is_empty(), "{page}: {missing:?}");
    }
}
