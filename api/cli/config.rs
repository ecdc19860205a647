//! The flags as typed fields. Their doc comments are `--help`, and each flag has an environment variable.
//! What is below the program takes plain settings, which they fill.

mod auth;
mod choice;
pub(crate) mod environment;
pub(crate) mod file;
pub(crate) mod heading;
mod listen;
mod log_filter;
mod rate;
mod retain;
mod units;

use std::net::{Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{Resettable, TypedValueParser};
use clap::{Args, Command, ValueEnum};
use pagebucket_http::KeptBy;
use pagebucket_model::domain::{Invalid, ReadPreference};
use pagebucket_server::{CertificateFiles, ServerConfig};
use pagebucket_service::{ApiConfig, Rate};

use log_filter::log_filter;

pub use auth::{AuthArgs, AuthMethod, EXPLORER_SCOPES, JWT_TYPES, OpenPart};
pub use choice::{format, read_preference};
pub use listen::listen_address;
pub use rate::RateArgs;
pub use retain::{OfHistory, RetainArgs};

/// The values of these flags where neither a flag nor the environment gives another.
fn defaults<A: Args>() -> A {
    let command = A::augment_args(Command::new("defaults")).no_binary_name(true);
    let command = command.mut_args(|arg| arg.env(Resettable::Reset));
    let parsed = command.try_get_matches_from([""; 0]).and_then(|matches| A::from_arg_matches(&matches));
    parsed.expect("none of these flags is required, and their defaults are values")
}

/// Which histories there are.
#[derive(Args, Debug, Clone)]
pub struct HistoriesArgs {
    /// Directory with a definition (`*.json`) of each history.
    ///
    /// Without it there is one history: trades.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_HISTORIES", value_name = "DIR")]
    pub histories: Option<PathBuf>,
}

/// Where the database is, and which histories it has.
#[derive(Args, Debug, Clone)]
pub struct DatabaseArgs {
    /// Which histories it has.
    #[command(flatten)]
    pub histories: HistoriesArgs,

    /// Connection string of a MongoDB server, version 6.0 or later.
    ///
    /// Without it, or if it is empty, pagebucket starts a private mongod with its data under --data-dir.
    #[arg(long, help_heading = heading::DATABASE, env = "MONGODB_URI", value_name = "URI", hide_env_values = true)]
    pub mongodb_uri: Option<MongodbUri>,

    /// Name of the database.
    #[arg(long, help_heading = heading::DATABASE, env = "PAGEBUCKET_DATABASE", value_name = "NAME", default_value = "pagebucket", value_parser = database_name)]
    pub database: String,

    /// Directory of the private mongod's data and password.
    ///
    /// pagebucket refuses a directory that another user owns or can write to.
    #[arg(long, help_heading = heading::MONGOD, env = "PAGEBUCKET_DATA_DIR", value_name = "DIR", default_value = "./data")]
    pub data_dir: PathBuf,

    /// Program to start as the private mongod.
    ///
    /// Without it: the mongod on the PATH, else the one that scripts/fetch-mongod has fetched.
    #[arg(long, help_heading = heading::MONGOD, env = "MONGOD", value_name = "PROGRAM")]
    pub mongod: Option<PathBuf>,
}

/// What a command that stores items may use of the database and of memory.
#[derive(Args, Debug, Clone)]
pub struct CapacityArgs {
    /// Maximum number of connections to each MongoDB server.
    #[arg(long, help_heading = heading::DATABASE, env = "PAGEBUCKET_POOL_SIZE", value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub pool_size: u32,

    /// Memory of items that wait to be committed.
    ///
    /// A number alone is in MiB.
    /// The same applies, counted separately, to page-view counters. Requests beyond it get 503 at once. One
    /// owner may use a quarter of it, and items of one client, unless a single request needs more. Uploads
    /// wait instead of failing, and use at most half of it. A request whose page views need more counters
    /// than fit into all of it gets 413.
    #[arg(long, help_heading = heading::MEMORY, env = "PAGEBUCKET_MAX_QUEUE_MIB", value_name = "SIZE", default_value = "32MiB", value_parser = units::number_of::<u32>("MiB", 1..=65_536))]
    pub max_queue_mib: u32,

    /// Number of owners of each history whose last page is remembered.
    ///
    /// Each takes less than 256 bytes. It is only a cache.
    #[arg(long, help_heading = heading::MEMORY, env = "PAGEBUCKET_CATALOG_SIZE", value_name = "OWNERS", default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub catalog_size: u32,
}

impl Default for CapacityArgs {
    fn default() -> Self {
        defaults()
    }
}

/// How long idempotency keys and page views are kept.
#[derive(Args, Debug, Clone)]
pub struct RetentionArgs {
    /// Time for which an Idempotency-Key is remembered after its last use.
    ///
    /// A number alone is in hours.
    /// The database stores this setting: the instance that starts last decides for all.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_KEY_RETENTION", value_name = "TIME", default_value = "24h", value_parser = units::number_of::<u64>("h", 1..=87_600).map(|hours| Duration::from_secs(hours * 3600)))]
    pub key_retention: Duration,

    /// Time for which page views are kept after their minute; 0: always.
    ///
    /// Whole days; a number alone is in days.
    /// The database stores this setting: the instance that starts last decides for all.
    // clap takes a plain `Option` for a flag without a default. A TTL index takes at most 2^31 - 1 seconds:
    // 24,855 days and some hours.
    #[arg(long, help_heading = heading::HISTORIES, env = "PAGEBUCKET_VIEW_RETENTION", value_name = "TIME", default_value = "0", value_parser = units::number_of::<u64>("d", 0..=24_855).map(|days| (days > 0).then(|| Duration::from_secs(days * 86_400))))]
    pub view_retention: std::option::Option<Duration>,
}

/// Which members of a replica set serve reads.
#[derive(Args, Debug, Clone)]
pub struct ReadArgs {
    /// Which member of a replica set serves full pages and page views.
    ///
    /// It also serves exports. Full pages never change, so the choice only moves load; page views may be
    /// slightly older. All other reads go to the primary.
    #[arg(long, help_heading = heading::DATABASE, env = "PAGEBUCKET_READ_PREFERENCE", value_name = "MODE", default_value = "primary", value_parser = read_preference())]
    pub read_preference: ReadPreference,
}

/// A connection string. It may hold a password, so it is never shown; the store knows which parts may be.
///
/// Any text is one: an error of clap would repeat it, with its password. The store reports what is wrong with
/// it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::From)]
#[debug("MongodbUri(..)")]
pub struct MongodbUri(String);

impl MongodbUri {
    /// The whole string, for the driver alone.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// How a server listens, and what it serves.
#[derive(Args, Debug, Clone)]
pub struct ServerArgs {
    /// Address to listen on, or a port of 127.0.0.1 alone.
    ///
    /// Port 0 takes a free port. The server prints its address.
    #[arg(long, help_heading = heading::ADDRESS, env = "PAGEBUCKET_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    #[arg(value_parser = listen_address)]
    pub listen: SocketAddr,

    /// TLS, or plain text.
    #[command(flatten)]
    pub tls: TlsArgs,

    /// What clients may ask for.
    #[command(flatten)]
    pub api: ApiArgs,

    /// Maximum number of open connections. Further ones wait to be accepted.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_CONNECTIONS", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,

    /// Maximum number of open connections of one address; 0 is no limit.
    ///
    /// An address is one of IPv4, or a network of IPv6 (/64). Further connections are closed at once.
    /// Connections from this machine do not count. Behind a proxy all connections are the proxy's.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub max_connections_per_address: u32,

    /// Time within which the head of a request must arrive.
    ///
    /// A number alone is in seconds.
    /// A TLS handshake has the same time, at most 10. An idle connection is closed after the same time.
    #[arg(long, help_heading = heading::TIMES, env = "PAGEBUCKET_HEADER_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = units::number_of::<u64>("s", 1..=300))]
    pub header_timeout: u64,

    /// Time within which a client must take 64 KiB of an answer.
    ///
    /// A number alone is in seconds.
    /// Or all that is ready. The server disconnects slower clients. An export has no other time limit.
    #[arg(long, help_heading = heading::TIMES, env = "PAGEBUCKET_WRITE_TIMEOUT", value_name = "TIME", default_value = "60s", value_parser = units::number_of::<u64>("s", 1..=3600))]
    pub write_timeout: u64,

    /// What is kept of each history.
    #[command(flatten)]
    pub retain: RetainArgs,

    /// Time after the signal to stop in which everything is served.
    ///
    /// A number alone is in seconds.
    /// Only /readyz is 503 then, so that load balancers send requests elsewhere. After it no connection
    /// is accepted, and running requests may end.
    #[arg(long, help_heading = heading::TIMES, env = "PAGEBUCKET_DRAIN_DELAY", value_name = "TIME", default_value = "0s", value_parser = units::number_of::<u64>("s", 0..=30))]
    pub drain_delay: u64,
}

impl From<&ServerArgs> for ServerConfig {
    fn from(args: &ServerArgs) -> Self {
        let TlsArgs { tls_cert, tls_key } = args.tls.clone();
        Self {
            listen: args.listen,
            certificate: tls_cert
                .zip(tls_key)
                .map(|(certificate, key)| CertificateFiles { certificate, key }),
            max_connections: args.max_connections as usize,
            max_connections_per_address: args.max_connections_per_address,
            header_timeout: Duration::from_secs(args.header_timeout),
            write_timeout: Duration::from_secs(args.write_timeout),
            drain_delay: Duration::from_secs(args.drain_delay),
        }
    }
}

/// What clients of the API may ask for, and how it is answered.
#[derive(Args, Debug, Clone)]
pub struct ApiArgs {
    /// Origins whose pages may call the API, comma-separated.
    ///
    /// Such as `http://app.example`; `*` allows any, `localhost` any port of this machine.
    #[arg(long, help_heading = heading::ADDRESS, env = "PAGEBUCKET_CORS_ORIGINS", value_name = "ORIGINS", default_value = "localhost")]
    #[arg(value_delimiter = ',', value_parser = cors_origin)]
    pub cors_origins: Vec<String>,

    /// Hosts that requests may name, comma-separated, without ports.
    ///
    /// Such as `api.example`. `localhost`, `127.0.0.1` and `[::1]` may always be named. Requests for other
    /// hosts get 421. Without it every host is allowed, unless --listen is a loopback address.
    #[arg(long, help_heading = heading::ADDRESS, env = "PAGEBUCKET_ALLOWED_HOSTS", value_name = "HOSTS")]
    #[arg(value_delimiter = ',', value_parser = allowed_host)]
    pub allowed_hosts: Vec<String>,

    /// Leave out the explorer.
    ///
    /// Then `/` is a page with links, and there are no pages below `/explorer`.
    #[arg(long, help_heading = heading::EXPLORER, env = "PAGEBUCKET_NO_EXPLORER", value_parser = clap::builder::FalseyValueParser::new())]
    pub no_explorer: bool,

    /// Maximum number of concurrent requests.
    ///
    /// Uploads, live streams and long polls do not count. One client may have a quarter of them. Further
    /// requests get 503 at once.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_REQUESTS", value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests: u32,

    /// Maximum size of a request body.
    ///
    /// A number alone is in bytes.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_BODY", value_name = "SIZE", default_value = "1MiB", value_parser = units::number_of::<u32>("B", 1..=u32::MAX.into()))]
    pub max_body: u32,

    /// Memory for the cache of full pages; 0 turns the cache off.
    ///
    /// A number alone is in bytes.
    #[arg(long, help_heading = heading::MEMORY, env = "PAGEBUCKET_PAGE_CACHE", value_name = "SIZE", default_value = "64MiB", value_parser = units::number_of::<u64>("B", 0..=1 << 50))]
    pub page_cache: u64,

    /// Allow shared caches to keep full pages (`Cache-Control: public`).
    ///
    /// Without it only the client may (`private`).
    #[arg(long, help_heading = heading::MEMORY, env = "PAGEBUCKET_CACHE_PUBLIC", value_parser = clap::builder::FalseyValueParser::new())]
    pub cache_public: bool,

    /// Time within which the body of a request must arrive, at most 15 s.
    ///
    /// A number alone is in seconds.
    /// The same time applies to the next item or KiB of an upload, and to an uploading client that must
    /// take the next piece of its outcomes.
    #[arg(long, help_heading = heading::TIMES, env = "PAGEBUCKET_BODY_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = units::number_of::<u64>("s", 1..=20))]
    pub body_timeout: u64,

    /// Time after which the server ends a live stream.
    ///
    /// A number alone is in seconds.
    /// Its client resumes it where it ended.
    #[arg(long, help_heading = heading::TIMES, env = "PAGEBUCKET_LIVE_MAX_AGE", value_name = "TIME", default_value = "1h", value_parser = units::number_of::<u64>("s", 1..=86_400))]
    pub live_max_age: u64,

    /// Maximum number of concurrent uploads.
    ///
    /// Each takes about half a megabyte, and all together 24 MiB more. One client may have a quarter of
    /// them. Further uploads get 503 at once.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_UPLOADS", value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_uploads: u32,

    /// Maximum number of concurrent exports.
    ///
    /// Each takes about a megabyte, or up to 12 MB of pages and their rows where items are large. One
    /// client may have a quarter of them. Further exports get 503 at once.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_EXPORTS", value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_exports: u32,

    /// Maximum number of concurrent live streams and long polls.
    ///
    /// One client may have a quarter of them. Further ones get 503 at once. Each needs a connection, or
    /// with HTTP/2 a stream of one: see --max-connections and --max-connections-per-address.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_LIVE", value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_live: u32,

    /// Maximum number of concurrent long reads.
    ///
    /// These are lists of the most viewed pages, series of page views of more than 10,000 minutes, and
    /// summaries that may read more than 100 pages. Each uses one of --pool-size connections for up to 30
    /// s. One client may have a quarter of them. Further ones get 503 at once.
    #[arg(long, help_heading = heading::LIMITS, env = "PAGEBUCKET_MAX_SCANS", value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_scans: u32,

    /// How much each client may ask for.
    #[command(flatten)]
    pub rate: RateArgs,
}

impl From<&ApiArgs> for ApiConfig {
    fn from(args: &ApiArgs) -> Self {
        let RateArgs { rate_limit, rate_burst, trusted_proxies, forwarded_header } = args.rate.clone();
        let burst = rate_burst.and_then(NonZeroU32::new);
        Self {
            cors_origins: args.cors_origins.clone(),
            allowed_hosts: args.allowed_hosts.clone(),
            explorer: !args.no_explorer,
            kept_by: if args.cache_public { KeptBy::Anybody } else { KeptBy::Client },
            page_cache: args.page_cache,
            max_body: args.max_body as usize,
            max_requests: args.max_requests as usize,
            max_uploads: args.max_uploads as usize,
            max_exports: args.max_exports as usize,
            max_live: args.max_live as usize,
            max_scans: args.max_scans as usize,
            body_timeout: Duration::from_secs(args.body_timeout),
            live_max_age: Duration::from_secs(args.live_max_age),
            rate: rate_limit.map(|rate| Rate { burst, ..rate }),
            trusted_proxies,
            forwarded_header,
        }
    }
}

/// The certificate of the server. With it every connection has to speak TLS.
#[derive(Args, Debug, Clone, Default)]
pub struct TlsArgs {
    /// Certificate of the server in PEM.
    ///
    /// After it in the file come the certificates between it and its root. The server then speaks TLS 1.2
    /// and 1.3 alone. It reads this file and --tls-key again when they change.
    #[arg(long, help_heading = heading::ADDRESS, env = "PAGEBUCKET_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// Private key of --tls-cert in PEM, unencrypted.
    ///
    /// PKCS #8, PKCS #1 or SEC 1.
    #[arg(long, help_heading = heading::ADDRESS, env = "PAGEBUCKET_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
}

/// `*`, `localhost`, or an origin as a browser sends it: scheme, host, and the port unless it is the scheme's
/// own.
fn cors_origin(text: &str) -> Result<String, Invalid> {
    let origin = text.trim();
    let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    let is_host = |host: &str| !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    if ["*", "localhost"].contains(&origin) || host.is_some_and(is_host) {
        return Ok(origin.to_owned());
    }
    Err(Invalid::new("must be *, localhost, or an origin such as https://app.example, without a path"))
}

/// Parses a host that requests may name, as they write it: a name, an IPv4 address, or an IPv6 address in
/// brackets.
///
/// # Errors
/// The text is no such host.
fn allowed_host(text: &str) -> Result<String, Invalid> {
    let text = text.trim();
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = address.parse::<Ipv6Addr>() {
        return Ok(format!("[{address}]"));
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_in_label = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.len() <= 253 && name.split('.').all(|label| !label.is_empty() && label.bytes().all(is_in_label)) {
        return Ok(name.to_owned());
    }
    Err(Invalid::new(
        "must be a host such as api.example, 192.0.2.1 or [2001:db8::1], without a scheme, a port, a path or a wildcard",
    ))
}

/// How the log is written, to standard error.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line per event.
    Pretty,
    /// One JSON object per event.
    Json,
}

/// The log.
#[derive(Args, Debug, Clone)]
pub struct LogArgs {
    /// Format of the log.
    #[arg(long, help_heading = heading::LOG, env = "PAGEBUCKET_LOG_FORMAT", value_name = "FORMAT")]
    #[arg(default_value = "pretty", global = true)]
    pub log_format: LogFormat,

    /// What is logged: a level, or a filter.
    ///
    /// Such as `info,pagebucket_engine=debug`. Erasures are always logged.
    #[arg(long, help_heading = heading::LOG, env = "PAGEBUCKET_LOG", value_name = "FILTER", default_value = "info", global = true, value_parser = log_filter)]
    pub log: String,
}

/// Characters that MongoDB forbids in a database's name (manual, "Naming Restrictions"), and its
/// own databases.
fn database_name(name: &str) -> Result<String, Invalid> {
    let forbidden = |c: char| c.is_control() || "/\\. \"$*<>:|?".contains(c);
    if name.is_empty() || name.len() > 63 || name.contains(forbidden) {
        return Err(Invalid::new("must be 1 to 63 bytes without any of / \\ . \" $ * < > : | ? or a space"));
    }
    if ["admin", "local", "config"].contains(&name) {
        return Err(Invalid::new("must not be one of MongoDB's own databases: admin, local, config"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use pagebucket_model::definition::Definitions;
    use pagebucket_service::ServiceConfig;

    use super::*;

    #[test]
    fn a_uri_is_not_shown() {
        let uri = MongodbUri::from("mongodb://user:sesame@h".to_owned());
        assert_eq!(
            (format!("{uri:?}").as_str(), uri.expose()),
            ("MongodbUri(..)", "mongodb://user:sesame@h")
        );
    }

    #[test]
    fn no_days_are_without_limit() {
        #[derive(clap::Parser)]
        struct RetentionFlags {
            #[command(flatten)]
            retention: RetentionArgs,
        }
        let retention = |days: &str| {
            let flags = <RetentionFlags as clap::Parser>::try_parse_from(["test", "--view-retention", days]);
            flags.map(|flags| flags.retention.view_retention).map_err(|error| error.to_string())
        };
        assert_eq!(retention("0"), Ok(None));
        assert_eq!(retention("2"), Ok(Some(Duration::from_secs(2 * 86_400))));
        assert!(retention("24856").is_err());
    }

    /// What tests and benchmarks start is what users get.
    #[test]
    fn without_flags_settings_are_the_defaults() {
        let args: ServerArgs = defaults();
        assert_eq!(ServerConfig::from(&args), ServerConfig::default());
        assert_eq!(ApiConfig::from(&args.api), ApiConfig::default());
        assert_eq!(args.retain.retained(&Definitions::built_in()), Ok(ServiceConfig::default().retained));
    }

    #[test]
    fn origins_are_origins() {
        for origin in ["*", "localhost", "https://app.example"] {
            assert_eq!(cors_origin(origin), Ok(origin.to_owned()));
        }
        assert!(cors_origin("https://app.example/").is_err());
        assert!(cors_origin("app.example").is_err());
    }

    #[test]
    fn hosts_are_hosts() {
        for (text, host) in [
            ("api.example", "api.example"),
            (" API.example. ", "API.example"),
            ("my_service-1", "my_service-1"),
            ("192.0.2.1", "192.0.2.1"),
            ("::1", "[::1]"),
            ("[2001:DB8:0::1]", "[2001:db8::1]"),
        ] {
            assert_eq!(allowed_host(text), Ok(host.to_owned()), "{text}");
        }
        let long = "a".repeat(254);
        for text in [
            "",
            ".",
            "*",
            "*.example",
            "http://a",
            "a:80",
            "a/b",
            "a..b",
            "[a]",
            "[::1]:80",
            "a b",
            "ä",
            &long,
        ] {
            assert!(allowed_host(text).is_err(), "{text}");
        }
    }
}
