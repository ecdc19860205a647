//! Live readers of the engine.

mod engine;
mod silence;
