//! What clients and this process keep of answers: entity tags, `Cache-Control`, and the page cache.

pub mod control;
pub mod etag;
pub mod pages;
pub mod reading;
pub mod timing;
