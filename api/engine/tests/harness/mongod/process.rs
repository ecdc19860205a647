//! A mongod as a process of this machine, which ends with this value.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

use tokio::process::{Child, Command};

use super::{CACHE, FEW_FILES, NO_DIAGNOSTICS, quiet};

/// A mongod, and its data.
pub(super) struct Process {
    pub binary: PathBuf,
    pub directory: PathBuf,
    port: u16,
    arguments: &'static [&'static str],
    environment: Vec<(&'static str, PathBuf)>,
    child: Mutex<Option<Child>>,
}

impl Process {
    pub(super) fn new(binary: PathBuf, port: u16, arguments: &'static [&'static str]) -> Self {
        let directory = std::env::temp_dir().join(format!("pagebucket-test-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for data");
        Self { binary, directory, port, arguments, environment: Vec::new(), child: Mutex::new(None) }
    }

    /// The same with these variables in its environment.
    pub(super) fn with_environment(mut self, environment: Vec<(&'static str, PathBuf)>) -> Self {
        self.environment = environment;
        self
    }

    pub(super) fn start(&self) {
        self.start_as(&mut Command::new(&self.binary));
    }

    /// Starts it so that it does not end with the processes of this test, and holds none of their output.
    pub(super) fn start_apart(&self) {
        self.start_as(Command::new(&self.binary).process_group(0).stderr(Stdio::null()));
    }

    fn start_as(&self, command: &mut Command) {
        let log = self.directory.join("mongod.log");
        let child = command
            .args(self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .args(["--bind_ip", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--wiredTigerCacheSizeGB", CACHE, "--nounixsocket", "--logappend"])
            .args(["--setParameter", "shutdownTimeoutMillisForSignaledShutdown=100"])
            .args(["--setParameter", NO_DIAGNOSTICS, "--wiredTigerEngineConfigString", FEW_FILES])
            .args([Path::new("--dbpath"), &self.directory, Path::new("--logpath"), &log])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("to start a mongod");
        *self.child.lock().expect("no test panics here") = Some(child);
    }

    /// Sends a signal that does not end it.
    pub(super) async fn send(&self, signal: &str) {
        let mut kill = Command::new("kill");
        quiet(kill.args([signal, &self.pid().to_string()])).await;
    }

    /// What removes it, to a shell.
    pub(super) fn removal(&self) -> String {
        format!("kill -KILL {}; rm -rf {}", self.pid(), self.directory.display())
    }

    fn pid(&self) -> u32 {
        let child = self.child.lock().expect("no test panics here");
        child.as_ref().and_then(Child::id).expect("it runs")
    }

    /// Ends it by a signal.
    pub(super) async fn signal(&self, signal: &str) {
        let Some(mut child) = self.child.lock().expect("no test panics here").take() else { return };
        if let Some(pid) = child.id() {
            let mut kill = Command::new("kill");
            kill.args([signal, &pid.to_string()]);
            quiet(&mut kill).await;
        }
        child.wait().await.expect("the mongod to end");
    }
}

impl Drop for Process {
    /// Of a test that failed before it removed its mongod.
    fn drop(&mut self) {
        if let Some(child) = self.child.get_mut().ok().and_then(Option::as_mut) {
            child.start_kill().ok();
        }
        std::fs::remove_dir_all(&self.directory).ok();
    }
}
