//! How much clients may ask of the service: requests at once, units in a time, memory of answers and of uploads.

pub mod concurrency;
pub mod rate;
pub mod requests;
pub mod unsent;
pub mod uploads;
