//! Headings of flags in `--help`. Flags of one command alone have none.

pub(crate) const HISTORIES: &str = "Histories and retention";
pub(crate) const DATABASE: &str = "Database";
pub(crate) const MONGOD: &str = "Private mongod";
pub(crate) const ADDRESS: &str = "Address, TLS and hosts";
pub(crate) const LIMITS: &str = "Limits";
pub(crate) const TIMES: &str = "Times";
pub(crate) const MEMORY: &str = "Memory and caches";
pub(crate) const AUTHENTICATION: &str = "Authentication";
pub(crate) const EXPLORER: &str = "Explorer";
pub(crate) const RATES: &str = "Rate limits and proxies";
pub(crate) const FILE: &str = "File of settings";
pub(crate) const LOG: &str = "Log";
