//! Which hosts a request may name: a guard against DNS rebinding.
//!
//! A page from `evil.example` can make that name lead to 127.0.0.1, and then speaks to this service. For the
//! browser the answer has the page's own origin, so CORS does not apply. But the request still names
//! `evil.example` as its host, and is refused here, on every route. The names of this machine are always
//! allowed: a page of another origin cannot make a browser send them without CORS.
//!
//! The authority of an absolute request target (and of HTTP/2) counts instead of `Host` (RFC 9112, 3.2.2). A
//! request of HTTP/1.0 without a host is allowed: simple probes send it, and a browser never does. Ports are
//! not compared. A name may end with the dot of an absolute name.
//!
//! CORS preflights are answered outside of this layer. Their answers hold no data.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Version, header};
use axum::response::{IntoResponse, Response};
use tower_http::validate_request::ValidateRequest;

use crate::problem::{Problem, ProblemKind};

/// What this machine calls itself.
pub(crate) const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Which hosts a request may name.
#[derive(Debug, Clone, Default)]
pub struct Hosts(Option<Arc<[String]>>);

impl Hosts {
    /// Any host.
    pub fn any() -> Self {
        Self::default()
    }

    /// `localhost`, `127.0.0.1`, `[::1]` and these, which have no port.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self(Some(names.into_iter().collect()))
    }

    pub(crate) fn allow(&self, request: &Request) -> bool {
        let Some(names) = &self.0 else { return true };
        let authority = match request.uri().authority() {
            Some(authority) => authority.as_str().as_bytes(),
            None => {
                let mut lines = request.headers().get_all(header::HOST).iter();
                match (lines.next(), lines.next()) {
                    (Some(only), None) => only.as_bytes(),
                    (None, _) => return request.version() < Version::HTTP_11,
                    (Some(_), Some(_)) => return false,
                }
            }
        };
        let mut names = LOOPBACK.into_iter().chain(names.iter().map(String::as_str));
        host(authority).is_some_and(|host| names.any(|name| name.as_bytes().eq_ignore_ascii_case(host)))
    }
}

/// The host of an authority, without its port and the dot of an absolute name.
fn host(authority: &[u8]) -> Option<&[u8]> {
    let end = match authority {
        [b'[', ..] => authority.iter().position(|&byte| byte == b']')? + 1,
        _ => authority.iter().position(|&byte| byte == b':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let digits = if port.is_empty() { port } else { port.strip_prefix(b":")? };
    digits.iter().all(u8::is_ascii_digit).then(|| host.strip_suffix(b".").unwrap_or(host))
}

impl ValidateRequest<Body> for Hosts {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        let why = "This server does not answer for the host of the request. `--allowed-hosts` adds hosts.";
        let refused = || Problem::new(ProblemKind::MisdirectedRequest, why).into_response();
        self.allow(request).then_some(()).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(target: &str, version: Version, hosts: &[&str]) -> Request {
        let request = Request::builder().uri(target).version(version);
        let request = hosts.iter().fold(request, |request, host| request.header(header::HOST, *host));
        request.body(Body::empty()).unwrap()
    }

    fn allows(hosts: &Hosts, host: &str) -> bool {
        hosts.allow(&asked("/", Version::HTTP_11, &[host]))
    }

    #[test]
    fn only_this_machine_and_the_names_given() {
        let hosts = Hosts::only(["api.example".to_owned(), "[2001:db8::1]".to_owned()]);
        for host in [
            "localhost",
            "LocalHost:8080",
            "localhost.",
            "localhost.:8080",
            "localhost:",
            "127.0.0.1",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:65535",
            "API.example:443",
            "api.example.",
            "[2001:DB8::1]:8080",
        ] {
            assert!(allows(&hosts, host), "{host}");
            assert!(allows(&Hosts::any(), host), "{host}");
        }
        for host in [
            "",
            ".",
            ":8080",
            "evil.example",
            "localhost..",
            "localhost.evil.example",
            "evil.example:localhost",
            "localhost:80@evil.example",
            "evil@localhost",
            "localhost evil.example",
            "localhost, evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.2",
            "2130706433",
            "::1",
            "[::1",
            "[::1]evil.example",
            "[::2]",
            "sub.api.example",
            "example",
        ] {
            assert!(!allows(&hosts, host), "{host}");
            assert!(allows(&Hosts::any(), host), "{host}");
        }
    }

    #[test]
    fn one_host_is_named() {
        let hosts = Hosts::only([]);
        for (target, version, named, allowed) in [
            // The target's own authority wins.
            ("http://localhost:8080/", Version::HTTP_11, &["evil.example"][..], true),
            ("http://evil.example/", Version::HTTP_11, &["localhost"], false),
            ("http://evil@localhost/", Version::HTTP_11, &["localhost"], false),
            ("http://evil.example/", Version::HTTP_2, &[], false),
            ("http://[::1]/", Version::HTTP_2, &[], true),
            ("/", Version::HTTP_11, &[], false),
            ("/", Version::HTTP_11, &["localhost", "localhost"], false),
            ("/", Version::HTTP_10, &[], true),
            ("/", Version::HTTP_10, &["localhost"], true),
            ("/", Version::HTTP_10, &["evil.example"], false),
        ] {
            assert_eq!(
                hosts.allow(&asked(target, version, named)),
                allowed,
                "{target} {version:?} {named:?}"
            );
            assert!(Hosts::any().allow(&asked(target, version, named)));
        }
    }
}
