//! The log, on standard error, and the metrics.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use pagebucket_engine::internal::ErasureLine;
use pagebucket_model::domain::Invalid;
use pagebucket_model::metric;
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{self as log, FmtContext};
use tracing_subscriber::registry::LookupSpan;

use crate::config::{LogArgs, LogFormat};

/// Starts the log and the metrics of this process. Later calls change nothing, so that tests may share a
/// process.
///
/// # Errors
/// The filter is invalid.
pub fn start(args: &LogArgs) -> Result<(), Invalid> {
    let filter = EnvFilter::try_new(&args.log);
    let filter = filter.map_err(|error| Invalid(format!("--log is not a filter: {error}")))?;
    // What the log does not have cannot be erased again after a restore.
    let erasures = format!("{}=warn", ErasureLine::TARGET).parse().expect("a directive");
    let filter = filter.add_directive(erasures);
    // A line that cannot be written is lost. By default the log would report that on standard error, and
    // panic if that is closed.
    let log = tracing_subscriber::fmt().log_internal_errors(false);
    let log = log.with_env_filter(filter).with_ansi(io::stderr().is_terminal());
    let started = match args.log_format {
        LogFormat::Pretty => log
            .event_format(WithErasures::beside(log::format()))
            .with_writer(|| OneLine(io::stderr()))
            .try_init(),
        LogFormat::Json => log
            .event_format(WithErasures::beside(log::format().json().flatten_event(true)))
            .fmt_fields(JsonFields::new())
            .with_writer(|| Ascii(io::stderr()))
            .try_init(),
    };
    // An error says that there is a log already.
    drop(started);
    measure();
    Ok(())
}

/// A format of the log, and that of erasures, which is one: it is read again after a restore.
struct WithErasures<F> {
    others: F,
    erasures: Format<Json>,
}

impl<F> WithErasures<F> {
    fn beside(others: F) -> Self {
        let erasures = log::format().json().flatten_event(true);
        Self { others, erasures: erasures.with_current_span(false).with_span_list(false) }
    }
}

impl<S, N, F> FormatEvent<S, N> for WithErasures<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().target() == ErasureLine::TARGET {
            self.erasures.format_event(context, writer, event)
        } else {
            self.others.format_event(context, writer, event)
        }
    }
}

/// Writes each line as one line: what it says may have ends of lines, after which a client could begin a line
/// of its own.
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let (text, end) = line.split_at(line.len() - usize::from(line.ends_with(b"\n")));
        let mut escaped = Vec::with_capacity(line.len());
        for byte in text {
            match byte {
                b'\n' => escaped.extend(b"\\n"),
                b'\r' => escaped.extend(b"\\r"),
                _ => escaped.push(*byte),
            }
        }
        escaped.extend(end);
        self.0.write_all(&escaped)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes lines of JSON, each whole, in ASCII. A path may have any character, such as controls beyond ASCII,
/// which JSON does not escape and terminals obey.
struct Ascii<W>(W);

impl<W: Write> Write for Ascii<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut escaped = Vec::with_capacity(line.len());
        // Only strings have other characters.
        for character in String::from_utf8_lossy(line).chars() {
            match character {
                '\n' | ' '..='~' => escaped.push(character as u8),
                other => {
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        write!(escaped, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        self.0.write_all(&escaped)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Upper bounds of histograms of seconds: from an answer out of memory to the deadline of a request.
const SECONDS: [f64; 16] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 35.0];

/// Upper bounds of histograms of counts: from one to the most in a command.
const COUNTS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1_000.0, 10_000.0];

/// How often samples are put into the buckets of their histograms: until then each takes memory.
const UPKEEP: Duration = Duration::from_secs(5);

static EXPOSITION: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Starts the metrics. Measurements before the first call are lost.
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
pub fn exposition() -> String {
    let Some(handle) = EXPOSITION.get().and_then(Option::as_ref) else { return String::new() };
    Collector::default().collect();
    handle.render()
}
