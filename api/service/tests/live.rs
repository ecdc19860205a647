//! Live readers: what is appended, in order, without a gap, whichever process took it.

mod ends;
mod engine;
mod multiplexed;
mod owners;
mod polls;
mod several;
pub mod silence;
mod streams;
