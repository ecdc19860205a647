//! Who is counted, for rate limits ([`super::rate`]) and permits ([`super::permits`]): a principal, or an
//! address.

mod forwarded;

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use pagebucket_model::domain::{Peer, Principal};

/// A client, as it is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Client {
    /// An address of IPv4, or a network of IPv6: see [`Peer::network`].
    Address(IpAddr),
    /// A principal's name.
    Name(Arc<str>),
}

/// The proxies before the server, whose header is believed.
#[derive(Debug, Clone)]
pub struct Proxies {
    /// Their networks.
    networks: Vec<IpNet>,
    /// The header that they write: `Forwarded` or `X-Forwarded-For`. The other one may be the client's, and
    /// is not read.
    header: HeaderName,
}

impl Client {
    /// The client of a request with these headers, which came from this peer: its principal if it has one,
    /// otherwise its address.
    pub fn of(principal: Option<&Principal>, peer: Peer, headers: &HeaderMap, proxies: &Proxies) -> Self {
        match principal {
            Some(principal) => Self::Name(Arc::clone(&principal.name)),
            None => Self::at(peer, headers, proxies),
        }
    }

    /// The address of the client of a request with these headers, which came from this peer.
    pub fn at(peer: Peer, headers: &HeaderMap, proxies: &Proxies) -> Self {
        Self::Address(proxies.address(peer, headers))
    }
}

impl Proxies {
    /// The proxies in these networks, which write this header.
    pub fn new(networks: Vec<IpNet>, header: HeaderName) -> Self {
        Self { networks, header }
    }

    /// No proxies: every peer is a client.
    pub fn none() -> Self {
        Self::new(Vec::new(), forwarded::X_FORWARDED_FOR)
    }

    /// The address that counts for a request with these headers, which came from this peer.
    pub fn address(&self, Peer(peer): Peer, headers: &HeaderMap) -> IpAddr {
        Peer(self.client(peer, headers)).network()
    }

    /// The first address on the way back from the server that is no trusted proxy's; the last one that is
    /// known, if the way ends before.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        if !self.trust(client) {
            return client;
        }
        for address in forwarded::addresses(headers, &self.header) {
            let Some(address) = address else { break };
            client = address;
            if !self.trust(client) {
                break;
            }
        }
        client
    }

    fn trust(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::http::header::FORWARDED;

    use super::*;
    use pagebucket_model::domain::Scopes;

    /// 10.0.0.0/8 and 2001:db8:1::/48.
    fn networks() -> Vec<IpNet> {
        vec!["10.1.2.3/8".parse().unwrap(), "2001:db8:1::/48".parse().unwrap()]
    }

    /// They write `X-Forwarded-For`.
    fn proxies() -> Proxies {
        Proxies::new(networks(), forwarded::X_FORWARDED_FOR)
    }

    fn client_behind(proxies: &Proxies, peer: &str, headers: &[(&str, &str)]) -> String {
        let header = |(name, value): &(&str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        let headers: HeaderMap = headers.iter().map(header).collect();
        match Client::at(Peer::new(peer.parse().unwrap()), &headers, proxies) {
            Client::Address(address) => address.to_string(),
            Client::Name(name) => panic!("{name}"),
        }
    }

    fn client(peer: &str, headers: &[(&str, &str)]) -> String {
        client_behind(&proxies(), peer, headers)
    }

    #[test]
    fn the_first_address_that_is_no_proxys_counts() {
        let via = |peer, list: &'static str| client(peer, &[("x-forwarded-for", list)]);
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(via("10.0.0.1", "192.0.2.1"), "192.0.2.1");
        assert_eq!(via("::ffff:10.0.0.1", "192.0.2.1"), "192.0.2.1");
        assert_eq!(via("2001:db8:1:2::3", "192.0.2.1, 10.9.9.9"), "192.0.2.1");
        // What a client sends itself stands on the left.
        assert_eq!(via("10.0.0.1", "198.51.100.7, 192.0.2.1"), "192.0.2.1");
        assert_eq!(via("10.0.0.1", "nonsense, \"\", 192.0.2.1, 10.0.0.2"), "192.0.2.1");
        assert_eq!(via("10.0.0.1", "10.0.0.3, 10.0.0.2"), "10.0.0.3");
    }

    #[test]
    fn the_way_ends_at_what_is_no_address() {
        let via = |list: &'static str| client("10.0.0.1", &[("x-forwarded-for", list)]);
        assert_eq!(via("192.0.2.1, unknown"), "10.0.0.1");
        assert_eq!(via("192.0.2.1, unknown, 10.0.0.2"), "10.0.0.2");
        assert_eq!(via(""), "10.0.0.1");
    }

    #[test]
    fn untrusted_peers_are_not_believed() {
        let headers = [("forwarded", "for=192.0.2.1"), ("x-forwarded-for", "192.0.2.1")];
        assert_eq!(client("11.0.0.1", &headers), "11.0.0.1");
        assert_eq!(client("2001:db8:2::1", &headers), "2001:db8:2::");
    }

    #[test]
    fn the_header_that_the_proxies_do_not_write_is_not_read() {
        let headers = [("x-forwarded-for", "192.0.2.1"), ("forwarded", "for=192.0.2.2")];
        assert_eq!(client("10.0.0.1", &headers), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &headers[1..]), "10.0.0.1");
        let proxies = Proxies::new(networks(), FORWARDED);
        assert_eq!(client_behind(&proxies, "10.0.0.1", &headers), "192.0.2.2");
        assert_eq!(client_behind(&proxies, "10.0.0.1", &headers[..1]), "10.0.0.1");
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        assert_eq!(client("2001:db8:2:3:4:5:6:7", &[]), "2001:db8:2:3::");
        assert_eq!(client("2001:db8:2:3::9", &[]), "2001:db8:2:3::");
        assert_eq!(client("2001:db8:2:4::9", &[]), "2001:db8:2:4::");
    }

    #[test]
    fn a_principal_is_one_client_from_everywhere() {
        let named = |peer: &str| {
            let (scopes, owners) = (Scopes::default(), BTreeMap::new());
            let ann = Principal { name: "ann".into(), scopes, owners, expires: None };
            Client::of(Some(&ann), Peer::new(peer.parse().unwrap()), &HeaderMap::new(), &proxies())
        };
        assert_eq!(named("192.0.2.1"), Client::Name("ann".into()));
        assert_eq!(named("192.0.2.1"), named("192.0.2.2"));
    }
}
