//! Names of what is measured. `docs/metrics.md` says what each means.

pub(super) const QUEUED: &str = "pagebucket_append_queue_trades";
pub(super) const COMMIT_TRADES: &str = "pagebucket_commit_trades";
pub(super) const CATALOG: &str = "pagebucket_catalog_customers";
pub(super) const KEYED: &str = "pagebucket_keyed_appends_total";
pub(super) const LOOKUPS: &str = "pagebucket_catalog_lookups_total";
