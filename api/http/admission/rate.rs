//! Rate limits: how much each client may ask the service to do.
//!
//! What a client may use of a [`Class`] is a bucket that holds a burst of *units* and is refilled at the
//! limit. A request takes one unit where it is admitted, before its body is read. Its handler takes the rest
//! when it knows what the request costs, before it does the work ([`ClientQuota::charge`]); what is known
//! only afterwards is owed ([`ClientQuota::owe`]). A request never costs more than the burst, so a full
//! bucket suffices for any. Streams wait instead of being refused ([`ClientQuota::pace`]).
//!
//! A client is a principal, or an address where clients are not authenticated ([`super::client`]). The
//! buckets of each class take bounded memory, however many clients come ([`balances`]).

mod balances;
mod limits;
mod quota;

pub(crate) use limits::Class;
pub use limits::RateLimits;
pub(crate) use quota::{ClientQuota, LEFT, POLICY, of_search};
