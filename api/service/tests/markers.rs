//! Deleted pages, as clients see them.

mod caches;
mod stale;

use crate::harness::markers::*;
