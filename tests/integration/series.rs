//! Native time series, by the program.

mod commands;
mod faults;
mod restored;
mod views;

use crate::harness::series::*;
