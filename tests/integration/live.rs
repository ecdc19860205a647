//! Live readers: what is appended, in order, without a gap, whichever process took it.

pub mod client;
mod crowd;
mod ends;
mod engine;
mod faults;
mod multiplexed;
mod owners;
mod polls;
mod privileges;
mod several;
pub mod silence;
mod streams;
