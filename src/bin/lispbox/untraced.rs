//! A replacement for `telemetry` in a build without that feature.

use tracing_subscriber::layer::Identity;

use crate::output::errln;

/// A placeholder that sends no spans.
pub struct Telemetry;

impl Telemetry {
    /// Always returns `None`; prints a warning if the environment asks for traces.
    pub fn of_environment() -> Result<Option<Telemetry>, String> {
        let endpoints = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
        if endpoints.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
            errln!("lispbox: no traces are sent: this build does not have the feature `telemetry`");
        }
        Ok(None)
    }

    /// Does nothing.
    pub fn end(self) {}

    /// A layer that does nothing.
    pub fn layer(&self) -> Identity {
        Identity::new()
    }
}
