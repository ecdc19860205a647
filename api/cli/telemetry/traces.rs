//! Traces: the spans of requests ([`trace`]) go to a collector by OTLP over HTTP.

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use clap::Args;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_http::{Bytes, HeaderExtractor, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use pagebucket_http::Traces;
use pagebucket_http::auth::http_client::{client, whole};
use pagebucket_model::domain::Invalid;
use pagebucket_model::trace;
use reqwest::{Client, Url};
use tokio::runtime::Handle;
use tracing::{Level, Span, Subscriber};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

/// Of the flags, in `--help`.
const HEADING: &str = "Traces";

/// How long a collector may take to answer.
const EXPORT: Duration = Duration::from_secs(10);

/// The most bytes of an answer that are read.
const MOST_OF_ANSWER: usize = 64 * 1024;

/// Traces of requests.
#[derive(Args, Debug, Clone)]
pub(crate) struct TraceArgs {
    /// Collector of traces, which takes OTLP over HTTP.
    ///
    /// Such as `http://127.0.0.1:4318`: spans are posted to `/v1/traces` there. Without it nothing is
    /// traced. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES describe this instance.
    #[arg(long, help_heading = HEADING, env = "PAGEBUCKET_OTLP_ENDPOINT", value_name = "URL", value_parser = collector)]
    otlp_endpoint: Option<String>,

    /// Share of requests that are traced, from 0 to 1.
    ///
    /// It is for requests that have no `traceparent`, which says itself whether it is sampled.
    #[arg(long, help_heading = HEADING, env = "PAGEBUCKET_TRACE_SHARE", value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    trace_share: f64,
}

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The layer that exports the spans of traces.
///
/// # Errors
/// The address is none, or no HTTP client can be made.
pub(super) fn layer<S>(args: &TraceArgs) -> Result<Option<impl Layer<S> + use<S>>, Invalid>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let Some(collector) = &args.otlp_endpoint else { return Ok(None) };
    let refuse = |why: String| Invalid(format!("--otlp-endpoint: {why}"));
    let client = client(|builder| builder.timeout(EXPORT)).map_err(|error| refuse(error.to_string()))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", collector.trim_end_matches('/')))
        .with_http_client(CollectorClient { client, runtime: Handle::current() })
        .build()
        .map_err(|error| refuse(error.to_string()))?;
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say more.
    let mut resource =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("pagebucket");
    }
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.build())
        // Only requests that are traced have spans.
        .with_sampler(Sampler::AlwaysOn)
        .with_batch_exporter(exporter)
        .build();
    let tracer = PROVIDER.get_or_init(|| provider).tracer("pagebucket");
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    Ok(Some(layer.with_filter(Targets::new().with_target(trace::TARGET, Level::INFO))))
}

/// Which requests are traced; none without a collector.
pub(crate) fn of_requests(args: &TraceArgs) -> Option<Traces> {
    args.otlp_endpoint.as_ref()?;
    let told = |headers: &HeaderMap| {
        let caller = caller(headers).span().span_context().clone();
        caller.is_valid().then(|| caller.is_sampled())
    };
    let join = |span: &Span, headers: &HeaderMap| {
        // It fails only if there is no layer of ours.
        let _ = span.set_parent(caller(headers));
    };
    Some(Traces { share: args.trace_share, told, join })
}

/// Who calls, as `traceparent` says (W3C Trace Context).
fn caller(headers: &HeaderMap) -> Context {
    TraceContextPropagator::new().extract(&HeaderExtractor(headers))
}

/// Sends what is not sent yet.
pub(crate) async fn end() {
    let Some(provider) = PROVIDER.get() else { return };
    // It waits for the exporter's thread, and that for the client of this runtime.
    let ended = tokio::task::spawn_blocking(|| provider.shutdown_with_timeout(EXPORT)).await;
    if let Ok(Err(error)) = ended {
        tracing::warn!(%error, "the last spans of traces were not taken");
    }
}

/// The exporter has a thread of its own, and this client needs the runtime.
#[derive(Debug)]
struct CollectorClient {
    client: Client,
    runtime: Handle,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, request) = (self.client.clone(), request.try_into()?);
        let answer = self.runtime.spawn(async move {
            let answer = client.execute(request).await?;
            let status = answer.status();
            Ok::<_, reqwest::Error>((status, whole(answer, MOST_OF_ANSWER).await?))
        });
        let (status, body) = answer.await??;
        Ok(Response::builder().status(status).body(body.unwrap_or_default().into())?)
    }
}

/// An address of HTTP, without a name or a password.
fn collector(text: &str) -> Result<String, Invalid> {
    let url = Url::parse(text.trim()).ok();
    let fits = |url: &Url| {
        ["http", "https"].contains(&url.scheme()) && url.username().is_empty() && url.query().is_none()
    };
    let url = url.filter(fits).ok_or(Invalid::new("must be an address such as http://127.0.0.1:4318"))?;
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

fn share(text: &str) -> Result<f64, Invalid> {
    let share = text.trim().parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or(Invalid::new("must be a number from 0 to 1, such as 0.01"))
}
