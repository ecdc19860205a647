//! What the items of a stretch of a history add up to, by spans of time and groups.
//!
//! | File | What it knows |
//! |---|---|
//! | `spans.rs` | spans of time: minutes to months, in a time zone |
//! | `exact_sum.rs` | sums of integers and decimals without rounding, and their quotients, rounded once |
//! | `quantity.rs` | a stored number, as it is compared and answered |
//! | `aggregate.rs` | what the items of one span and group add up to |
//! | `partial.rs` | the same of all spans and groups that a stretch of items is in |
//! | `tile.rs` | the same of some full pages, as bytes that are stored |
//! | `points.rs` | a page of points, which is complete in itself |
//!
//! What two stretches add up to can be merged, in any order. So it does not matter whether items are read
//! from pages, or what they add up to was computed before.

mod aggregate;
mod exact_sum;
#[cfg(test)]
mod model_tests;
mod partial;
mod points;
mod quantity;
mod spans;
mod tile;
mod whole_number;

pub use aggregate::{AddedNumbers, Aggregate, Measurements};
pub use partial::{GroupKey, PartialSummary, SummaryShape, group_text};
pub use points::{Fill, PointBounds, PointPage, SummaryPoint, TooManyPoints, page_of_points};
pub use quantity::Quantity;
pub use spans::{SpanLength, Spans, TimeSpan, Zone, within_years};
pub use tile::{TILE_FORMAT, read_tile, tile_shape, write_tile};
