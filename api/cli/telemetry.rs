//! The log, on standard error, and traces.

#[cfg(feature = "otlp")]
pub(crate) mod traces;
#[cfg(not(feature = "otlp"))]
#[path = "telemetry/untraced.rs"]
pub(crate) mod traces;

use std::fmt;
use std::io::{self, IsTerminal, Write};

use pagebucket_engine::internal::ErasureLine;
use pagebucket_model::domain::Invalid;
use pagebucket_model::trace;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{Format, FormatEvent, FormatFields, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{self as log, FmtContext};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, registry};

use crate::config::{LogArgs, LogFormat};
use traces::TraceArgs;

/// Starts the log and the metrics of this process, and its traces. Later calls change nothing, so that tests
/// may share a process.
///
/// # Errors
/// The filter or the address of the collector is invalid.
pub(crate) fn start(args: &LogArgs, traces: Option<&TraceArgs>) -> Result<(), Invalid> {
    let filter = EnvFilter::try_new(&args.log);
    let filter = filter.map_err(|error| Invalid(format!("--log is not a filter: {error}")))?;
    // What the log does not have cannot be erased again after a restore.
    let erasures = format!("{}=warn", ErasureLine::TARGET).parse().expect("a directive");
    let untraced = format!("{}=off", trace::TARGET).parse().expect("a directive");
    let filter = filter.add_directive(erasures).add_directive(untraced);
    let traces = traces.map(traces::layer).transpose()?.flatten();
    let started = match traces {
        None => registry().with(filter).with(log_layer(args.log_format)).try_init(),
        // Each of them sees spans that the other leaves out.
        Some(traces) => {
            registry().with(traces).with(log_layer(args.log_format).with_filter(filter)).try_init()
        }
    };
    // An error says that there is a log already.
    drop(started);
    pagebucket_service::measure();
    Ok(())
}

/// Writes the log.
fn log_layer<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    // A line that cannot be written is lost. By default the log would report that on standard error, and
    // panic if that is closed.
    let log = log::layer().log_internal_errors(false).with_ansi(io::stderr().is_terminal());
    match format {
        LogFormat::Pretty => log
            .event_format(WithErasures::beside(log::format()))
            .with_writer(|| OneLine(io::stderr()))
            .boxed(),
        LogFormat::Json => log
            .event_format(WithErasures::beside(log::format().json().flatten_event(true)))
            .fmt_fields(JsonFields::new())
            .with_writer(|| Ascii(io::stderr()))
            .boxed(),
    }
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
