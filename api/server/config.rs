//! How a server listens, and what its connections may do.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::tls::CertificateFiles;

/// How a server listens, and what its connections may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Where it listens; on port 0 it takes a free port.
    pub listen: SocketAddr,
    /// The files of its certificate. Without them it speaks plain text.
    pub certificate: Option<CertificateFiles>,
    /// Maximum number of open connections. Further ones wait to be accepted.
    pub max_connections: usize,
    /// Maximum number of open connections of one address of another machine; 0 is no limit. Further ones are
    /// closed at once.
    pub max_connections_per_address: u32,
    /// Time within which the head of a request must arrive. An idle connection is closed after the same time.
    pub header_timeout: Duration,
    /// Time within which a client must take 64 KiB of an answer, or all that is ready.
    pub write_timeout: Duration,
    /// Time after the signal to stop in which everything is served.
    pub drain_delay: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 8080).into(),
            certificate: None,
            max_connections: 4096,
            max_connections_per_address: 1024,
            header_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            drain_delay: Duration::ZERO,
        }
    }
}
