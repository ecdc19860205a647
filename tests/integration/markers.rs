//! Deleted pages, by the program.

mod damage;
mod stopped;
mod tiles;

use crate::harness::markers::*;
