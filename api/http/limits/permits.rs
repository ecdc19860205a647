//! Limits on the number of requests of one kind that are under way at once. One client has at most a quarter of the permits, so
//! that it keeps no others out.

use std::collections::HashMap;
use std::sync::Arc;

use hashlink::DefaultHashBuilder;
use parking_lot::Mutex;

use crate::client::Client;
use crate::problem::{Problem, ProblemKind};

/// Into how many shares the permits are divided. One client has at most one of them.
const SHARES: usize = 4;

/// The permits for requests of one kind. Clones share them.
#[derive(Debug, Clone)]
pub struct Permits(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// How many there are.
    most: usize,
    /// How many of them one client may take.
    most_of_one: usize,
    /// What takes the permits, in the plural.
    what: &'static str,
    taken: Mutex<Taken>,
}

/// The permits that are taken.
#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// By each client that has any. There are few at once, so the hash need not withstand chosen names, only be fast.
    of: HashMap<Client, usize, DefaultHashBuilder>,
}

/// One permit, taken until it is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    client: Client,
}

/// The permit of a request whose answer outlives its handler.
pub type LongPermit = Arc<Permit>;

impl Permits {
    /// `most` permits for `what`, in the plural. One client may take a quarter of them, and at least one.
    pub fn new(most: usize, what: &'static str) -> Self {
        let most_of_one = (most / SHARES).max(1);
        Self(Arc::new(Shared { most, most_of_one, what, taken: Mutex::default() }))
    }

    /// Takes a permit for a client.
    ///
    /// # Errors
    /// All permits are taken, or the client has as many as it may have.
    pub fn take(&self, client: Client) -> Result<Permit, Problem> {
        let Shared { most, most_of_one, what, taken } = &*self.0;
        let refused = |detail: String| Err(Problem::new(ProblemKind::Overloaded, detail));
        let mut taken = taken.lock();
        if taken.all == *most {
            return refused(format!("Too many {what} are under way."));
        }
        let of_client = taken.of.entry(client.clone()).or_default();
        if of_client == most_of_one {
            return refused(format!(
                "Too many {what} of this client are under way: it may have {most_of_one} at once."
            ));
        }
        *of_client += 1;
        taken.all += 1;
        Ok(Permit { permits: self.clone(), client })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.0.taken.lock();
        taken.all -= 1;
        if let Some(of_client) = taken.of.get_mut(&self.client) {
            *of_client -= 1;
            if *of_client == 0 {
                taken.of.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> Client {
        Client::Name(name.into())
    }

    fn refusal(permits: &Permits, name: &str) -> String {
        let problem = permits.take(client(name)).unwrap_err().in_line();
        assert_eq!((&problem["status"], &problem["type"]), (&503.into(), &"/problems#overloaded".into()));
        problem["detail"].as_str().unwrap().to_owned()
    }

    #[test]
    fn one_client_has_a_quarter() {
        let permits = Permits::new(11, "visits");
        let take = |name: &str| permits.take(client(name));
        let of_ann = [take("ann").unwrap(), take("ann").unwrap()];
        let too_many = "Too many visits of this client are under way: it may have 2 at once.";
        assert_eq!(refusal(&permits, "ann"), too_many);
        let of_bob = take("bob").unwrap();
        // The name of a principal is no address.
        let address = Client::Address("192.0.2.1".parse().unwrap());
        let others = [permits.take(address).unwrap(), take("192.0.2.1").unwrap(), take("bob").unwrap()];
        drop((of_ann, of_bob));
        let again = [take("ann").unwrap(), take("ann").unwrap(), take("bob").unwrap()];
        assert_eq!((refusal(&permits, "ann"), refusal(&permits, "bob")), (too_many.into(), too_many.into()));
        drop((others, again));
        let taken = permits.0.taken.lock();
        assert!(taken.all == 0 && taken.of.is_empty(), "only clients with permits take memory: {taken:?}");
    }

    #[test]
    fn few_permits_are_one_for_each_client() {
        let permits = Permits::new(2, "visits");
        let taken = [permits.take(client("ann")).unwrap(), permits.take(client("bob")).unwrap()];
        assert_eq!(refusal(&permits, "ann"), "Too many visits are under way.");
        drop(taken);
        let _of_ann = permits.take(client("ann")).unwrap();
        assert!(refusal(&permits, "ann").contains("it may have 1 at once"));
    }
}
