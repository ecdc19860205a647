//! The explorer: one page that shows histories, with its scripts and styles. `make web` builds them from the
//! sources in `/web`.
//!
//! The page is the same at each of its addresses, which its script reads. It leads to everything else by
//! relative addresses, so that it also works behind a proxy that serves it below a path of its own.

use std::sync::{Arc, LazyLock};

use super::file::{CSS, File, JAVASCRIPT, PLAIN_TEXT};

const PAGE: &str = include_str!("../web/dist/index.html");

/// What the page loads: paths that change with the content, and the content, compressed by the build
/// (`build.rs`).
const LOADED: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/assets.in"));

/// The addresses of the page, as people type them. No route of a history begins like them.
const ADDRESSES: [&str; 10] = [
    "/",
    "/explorer",
    "/explorer/",
    "/explorer/{owners}",
    "/explorer/{owners}/",
    "/explorer/{owners}/{owner}",
    "/explorer/{owners}/{owner}/",
    "/explorer/{owners}/{owner}/{items}",
    "/explorer/{owners}/{owner}/{items}/",
    "/explorer/{owners}/{owner}/{items}/{seq}",
];

/// All files of the explorer. Its page may also ask this issuer, to sign its users in.
pub(crate) fn files(issuer: Option<&str>) -> Vec<Arc<File>> {
    let page = |address: &'static str| {
        // The build writes the addresses as they are at the root.
        let root = match address.matches('/').count() {
            0 | 1 => "./".to_owned(),
            slashes => "../".repeat(slashes - 1),
        };
        File::page(address, PAGE.replace("\"./", &format!("\"{root}")).into(), issuer)
    };
    ADDRESSES.into_iter().map(page).chain(ASSETS.iter().cloned()).collect()
}

/// What the page loads, by its paths.
static ASSETS: LazyLock<Vec<Arc<File>>> = LazyLock::new(|| {
    let asset = |(path, content): &(&'static str, &'static [u8])| {
        let media_type = match path.rsplit('.').next() {
            Some("css") => CSS,
            Some("js") => JAVASCRIPT,
            _ => PLAIN_TEXT,
        };
        File::immutable(path, media_type, (*content).into())
    };
    LOADED.iter().map(asset).collect()
});
