//! Page views: counting them, and reading the counts.
//!
//! Here the name of a page is its `path`. Elsewhere in this API a `page` is a number.

mod params;
pub(crate) mod reads;
pub(crate) mod writes;
