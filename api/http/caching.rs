//! HTTP caching: entity tags, `Cache-Control`, and conditional reads (RFC 9110, RFC 9111).

pub mod control;
pub mod etag;
pub mod reading;
