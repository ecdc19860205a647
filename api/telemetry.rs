//! The log, to standard error, and what is measured.

use std::io::IsTerminal;
use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{LogArgs, LogFormat};

/// Starts the log and the measuring of this process. Later calls change nothing, so that tests may
/// share a process.
///
/// # Errors
/// The filter is none; says why.
pub fn start(args: &LogArgs) -> Result<(), String> {
    let filter = EnvFilter::try_new(&args.log).map_err(|error| format!("--log is not a filter: {error}"))?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match args.log_format {
        LogFormat::Pretty => log.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    // An error says that there is a log already.
    drop(started);
    measure();
    Ok(())
}

/// Upper bounds of histograms of seconds: from an answer out of memory to the deadline of a request.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 35.0];

/// Upper bounds of histograms of counts: from one to the most in a command.
const COUNTS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 10_000.0];

/// How often the samples of histograms are put into their buckets: until then each takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

static EXPOSITION: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Starts measuring. What is measured before the first call is lost.
pub fn measure() {
    EXPOSITION.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|builder| builder.set_buckets(&COUNTS))
            .and_then(PrometheusBuilder::install_recorder);
        let handle = recorder.inspect_err(|error| tracing::warn!(%error, "nothing is measured")).ok()?;
        describe();
        let upkeep = handle.clone();
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let started = thread.spawn(move || {
            loop {
                std::thread::sleep(UPKEEP);
                upkeep.run_upkeep();
            }
        });
        started
            .inspect_err(|error| tracing::warn!(%error, "measurements are only tidied when asked for"))
            .ok();
        Some(handle)
    });
}

/// All that was measured, in Prometheus' text format.
pub fn exposition() -> String {
    EXPOSITION.get().and_then(Option::as_ref).map(PrometheusHandle::render).unwrap_or_default()
}

/// The `HELP` of each. `docs/metrics.md` says more.
fn describe() {
    describe_counter!("pagebucket_http_requests_total", "Requests answered, by method, route and status.");
    describe_histogram!(
        "pagebucket_http_request_duration_seconds",
        Unit::Seconds,
        "Time until the head of the answer, by method and route."
    );
    describe_gauge!("pagebucket_append_queue_trades", "Trades waiting to be committed, or being committed.");
    describe_counter!("pagebucket_commit_retries_total", "Statements and commands sent again, by cause.");
    describe_histogram!(
        "pagebucket_commit_duration_seconds",
        Unit::Seconds,
        "Time of a command, replays included."
    );
    describe_counter!(
        "pagebucket_keyed_appends_total",
        "Requests with an Idempotency-Key, by what came of them."
    );
    describe_histogram!("pagebucket_commit_statements", "Documents that a command is to write.");
    describe_histogram!("pagebucket_commit_trades", "Trades that a command carries.");
    describe_histogram!("pagebucket_commit_views", "Page views that a command carries.");
    describe_gauge!(
        "pagebucket_page_view_queue",
        "Counters of page views waiting to be added to, or being added to."
    );
    describe_counter!("pagebucket_catalog_lookups_total", "Tails asked of the catalog, by result.");
    describe_counter!(
        "pagebucket_page_cache_lookups_total",
        "Pages asked of the page cache, by whether they were there."
    );
    describe_gauge!("pagebucket_page_cache_bytes", Unit::Bytes, "What the pages remembered take.");
    describe_gauge!("pagebucket_page_cache_pages", "Pages remembered.");
    describe_counter!(
        "pagebucket_preferred_reads_total",
        "Reads of full pages and page views from other servers than the primary, by result."
    );
    describe_counter!("pagebucket_exports_total", "Exports that are over, by how they ended.");
    describe_counter!("pagebucket_exported_trades_total", "Trades exported.");
    describe_counter!("pagebucket_uploads_total", "Uploads that are over, by how they ended.");
    describe_gauge!("pagebucket_uploads_under_way", "Uploads under way.");
    describe_gauge!(
        "pagebucket_upload_held_bytes",
        Unit::Bytes,
        "Lines and outcomes that uploads hold in memory, in bytes."
    );
    describe_counter!("pagebucket_upload_lines_read_total", "Lines read of uploads.");
    describe_counter!("pagebucket_upload_lines_total", "Lines of uploads, by what became of them.");
    describe_gauge!("pagebucket_catalog_customers", "Customers whose tails are remembered, by committer.");
}
