//! Compresses answers, except those that are marked as [`Whole`].

use axum::http::{Extensions, HeaderMap, StatusCode, Version};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

/// Marks an answer that must not be compressed.
#[derive(Clone, Copy)]
pub struct Whole;

/// The layer.
pub fn layer() -> CompressionLayer<impl Predicate> {
    let not_whole = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        extensions.get::<Whole>().is_none()
    };
    CompressionLayer::new().compress_when(DefaultPredicate::new().and(not_whole))
}
