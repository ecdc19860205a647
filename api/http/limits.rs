//! How much clients may ask of the service: requests at once, units in a time, memory of answers and of
//! uploads.

pub(crate) mod answer_memory;
pub(crate) mod permits;
pub(crate) mod rate;
pub(crate) mod requests;
pub(crate) mod uploads;
