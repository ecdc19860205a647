//! Owners, pages, sequence numbers and instants. This room does not know HTTP or MongoDB.
//!
//! A value of these types is parsed once, at the edge, and is valid afterwards: fields whose values are
//! restricted are private, and only constructors that check can set them.

mod access;
mod clock;
mod fault;
mod idempotency_key;
mod instant;
mod json;
mod number;
mod owner;
mod page;
mod peer;
mod read_preference;
mod window;

pub use access::{AllowedOwners, Principal, Scope, Scopes};
pub use clock::Clock;
pub use fault::{BrokenRule, DraftError, Fault, Faults, Invalid, many, one_or_many};
pub use idempotency_key::IdempotencyKey;
pub use instant::{DateRange, Instant};
pub use json::{Json, Member, NotJson};
pub use number::MAX_SAFE_INTEGER;
pub use owner::{OwnerId, OwnerMember, OwnerType, UUID_RULE, is_uuid};
pub use page::{PageNumber, PageSize, Seq, SeqRange, Totals};
pub use peer::Peer;
pub use read_preference::ReadPreference;
pub use window::{Cursor, Limit, Order, Position, Span, Wait, Window};
