//! Two instances whose definitions of one history have different `item`s: as while an operator replaces them
//! one after the other.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::{History, Service, Setup, shared};

/// A directory with the definition of a history, changed; removed with this value.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn of(history: &History, change: impl FnOnce(&mut Value)) -> Self {
        Self::changed(history, |definition| change(&mut definition["item"]))
    }

    pub fn changed(history: &History, change: impl FnOnce(&mut Value)) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("pagebucket-histories-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let name = format!("{}.json", history.name);
        let known = Path::new(history.definitions.expect("a directory")).join(&name);
        let definition = std::fs::read_to_string(known).expect("a definition");
        let mut definition: Value = serde_json::from_str(&definition).expect("JSON");
        change(&mut definition);
        std::fs::write(directory.join(name), definition.to_string()).expect("to write");
        Self(directory)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What cannot be removed is in the system's own directory for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An instance with this definition, on a new database or on that of another one.
pub async fn instance(history: &'static History, directory: &Directory, beside: Option<&Service>) -> Service {
    let mut setup = Setup::on(shared().await).of(history.holding_any());
    setup.definitions = Some(directory.0.clone());
    match beside {
        Some(other) => setup.in_database(&other.database).start().await,
        None => setup.start().await,
    }
}
