//! Names of what is measured of trades and of page views alike. `docs/metrics.md` says what each means.

pub(super) const RETRIES: &str = "pagebucket_commit_retries_total";
pub(super) const COMMIT_SECONDS: &str = "pagebucket_commit_duration_seconds";
pub(super) const COMMIT_STATEMENTS: &str = "pagebucket_commit_statements";
pub(super) const PREFERRED: &str = "pagebucket_preferred_reads_total";
