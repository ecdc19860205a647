//! Live readers, by the program.

mod crowd;
mod faults;
mod privileges;
mod silence;
mod streams;
