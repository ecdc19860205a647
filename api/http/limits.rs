//! How much clients may ask of the service: requests at once, units in a time, memory of answers and of
//! uploads.

pub mod answer_memory;
pub mod permits;
pub mod rate;
pub mod requests;
pub mod uploads;
