//! Histories of other definitions, by the program.

mod differing;
mod open_items;
mod undefined;
mod uuids;
