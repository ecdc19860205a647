//! Views of pages, by the program.

mod preallocation;
