//! The commit path under faults: before and after the server applies, at each command of an append.
//!
//! Faults before the server applies come from the server itself (`failCommand`), those after it from
//! the server (`writeConcernError`) or from a wire that is cut. Each time: what was acknowledged is
//! stored once, at its `seq`; what was told to be not stored is not, also not later; what is unknown is
//! said to be; and a replay is the same command under the same number.

mod group_reads;
mod lost_answers;
mod merged;
mod neighbours;
mod partly_stored;
mod standalone;
mod tail_reads;
mod updates;

use crate::harness::rig;
