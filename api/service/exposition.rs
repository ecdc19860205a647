//! The metrics of this process, as Prometheus reads them.

use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use pagebucket_model::metric;

/// Upper bounds of histograms of seconds: from an answer out of memory to the deadline of a request.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 35.0];

/// Upper bounds of histograms of counts: from one to the most in a command.
const COUNTS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 10_000.0];

/// How often samples are put into the buckets of their histograms: until then each takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

static EXPOSITION: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Starts the metrics of this process. Measurements before the first call are lost; later calls change
/// nothing.
pub fn measure() {
    EXPOSITION.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)
            .and_then(|builder| builder.set_buckets(&COUNTS))
            .and_then(PrometheusBuilder::install_recorder);
        let handle = recorder.inspect_err(|error| tracing::warn!(%error, "metrics are off")).ok()?;
        metric::describe();
        Collector::default().describe();
        let (version, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        metrics::gauge!(metric::BUILD, "version" => version, "os" => os, "arch" => arch).set(1);
        let upkeep = handle.clone();
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let started = thread.spawn(move || {
            loop {
                std::thread::sleep(UPKEEP);
                upkeep.run_upkeep();
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "metrics are only compacted when they are read");
        }
        Some(handle)
    });
}

/// All metrics, those of the process as they are now, in Prometheus' text format.
pub(crate) fn render() -> String {
    let Some(handle) = EXPOSITION.get().and_then(Option::as_ref) else { return String::new() };
    Collector::default().collect();
    handle.render()
}
