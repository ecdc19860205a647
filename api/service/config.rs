//! The settings of a service.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use ipnet::IpNet;
use pagebucket_engine::internal::Retention;
use pagebucket_http::KeptBy;
use pagebucket_server::ServerConfig;

/// The settings of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceConfig {
    /// How it listens.
    pub server: ServerConfig,
    /// What clients may ask for.
    pub api: ApiConfig,
    /// How much is kept of histories, by their names. Of all others everything is.
    pub retained: BTreeMap<Box<str>, Retention>,
    /// Pause before each round of housekeeping.
    pub house_every: Duration,
}

/// What clients of the API may ask for, and how it is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiConfig {
    /// Origins whose pages may call the API: `*`, `localhost`, or origins as a browser sends them.
    pub cors_origins: Vec<String>,
    /// Hosts that requests may name, without ports, addresses of IPv6 in brackets; without any, all hosts,
    /// unless the service listens on a loopback address.
    pub allowed_hosts: Vec<String>,
    /// Whether the explorer is served.
    pub explorer: bool,
    /// Which caches may keep full pages.
    pub kept_by: KeptBy,
    /// Bytes of the cache of full pages; 0 is no cache.
    pub page_cache: u64,
    /// Maximum size of a request body, in bytes.
    pub max_body: usize,
    /// Maximum number of concurrent requests, uploads, live streams and long polls aside.
    pub max_requests: usize,
    /// Maximum number of concurrent uploads.
    pub max_uploads: usize,
    /// Maximum number of concurrent exports.
    pub max_exports: usize,
    /// Maximum number of concurrent live streams and long polls.
    pub max_live: usize,
    /// Maximum number of concurrent long reads.
    pub max_scans: usize,
    /// Time within which the body of a request must arrive.
    pub body_timeout: Duration,
    /// Time after which the server ends a live stream.
    pub live_max_age: Duration,
    /// How much each client may ask for.
    pub rate: Option<Rate>,
    /// Networks of trusted proxies.
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which they write addresses of clients.
    pub forwarded_header: ForwardedHeader,
}

/// Units of work in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub units: NonZeroU32,
    /// A second, a minute or an hour.
    pub per: Duration,
    /// How many at once, after a pause; without it, what the rate allows in 10 s.
    pub burst: Option<NonZeroU32>,
}

/// A header with the addresses of clients of proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`, which nearly all proxies write.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl Default for ServiceConfig {
    fn default() -> Self {
        Self {
            server: ServerConfig::default(),
            api: ApiConfig::default(),
            retained: BTreeMap::new(),
            house_every: Duration::from_secs(60),
        }
    }
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            cors_origins: vec!["localhost".to_owned()],
            allowed_hosts: Vec::new(),
            explorer: true,
            kept_by: KeptBy::Client,
            page_cache: 64 * 1024 * 1024,
            max_body: 1024 * 1024,
            max_requests: 1024,
            max_uploads: 64,
            max_exports: 64,
            max_live: 10_000,
            max_scans: 8,
            body_timeout: Duration::from_secs(10),
            live_max_age: Duration::from_secs(3600),
            rate: None,
            trusted_proxies: Vec::new(),
            forwarded_header: ForwardedHeader::XForwardedFor,
        }
    }
}
