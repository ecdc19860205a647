//! Caching in clients and in this process: entity tags, `Cache-Control`, and the page cache.

pub mod control;
pub mod etag;
pub mod pages;
pub mod reading;
