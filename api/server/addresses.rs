//! How many connections each address has.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::Arc;

use pagebucket_model::domain::Peer;
use parking_lot::Mutex;

/// The number of connections of each address that has any.
#[derive(Debug)]
pub(crate) struct ConnectionCounts {
    /// 0 is no limit.
    limit: u32,
    open: Mutex<HashMap<IpAddr, u32>>,
}

/// A connection that counts until this is dropped, unless its address is of this machine.
#[derive(Debug)]
pub(crate) struct CountedConnection(Option<(Arc<ConnectionCounts>, IpAddr)>);

impl ConnectionCounts {
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self { limit, open: Mutex::default() })
    }

    /// Counts a connection of this address. Nothing when the address has too many.
    pub(crate) fn count(self: &Arc<Self>, address: IpAddr) -> Option<CountedConnection> {
        if self.limit == 0 || address.is_loopback() {
            return Some(CountedConnection(None));
        }
        let network = Peer(address).network();
        let mut open = self.open.lock();
        let connections = open.entry(network).or_default();
        if *connections == self.limit {
            return None;
        }
        *connections += 1;
        drop(open);
        Some(CountedConnection(Some((Arc::clone(self), network))))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let Some((addresses, network)) = &self.0 else { return };
        if let Entry::Occupied(mut connections) = addresses.open.lock().entry(*network) {
            *connections.get_mut() -= 1;
            if *connections.get() == 0 {
                connections.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_network_has_its_own_connections() {
        let addresses = ConnectionCounts::new(2);
        let count = |address: &str| addresses.count(address.parse().unwrap());
        let first = [count("192.0.2.1"), count("192.0.2.1")];
        assert!(first.iter().all(Option::is_some) && count("192.0.2.1").is_none());
        assert!(count("192.0.2.2").is_some());
        let second = [count("2001:db8::1"), count("2001:db8::2:1")];
        assert!(second.iter().all(Option::is_some) && count("2001:db8::3").is_none());
        assert!(count("2001:db8:0:1::1").is_some());
        let own: Vec<_> = (0..3).flat_map(|_| [count("127.0.0.1"), count("::1")]).collect();
        assert!(own.iter().all(Option::is_some));
        drop(first);
        assert!(count("192.0.2.1").is_some());
        drop(second);
        assert!(addresses.open.lock().is_empty(), "only addresses with connections take memory");
    }

    #[test]
    fn zero_is_no_limit() {
        let addresses = ConnectionCounts::new(0);
        let open: Vec<_> = (0..10).map(|_| addresses.count("192.0.2.1".parse().unwrap())).collect();
        assert!(open.iter().all(Option::is_some));
    }
}
