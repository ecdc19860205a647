//! HTTP caching: entity tags, `Cache-Control`, and conditional reads (RFC 9110, RFC 9111).

pub(crate) mod control;
pub(crate) mod etag;
pub(crate) mod reading;
