//! Connections, TLS, HTTP/2 and floods, on a toy: without a database, and without the API.

#![allow(unreachable_pub, reason = "no other crate can use a test")]

#[allow(dead_code, reason = "the tests of the program use all of it")]
mod certificates;
mod floods;
mod harness;
mod http2;
mod patience;
mod silence;
mod tls;
mod toy;
#[allow(dead_code, reason = "the tests of the program use all of it")]
mod wire;
