//! What Prometheus reads at `/metrics`: at the address of the server, where its tokens hold, or at one of its own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::uri::Authority;
use http::{HeaderMap, StatusCode, header};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::IN_USE;
use super::connections::{self, Bounds};
use super::heads;
use crate::server::evaluations::Evaluations;
use crate::server::metrics::CONTENT_TYPE;

/// What an address of its own takes: somebody who reads it now and then.
const BOUNDS: Bounds = Bounds { most: 32, each: None, arrival: Duration::from_secs(10) };

/// The metrics of those evaluations, for who asks under one of those names, that of this machine, or an address.
pub(super) fn route(evaluations: Arc<Evaluations>, hosts: Vec<String>) -> Router {
    let answer = move |headers: HeaderMap| async move {
        if !is_no_page(&headers, &hosts) {
            return (StatusCode::FORBIDDEN, "metrics are not for web pages, nor for unknown names (`--host`)\n")
                .into_response();
        }
        let response: Response = ([(header::CONTENT_TYPE, CONTENT_TYPE)], evaluations.metrics().await).into_response();
        response
    };
    Router::new().route("/metrics", get(answer))
}

/// Listens at an address of their own for the metrics.
///
/// # Errors
/// When the address cannot be had.
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

/// Serves the metrics at an address of their own, without tokens, until `stop` is cancelled.
///
/// # Errors
/// When the address cannot be had.
pub(in crate::server) async fn serve_metrics(
    address: SocketAddr,
    evaluations: Arc<Evaluations>,
    stop: CancellationToken,
) -> io::Result<()> {
    serve_metrics_at(bind(address).await?, evaluations, stop)
}

/// Serves the metrics where we listen already; see [`serve_metrics`].
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

/// False for a request that a web page may have made: pages say their origin, and reach this machine by a name that
/// somebody lets point to it.
fn is_no_page(headers: &HeaderMap, hosts: &[String]) -> bool {
    if headers.contains_key(header::ORIGIN) {
        return false;
    }
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_known = |known: &String| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok() || hosts.iter().any(is_known)
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
