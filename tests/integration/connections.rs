//! What requests come over: TLS, HTTP/2, and clients that are slow, silent or hostile. Whatever they do,
//! others are answered.

mod certificates;
mod drain;
mod floods;
mod http2;
mod silence;
mod tls;
mod unread;
pub mod wire;

crate::harness::named!("connections");
