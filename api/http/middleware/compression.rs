//! Compresses answers, except those that are marked as [`Whole`].

use axum::http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode, Version, header};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate};

/// Marks an answer that must not be compressed.
#[derive(Clone, Copy)]
pub struct Whole;

/// The `Content-Range` of an answer. The layer compresses no answer that already has this header, and takes
/// `Accept-Ranges` away from those that it compresses. Our unit is not bytes, so both are added afterwards.
#[derive(Clone)]
pub struct ContentRange(pub HeaderValue);

/// Adds `Content-Range` and `Accept-Ranges` after compression.
pub fn add_ranges<B>(response: &mut Response<B>) {
    if let Some(ContentRange(range)) = response.extensions_mut().remove() {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_RANGE, range);
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("items"));
    }
}

/// The layer.
pub fn layer() -> CompressionLayer<impl Predicate> {
    let not_whole = |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| {
        extensions.get::<Whole>().is_none()
    };
    CompressionLayer::new().compress_when(DefaultPredicate::new().and(not_whole))
}
