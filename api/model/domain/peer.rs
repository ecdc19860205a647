//! The other end of a connection.

use std::net::{IpAddr, Ipv6Addr};

/// The address of the other end of the connection: of the client, or of the proxy before it. An IPv4 address
/// is always one, also on a listener of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer(pub IpAddr);

impl Peer {
    /// The peer at this address.
    pub fn new(address: IpAddr) -> Self {
        Self(address.to_canonical())
    }

    /// What counts as one client: an address of IPv4, or a network of IPv6 (/64), because one client commonly
    /// has all of its addresses.
    pub fn network(self) -> IpAddr {
        match self.0 {
            IpAddr::V4(_) => self.0,
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        }
    }
}
