//! Names of what is measured. `docs/metrics.md` says what each means.

pub(super) const QUEUED: &str = "pagebucket_page_view_queue";
pub(super) const COMMIT_VIEWS: &str = "pagebucket_commit_views";
