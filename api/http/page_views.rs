//! Views of pages: counting them, and what was counted.
//!
//! Here the name of a page is its `path`: a `page` is a number elsewhere in this API.

mod body;
pub(super) mod count;
mod new_views;
pub(super) mod preallocate;
pub(super) mod reads;
mod views;
