//! A clock of a mongod that a test steps: a library that is preloaded into its process.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/harness/mongod/stepped_clock.c");

/// The clock of one mongod. It steps as long as this value exists.
pub struct SteppedClock {
    /// By how many seconds it is ahead, as an int64.
    ahead: PathBuf,
}

impl SteppedClock {
    /// One that is right so far. `name` is that of no other.
    pub fn new(name: &str) -> Self {
        let clock = Self { ahead: std::env::temp_dir().join(format!("{name}-clock")) };
        clock.put_ahead(0);
        clock
    }

    /// Puts it ahead of the machine's clock by `seconds`, or behind it.
    pub fn put_ahead(&self, seconds: i64) {
        use std::os::unix::fs::FileExt;
        // In place, at once: the process has mapped it.
        let file = std::fs::OpenOptions::new().write(true).create(true).truncate(false).open(&self.ahead);
        file.expect("a file").write_all_at(&seconds.to_ne_bytes(), 0).expect("to write");
    }

    /// What a process must have in its environment to go by it.
    pub(super) fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![("LD_PRELOAD", library().to_owned()), ("CLOCK_AHEAD", self.ahead.clone())]
    }
}

impl Drop for SteppedClock {
    fn drop(&mut self) {
        std::fs::remove_file(&self.ahead).ok();
    }
}

/// The library, which the tests' own C compiler makes: that which links them.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("the program of this test");
        let directory = program.parent().expect("its directory");
        let (library, new) =
            (directory.join("stepped_clock.so"), format!("stepped_clock-{}", std::process::id()));
        let new = directory.join(new);
        let mut compile = std::process::Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).args([&new, Path::new(SOURCE)]).arg("-ldl");
        assert!(compile.status().expect("a C compiler").success(), "{compile:?}");
        // Another run may have loaded the one that is there.
        std::fs::rename(new, &library).expect("to rename");
        library
    })
}
