//! Who may reach the embedded mongod and its data directory: this user, by the password, and no other.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bson::{Document, doc};
use mongodb::error::ErrorKind;
use pagebucket_embedded::Role;

use super::{Place, client, command, is_primary, store, stored, until};
use crate::harness::skip;

/// The server's codes.
const AUTHENTICATION_FAILED: i32 = 18;
const UNAUTHORIZED: i32 = 13;

/// A user who owns nothing here: `nobody`, on most systems.
const SOMEBODY_ELSE: u32 = 65_534;

/// In a data directory, readable and writable by its owner alone.
const FILES: [&str; 5] = ["lock", "port", "password", "key", "mongod.log"];

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_the_password_is_refused() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;

    let uri = place.open_uri();
    for (database, refused) in [
        ("test", doc! { "find": "numbers" }),
        ("test", doc! { "insert": "numbers", "documents": [{ "_id": 2 }] }),
        (
            "test",
            doc! { "update": "numbers", "updates": [{ "q": {}, "u": { "$set": { "changed": true } } }] },
        ),
        ("test", doc! { "delete": "numbers", "deletes": [{ "q": {}, "limit": 0 }] }),
        ("test", doc! { "dropDatabase": 1 }),
        ("admin", doc! { "listDatabases": 1 }),
        ("admin", doc! { "createUser": "intruder", "pwd": "guess", "roles": ["root"] }),
        ("admin", doc! { "updateUser": "pagebucket", "pwd": "guess" }),
        ("admin", doc! { "getLog": "global" }),
        ("admin", doc! { "getCmdLineOpts": 1 }),
        ("admin", doc! { "replSetReconfig": {}, "force": true }),
        ("admin", doc! { "shutdown": 1, "force": true }),
    ] {
        let answer = client(&uri).await.database(database).run_command(refused.clone()).await;
        assert_eq!(code(answer), Some(UNAUTHORIZED), "{refused}");
    }
    let guessed = uri.replace("mongodb://", "mongodb://pagebucket:guess@");
    assert_eq!(code(command(&guessed, doc! { "ping": 1 }).await), Some(AUTHENTICATION_FAILED));

    assert!(is_primary(mongod.uri()).await, "it still runs");
    assert_eq!(stored(mongod.uri()).await, [1]);
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_runs_no_scripts() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;
    let find = doc! { "find": "numbers", "filter": { "$where": "true" } };
    let answer = client(mongod.uri()).await.database("test").run_command(find).await;
    assert!(code(answer).is_some(), "a script is refused");
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_stay_in_their_files() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;

    let mode = |path: PathBuf| fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(place.path().to_owned()), 0o700);
    for file in FILES {
        assert_eq!(mode(place.path().join(file)), 0o600, "{file}");
    }
    let process = PathBuf::from(format!("/proc/{}", place.mongod_pid()));
    for secret in [secret(&place, "password"), secret(&place, "key")] {
        for public in [process.join("cmdline"), process.join("environ"), place.path().join("mongod.log")] {
            let text = String::from_utf8_lossy(&fs::read(&public).expect("it is there")).into_owned();
            assert!(!text.contains(&secret), "{}", public.display());
        }
        assert!(!format!("{mongod:?}").contains(&secret));
    }
    mongod.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_secret_is_made_again() {
    let Some(place) = Place::new() else { return };
    let mongod = place.serve().await;
    store(mongod.uri(), 1).await;
    mongod.stop().await;
    for file in ["password", "key"] {
        let path = place.path().join(file);
        let mut former = secret(&place, file);
        // As a crash may leave it; and gone.
        for half in [Some(&former[..20]), Some(""), None].map(|half| half.map(str::to_owned)) {
            match half {
                Some(half) => fs::write(&path, half).expect("to write"),
                None => fs::remove_file(&path).expect("to remove"),
            }
            let mongod = place.serve().await;
            let new = secret(&place, file);
            assert_eq!(new.len(), 64);
            assert_ne!(new, former);
            assert_eq!(stored(mongod.uri()).await, [1]);
            mongod.stop().await;
            former = new;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_others_can_read_is_refused() {
    let Some(place) = Place::new() else { return };
    place.serve().await.stop().await;
    for file in ["password", "key"] {
        let path = place.real().join(file);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("our own");
        let said = format!(
            "{} can be read by other users, or belongs to one: remove it, and the next start of the server makes another",
            path.display()
        );
        refused(&place, &said).await;
        fs::remove_file(&path).expect("as it says");
        place.serve().await.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_needs_the_password_file() {
    let Some(place) = Place::new() else { return };
    let server = place.serve().await;
    fs::remove_file(place.path().join("password")).expect("to remove");
    let error = place.start(Role::Tool).await.expect_err("no password");
    assert_eq!(
        error.to_string(),
        format!(
            "another `pagebucket serve` (pid {}) uses the data directory {} without a password file there: restart that \
             server",
            std::process::id(),
            place.real().display()
        )
    );
    assert!(is_primary(server.uri()).await);
    server.stop().await;
    let server = place.serve().await;
    let tool = place.start(Role::Tool).await.expect("it joins");
    store(tool.uri(), 1).await;
    tool.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_another_user_is_refused() {
    let Some(place) = Place::new() else { return };
    place.serve().await.stop().await;
    let user = fs::metadata(place.path()).expect("it is there").uid();
    for directory in [place.real(), place.real().join("db")] {
        let path = directory.display();
        for mode in [0o720, 0o702, 0o1777] {
            fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("our own");
            let said = format!(
                "{path} can be written to by other users: run `chmod go-w {path}`, or name another directory by --data-dir"
            );
            refused(&place, &said).await;
        }
        // Others may look: what is inside they cannot.
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("our own");
        place.serve().await.stop().await;

        if chown(&directory, Some(SOMEBODY_ELSE), None).is_err() {
            skip("a directory that another user owns", "only root can give one away");
            continue;
        }
        let said = format!(
            "{path} belongs to user id {SOMEBODY_ELSE}, and this process runs as user id {user}: run it as that user, \
             change the owner with `chown -R {user} {path}`, or name another one by --data-dir"
        );
        refused(&place, &said).await;
        chown(&directory, Some(user), None).expect("root may");
    }
    place.serve().await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_place_of_a_file_is_refused() {
    let Some(place) = Place::new() else { return };
    place.serve().await.stop().await;
    let victim = place.path().join("victim");
    fs::write(&victim, "dear to somebody").expect("a file");
    for file in FILES {
        let path = place.real().join(file);
        let former = fs::read(&path).expect("it is there");
        for target in [&*victim, Path::new("nowhere")] {
            fs::remove_file(&path).expect("to remove");
            symlink(target, &path).expect("a link");
            let said = format!(
                "{} is a symbolic link, and files of a data directory are opened without following links: put the file \
                 itself there, or remove the link",
                path.display()
            );
            refused(&place, &said).await;
        }
        fs::remove_file(&path).expect("as it says");
        fs::write(&path, former).expect("to write");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("our own");
    }
    assert_eq!(fs::read_to_string(&victim).expect("it is there"), "dear to somebody");
    assert!(!place.path().join("nowhere").exists());
    place.serve().await.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_may_be_a_link() {
    let Some(place) = Place::new() else { return };
    // Both the data directory and `db` in it, each on a disk of its own.
    let disks = place.path().with_extension("disks");
    let (data, db) = (disks.join("data"), disks.join("db"));
    directory(&data);
    symlink(&data, place.path()).expect("a link");
    symlink("../db", data.join("db")).expect("a link");

    let began = Instant::now();
    let said = format!(
        "{} is a symbolic link to ../db, which does not exist: make that directory, or remove the link",
        place.real().join("db").display()
    );
    refused(&place, &said).await;
    assert!(began.elapsed() < Duration::from_secs(10), "at once");

    directory(&db);
    for number in 1..=2 {
        let mongod = place.serve().await;
        store(mongod.uri(), number).await;
        let tool = place.start(Role::Tool).await.expect("it joins");
        assert_eq!(stored(tool.uri()).await, (1..=number).collect::<Vec<_>>());
        tool.stop().await;
        mongod.stop().await;
    }
    assert!(db.join("WiredTiger").exists(), "the data are where the link leads to");
    fs::remove_file(place.path()).expect("to remove");
    fs::remove_dir_all(&disks).expect("to remove");
}

/// Whoever starts is told this, and no mongod is left running.
async fn refused(place: &Place, sentence: &str) {
    for role in [Role::Server, Role::Tool] {
        let error = place.start(role).await.expect_err("it is refused");
        assert_eq!(error.to_string(), sentence, "{role:?}");
    }
    until("no mongod runs", || async { place.mongod_is_gone() }).await;
}

/// Made for this user alone, whatever the umask.
fn directory(path: &Path) {
    DirBuilder::new().recursive(true).mode(0o700).create(path).expect("a directory");
}

fn secret(place: &Place, file: &str) -> String {
    fs::read_to_string(place.path().join(file)).expect("it is there").trim().to_owned()
}

fn code(answer: mongodb::error::Result<Document>) -> Option<i32> {
    let error = answer.err()?;
    match error.kind.as_ref() {
        ErrorKind::Command(refusal) => Some(refusal.code),
        // The driver makes its own error of a failed handshake.
        ErrorKind::Authentication { .. } => Some(AUTHENTICATION_FAILED),
        other => panic!("no answer of the server: {other}"),
    }
}
