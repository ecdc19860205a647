//! Faults of appends, as clients see them.

mod standalone;
