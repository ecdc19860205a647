//! Nothing acknowledged is missing and nothing is there twice, whatever dies: the judged runs.
//!
//! Clients append under idempotency keys, and repeat what was not answered, while one thing after
//! another fails; every request and every answer is recorded, readers turn pages meanwhile, and at the
//! end a judge holds all of it against what is stored. Controls show that the judge and the faults are
//! worth something: without keys, or at `w: 1`, the same runs double or lose trades.
//!
//! Each scenario lasts for `FAULT_SECONDS` (6 unless set, 60 in a long run). What is chosen at random comes
//! from `FAULT_SEED`, which each scenario prints; which of the threads and processes is the quicker does not.

mod api_process;
mod at_random;
mod clients;
mod controls;
mod cuts;
mod judge;
mod judge_tests;
mod killed_api;
mod killed_mongod;
mod readers;
mod record;
mod replica_set;
mod run;
mod two_instances;
mod w1;

pub use api_process::ApiProcess;
