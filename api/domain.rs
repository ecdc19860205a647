//! Trades, customers, pages, sequence numbers and views of web pages. This room does not know HTTP or MongoDB.
//!
//! A value of these types is parsed once, at the edge, and is valid afterwards: fields whose values are
//! restricted are private, and only constructors that check can set them.

mod clock;
mod customer;
mod dates;
mod draft;
mod fault;
mod instant;
mod json;
mod key;
mod minute;
mod number;
mod page;
mod page_path;
mod page_view;
mod price;
mod resolution;
mod shape;
mod trade;
mod window;

pub use clock::Clock;
pub use customer::CustomerId;
pub use dates::DateRange;
pub use draft::{TradeDraft, parse_draft, parse_drafts, parse_line};
pub use fault::{Fault, Faults, Invalid};
pub use instant::Instant;
pub use json::{Json, Member, NotJson};
pub use key::IdempotencyKey;
pub use minute::Minute;
pub use number::MAX_SAFE_INTEGER;
pub use page::{PAGE_SIZE, PageNumber, Seq, SeqRange, Totals};
pub use page_path::PagePath;
pub use page_view::{PageView, Preallocation, parse_preallocation, parse_views, parse_views_by_line};
pub use price::Price;
pub use resolution::{Resolution, SeriesSpan, SpanError};
pub use shape::DraftError;
pub use trade::{Quantity, Side, Ticker, Trade};
pub use window::{Cursor, Limit, Order, Position, Span, Window};
