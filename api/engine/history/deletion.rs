//! Deletion: of the oldest pages of a history ([`retire`]), and of everything that an owner has ([`erase`]).

pub(super) mod damaged;
pub(super) mod erase;
pub(super) mod erased_keys;
pub(super) mod erased_late;
pub(super) mod erasure_log;
pub(super) mod replay;
pub(super) mod retention_clock;
pub(super) mod retire;
