//! Finds the mongod to run.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::layout::EmbeddedError;

/// The mongod that [`start`](super::start) runs: the named one, else the first in PATH, else the one that
/// `scripts/fetch-mongod` has put into `${XDG_CACHE_HOME:-$HOME/.cache}/pagebucket`.
///
/// # Errors
///
/// The named file is not a program (no other is tried then), or none is found.
pub fn find(named: Option<&Path>) -> Result<PathBuf, EmbeddedError> {
    find_in(named, env::var_os("PATH").as_deref(), cache())
}

fn find_in(named: Option<&Path>, path: Option<&OsStr>, cache: PathBuf) -> Result<PathBuf, EmbeddedError> {
    // An empty MONGOD is an unset one.
    if let Some(named) = named.filter(|named| !named.as_os_str().is_empty()) {
        return if is_executable(named) {
            Ok(named.to_owned())
        } else {
            Err(EmbeddedError::NotRun(format!(
                "--mongod or MONGOD names {}, which is not an executable file: correct it, or leave it out to search \
                 for a mongod",
                named.display()
            )))
        };
    }
    path.map(env::split_paths)
        .into_iter()
        .flatten()
        // A relative entry would run a file of the current directory.
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("mongod"))
        .chain([cache.clone()])
        .find(|candidate| is_executable(candidate))
        .ok_or_else(|| {
            EmbeddedError::NotRun(format!(
                "no mongod was found, neither in PATH nor at {}: run `scripts/fetch-mongod` to fetch one, or name one \
                 by --mongod or MONGOD, or name a running database by --mongodb-uri or MONGODB_URI",
                cache.display()
            ))
        })
}

fn cache() -> PathBuf {
    env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|cache| cache.is_absolute())
        .unwrap_or_else(|| env::home_dir().unwrap_or_default().join(".cache"))
        .join("pagebucket/mongod-6.0.27/mongod")
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executable on every Unix, and not a mongod: only found, never run.
    const PROGRAM: &str = "/bin/sh";

    #[test]
    fn a_named_one_is_taken_or_refused_but_never_replaced() {
        let cache = PathBuf::from(PROGRAM);
        assert_eq!(find_in(Some(Path::new(PROGRAM)), None, "/nowhere".into()).ok(), Some(PROGRAM.into()));
        for wrong in ["/nowhere/mongod", "/bin", "/etc/passwd"] {
            let error =
                find_in(Some(Path::new(wrong)), None, cache.clone()).expect_err("it is not a program");
            let said = error.to_string();
            assert!(said.starts_with(&format!("--mongod or MONGOD names {wrong},")), "{said}");
        }
        assert_eq!(find_in(Some(Path::new("")), None, cache.clone()).ok(), Some(cache));
    }

    #[test]
    fn none_at_all_is_a_sentence_that_names_every_way_out() {
        let path = OsStr::new("/nowhere:relative");
        let error = find_in(None, Some(path), "/home/of/nobody/mongod".into()).expect_err("there is none");
        let said = error.to_string();
        for way in
            ["PATH", "/home/of/nobody/mongod", "scripts/fetch-mongod", "--mongod", "MONGOD ", "MONGODB_URI"]
        {
            let said = said.replace(',', " ");
            assert!(said.contains(way), "{way} is missing in: {said}");
        }
        assert!(!said.contains('\n'));
    }
}
