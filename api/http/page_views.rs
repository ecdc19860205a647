//! Page views: counting them, and reading the counts.
//!
//! Here the name of a page is its `path`. Elsewhere in this API a `page` is a number.

pub mod count;
mod new_views;
mod params;
pub mod preallocate;
pub mod reads;
mod views;
