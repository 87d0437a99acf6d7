//! What stands for traces in a build without the feature `telemetry`.

use tracing_subscriber::layer::Identity;

use crate::output::errln;

/// Nothing that sends spans.
pub struct Telemetry;

impl Telemetry {
    /// Nothing, whatever the environment asks for; but whoever asks for traces is told why there are none.
    pub fn of_environment() -> Result<Option<Telemetry>, String> {
        let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        if endpoints.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
            errln!("lispbox: no traces are sent: this build has not the feature `telemetry`");
        }
        Ok(None)
    }

    /// Has nothing to send.
    pub fn end(self) {}

    /// What takes nothing.
    pub fn layer(&self) -> Identity {
        Identity::new()
    }
}
