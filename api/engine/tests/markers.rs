//! Deleted pages: retirement and erasure by the store itself, on two instances of one database.

mod beside;
mod came_late;
mod clocks;
mod damage;
mod erasure;
mod fence;
mod killed;
mod late;
mod retirement;
mod stepped;
mod tiles;

use crate::harness::markers::*;
