//! Pagination libraries from npm behind Fastify, each in a process of its own (`peers/server.js`).

use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Command;

use crate::harness::{Mongod, Result, Server, output};

/// Where `scripts/npm-packages` has installed them: a `node_modules`. `None`: they are left out.
pub fn installed() -> Option<PathBuf> {
    std::env::var_os("NPM_PEERS").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Serves a database with the library of that name.
pub async fn serve(library: &str, mongod: &Mongod, database: &str) -> Result<Server> {
    let mut node = Command::new("node");
    node.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/reads/peers/server.js"))
        .args([library, &mongod.peer_uri(), database])
        .env("NODE_PATH", installed().ok_or("NPM_PEERS is not set")?)
        .env("NODE_ENV", "production")
        // It ends when this does.
        .stdin(Stdio::piped());
    Server::process(&mut node).await
}

/// Node and the libraries, for the report.
pub fn versions() -> Result<String> {
    let package: serde_json::Value = serde_json::from_str(include_str!("peers/package.json"))?;
    let libraries = package["dependencies"].as_object().ok_or("a package without dependencies")?;
    let shown = ["fastify", "mongoose", "mongoose-paginate-v2", "mongo-cursor-pagination", "mongodb"];
    let named = shown.iter().filter_map(|name| Some(format!("{name} {}", libraries.get(*name)?.as_str()?)));
    Ok(format!(", node {}, {}", output("node", &["--version"]), named.collect::<Vec<_>>().join(", ")))
}
