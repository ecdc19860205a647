//! The binary, as its users run it: flags, exit statuses, sentences, signals. Nothing of this
//! process's environment reaches it.

mod auth;
mod corruption;
mod embedded;
mod erase;
mod export;
mod flags;
mod keys;
mod migrate;
pub mod program;
mod restore;
mod retention;
mod round_trip;
mod secrets;
mod serve;
mod settings;
mod signals;
mod tail;
mod terminal;
mod traces;
mod verify;
