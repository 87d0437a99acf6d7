//! Metrics for Prometheus at `/metrics`: at the address of the server, protected by its tokens, or at a separate
//! address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::server::evaluations::Evaluations;
use crate::server::telemetry::metrics::CONTENT_TYPE;

use super::IN_USE;
use super::connections::{self, Bounds};
use super::heads;

/// Limits for a separate metrics address, which is scraped only occasionally.
const BOUNDS: Bounds = Bounds { most: 32, each: None, arrival: Duration::from_secs(10) };

/// Returns the route for the metrics, which accepts one of the given host names, `localhost`, or an IP address as
/// `Host`.
pub(super) fn route(evaluations: Arc<Evaluations>, hosts: Vec<String>) -> Router {
    let answer = move |headers: HeaderMap| async move {
        if !is_no_page(&headers, &hosts) {
            return (
                StatusCode::FORBIDDEN,
                "metrics are not served to web pages, nor under unknown host names (`--host`)\n",
            )
                .into_response();
        }
        let response: Response = ([(header::CONTENT_TYPE, CONTENT_TYPE)], evaluations.metrics().await).into_response();
        response
    };
    Router::new().route("/metrics", get(answer))
}

/// Binds a separate address for the metrics.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub(super) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let refused = |problem: io::Error| {
        let reason = match problem.kind() {
            io::ErrorKind::AddrInUse => format!("it is {IN_USE}"),
            _ => problem.to_string(),
        };
        io::Error::new(problem.kind(), format!("metrics cannot be served at {address}: {reason}"))
    };
    TcpListener::bind(address).await.map_err(refused)
}

/// Serves the metrics at a separate address, without tokens, until `stop` is cancelled.
///
/// # Errors
/// Returns an error if the address cannot be bound.
pub(in crate::server) async fn serve_metrics(
    address: SocketAddr,
    evaluations: Arc<Evaluations>,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_metrics_at(bind(address).await?, evaluations, stop)
}

/// Serves the metrics on a listener that is already bound; see [`serve_metrics`].
pub(super) fn serve_metrics_at(
    listener: TcpListener,
    evaluations: Arc<Evaluations>,
    stop: CancellationToken,
) -> io::Result<()> {
    tracing::info!(address = %listener.local_addr()?, "metrics are served at /metrics");
    let router = route(evaluations, Vec::new()).layer(from_fn(heads::of_one_host));
    tokio::spawn(connections::listen(router, listener, BOUNDS, stop));
    Ok(())
}

/// False for a request that may come from a web page. Such requests have an `Origin`, or reach this machine by a
/// foreign name that resolves to it (DNS rebinding).
fn is_no_page(headers: &HeaderMap, hosts: &[String]) -> bool {
    if headers.contains_key(header::ORIGIN) {
        return false;
    }
    heads::has_known_host(headers, hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_by_its_origin_or_its_name_for_us() {
        let asks = |headers: &[(header::HeaderName, &'static str)]| {
            let pairs = headers.iter().map(|(name, value)| (name.clone(), header::HeaderValue::from_static(value)));
            is_no_page(&pairs.collect(), &["box.example.com".to_owned()])
        };
        for host in ["127.0.0.1:9464", "[::1]:9464", "localhost", "10.2.3.4:80", "BOX.example.com:9464"] {
            assert!(asks(&[(header::HOST, host)]), "{host}");
        }
        assert!(!asks(&[(header::HOST, "evil.example.com")]));
        assert!(!asks(&[(header::HOST, "localhost"), (header::ORIGIN, "http://localhost")]));
        assert!(!asks(&[]));
    }
}
