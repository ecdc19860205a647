//! Views of pages: counting them, and what was counted.
//!
//! Here the name of a page is its `path`: a `page` is a number elsewhere in this API.

pub mod count;
mod new_views;
mod params;
pub mod preallocate;
pub mod reads;
mod views;
