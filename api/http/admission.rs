//! Who comes in: whether a request may use its route, what it is counted as, and how long it may take.

pub(crate) mod accept;
pub(crate) mod address;
pub(crate) mod client;
pub(crate) mod clients;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod gate;
pub(crate) mod guard;
pub(crate) mod layer;
pub(crate) mod lifetime;
pub(crate) mod limits;
pub(crate) mod permits;
pub(crate) mod rate;
pub(crate) mod under_way;
pub(crate) mod uploads;
pub(crate) mod watch;
