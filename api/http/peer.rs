//! The client's end of a connection.

use std::net::IpAddr;

/// The address of the other end of the connection: of the client, or of the proxy before it. Every request has it as an
/// extension. An IPv4 address is always one, also on a listener of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// The peer at this address.
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }
}
