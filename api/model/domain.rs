//! Owners, pages, sequence numbers, instants and views of web pages. This room does not know HTTP or MongoDB.
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
mod page_path;
mod page_view;
mod read_preference;
mod resolution;
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
pub use page_path::PagePath;
pub use page_view::{
    PageView, Preallocation, parse_preallocation, parse_view_batch, parse_views, parse_views_by_line,
};
pub use read_preference::ReadPreference;
pub use resolution::{Minute, Resolution, SeriesSpan, SpanError};
pub use window::{Cursor, Limit, Order, Position, Span, Wait, Window};
