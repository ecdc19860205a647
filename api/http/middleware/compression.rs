//! Compresses answers, except those that are marked as [`Whole`].

use axum::http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

/// Marks an answer that must not be compressed.
#[derive(Clone, Copy)]
pub struct Whole;

/// The `Content-Range` of an answer. The layer compresses no answer that already has this header; ours are compressed
/// like any other, because their unit is not bytes.
#[derive(Clone)]
pub struct ContentRange(pub HeaderValue);

/// Adds the `Content-Range` after compression.
pub fn add_content_range<B>(response: &mut Response<B>) {
    if let Some(ContentRange(range)) = response.extensions_mut().remove() {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
}

/// The layer.
pub fn layer() -> CompressionLayer<impl Predicate> {
    let not_whole = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        extensions.get::<Whole>().is_none()
    };
    CompressionLayer::new().compress_when(DefaultPredicate::new().and(not_whole))
}
