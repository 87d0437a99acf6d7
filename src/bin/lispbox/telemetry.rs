//! OpenTelemetry traces: one span for each program and one for each tool call, sent as OTLP over HTTP.
//!
//! The standard variables `OTEL_…` set the destination, the headers and the sampling; without the address of a
//! collector nothing is traced.

use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

/// Timeout for sending the last spans when the process ends.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// The variables that may contain the address of a collector.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The exporter of spans.
pub struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Creates the exporter that the environment configures, if any.
    ///
    /// # Errors
    /// Returns the reason why spans cannot be sent.
    pub fn of_environment() -> Result<Option<Telemetry>, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_off = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        if is_off || !ENDPOINTS.iter().any(|name| variable(name).is_some()) {
            return Ok(None);
        }
        // The TLS provider for the collector is that of all other connections; if it is already installed, the second
        // installation is refused.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let problem = |problem: &dyn std::fmt::Display| format!("traces cannot be sent: {problem}");
        let client = reqwest::blocking::Client::builder().build().map_err(|error| problem(&error))?;
        let exporter = SpanExporter::builder().with_http().with_http_client(client).build();
        let mut resource = Resource::builder();
        if variable("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("lispbox");
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter.map_err(|error| problem(&error))?)
            .build();
        Ok(Some(Telemetry { provider }))
    }

    /// The layer that selects the spans of programs and calls.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        let layer: OpenTelemetryLayer<S, SdkTracer> =
            tracing_opentelemetry::layer().with_tracer(self.provider.tracer("lispbox"));
        let layer = layer.with_location(false).with_threads(false).with_tracked_inactivity(false).with_target(false);
        layer.with_filter(Targets::new().with_target(lispbox::server::SPANS, LevelFilter::INFO))
    }

    /// Sends the last spans, with a timeout.
    pub fn end(self) {
        if let Err(problem) = self.provider.shutdown_with_timeout(LAST_SPANS) {
            tracing::warn!(%problem, "the last spans were not sent");
        }
    }
}
