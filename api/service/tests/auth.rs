//! Who may do what: tokens, the table of routes, and what a refusal gives away.

mod issuer;
mod keys;
mod others;
mod rotation;
pub mod routes;
mod streams;
mod tokens;
