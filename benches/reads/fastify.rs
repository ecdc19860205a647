//! Pagination libraries from npm behind Fastify, each in a process of its own (`peers/server.js`).

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::harness::Result;
use crate::harness::mongod::{Mongod, POOL};

/// Where `scripts/npm-peers` has installed them: a `node_modules`. `None`: they are left out.
pub fn installed() -> Option<PathBuf> {
    std::env::var_os("NPM_PEERS").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A running server. Dropping it kills it.
pub struct Fastify {
    pub address: SocketAddr,
    _child: Child,
}

impl Fastify {
    /// Serves a database with the library of that name.
    pub async fn start(modules: &PathBuf, library: &str, mongod: &Mongod, database: &str) -> Result<Self> {
        // What the others' driver is told too.
        let uri = format!("{}&w=majority&journal=true&maxPoolSize={POOL}", mongod.uri());
        let mut child = Command::new("node")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reads/peers/server.js"))
            .args([library, &uri, database])
            .env("NODE_PATH", modules)
            .env("NODE_ENV", "production")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("no output")?;
        let line = BufReader::new(output).lines().next_line().await?;
        let port = line.ok_or_else(|| format!("{library} did not start"))?.parse::<u16>()?;
        Ok(Self { address: (Ipv4Addr::LOCALHOST, port).into(), _child: child })
    }
}

/// Node and the libraries, for the report.
pub async fn versions() -> Result<String> {
    let node = Command::new("node").arg("--version").output().await?.stdout;
    let node = String::from_utf8_lossy(&node).trim().to_owned();
    let package: serde_json::Value = serde_json::from_str(include_str!("peers/package.json"))?;
    let libraries = package["dependencies"].as_object().ok_or("a package without dependencies")?;
    let shown = ["fastify", "mongoose", "mongoose-paginate-v2", "mongo-cursor-pagination", "mongodb"];
    let named = shown.iter().filter_map(|name| Some(format!("{name} {}", libraries.get(*name)?.as_str()?)));
    Ok(format!("node {node}, {}", named.collect::<Vec<_>>().join(", ")))
}
