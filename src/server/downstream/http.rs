//! HTTP connections to servers: the client, its TLS, streamable HTTP, and the kinds of failures.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::AuthClient;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rustls_platform_verifier::BuilderVerifierExt;

use super::kept_connections::{Connections, KEPT_FOR, MOST_KEPT, Reuse};
use super::login::Login;
use super::streamable::Http;

/// Maximum number of concurrent requests to one server.
pub(super) const MOST_REQUESTS: usize = 64;

/// Creates a streamable HTTP transport to an address.
///
/// # Errors
/// Returns an error if a header cannot be sent or the system's certificates cannot be used.
pub(super) async fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    largest: usize,
    login: &Login,
    reuse: &Arc<Reuse>,
) -> Result<StreamableHttpClientTransport<AuthClient<Http>>, String> {
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent(headers)?)
        .max_sse_event_size(largest)
        .max_concurrent_requests(MOST_REQUESTS);
    Ok(StreamableHttpClientTransport::with_client(login.client(largest, reuse).await?, config))
}

/// Converts the configured headers.
///
/// # Errors
/// Returns an error if one of them is invalid.
pub(super) fn sent<Headers: FromIterator<(HeaderName, HeaderValue)>>(
    headers: &BTreeMap<String, String>,
) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| {
            format!("`{name}` is not a valid header name: expected letters, digits and `-`, without the colon")
        })?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            let ends = value.trim_end().len() < value.len() && HeaderValue::try_from(value.trim_end()).is_ok();
            let place = if ends { "at its end" } else { "in it" };
            format!(
                "the value of header `{name}` cannot be sent: there is a line break or a control character {place}; \
                 remove it, for example where the variable is set"
            )
        })?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(header).collect()
}

/// Creates a client for an address; it follows redirects only within the origin of that address.
///
/// # Errors
/// Returns an error if the address is invalid or the system's certificates cannot be used.
pub(super) fn client(url: &str) -> Result<reqwest::Client, String> {
    client_with(url, within_origin())
}

/// Builds the clients for a server; they follow redirects as [`client`] does.
///
/// # Errors
/// As for [`client`].
pub(super) fn connections(url: &str, reuse: Arc<Reuse>) -> Result<Connections, String> {
    let url = parsed(url)?;
    let is_encrypted = url.scheme() == "https";
    let tls = tls(is_encrypted)?;
    let single = built(&url, settings(tls.clone(), within_origin()))?;
    let keeping = || settings(tls, within_origin()).pool_max_idle_per_host(MOST_KEPT).pool_idle_timeout(KEPT_FOR);
    let kept = is_encrypted.then(|| built(&url, keeping())).transpose()?;
    Ok(Connections::new(single, kept, reuse))
}

/// Credentials in headers are sent only to the configured server.
fn within_origin() -> Policy {
    Policy::custom(|attempt| {
        let first = attempt.previous().first();
        if attempt.previous().len() < 5 && first.is_some_and(|url| url.origin() == attempt.url().origin()) {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}

/// Creates a client for one address.
///
/// # Errors
/// As for [`client`].
pub(super) fn client_with(url: &str, redirects: Policy) -> Result<reqwest::Client, String> {
    let url = parsed(url)?;
    built(&url, settings(tls(url.scheme() == "https")?, redirects))
}

fn parsed(url: &str) -> Result<reqwest::Url, String> {
    reqwest::Url::parse(url).map_err(|problem| format!("its `url` is not a valid address: {problem}"))
}

/// The settings common to all clients. Idle connections are not kept unless the caller asks for it.
fn settings(tls: rustls::ClientConfig, redirects: Policy) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirects)
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(10))
}

fn built(url: &reqwest::Url, settings: reqwest::ClientBuilder) -> Result<reqwest::Client, String> {
    let settings = if is_loopback(url) { settings.no_proxy() } else { settings };
    settings.build().map_err(|problem| format!("no HTTP client: {problem}"))
}

/// Returns whether an address is on this machine, for which no proxy is used.
pub(super) fn is_loopback(url: &reqwest::Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

/// Configures TLS with ring, and with the system's certificates if they are needed.
fn tls(needed: bool) -> Result<rustls::ClientConfig, String> {
    let problem = |problem: rustls::Error| format!("TLS cannot be used: {problem}");
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(problem)?;
    if needed {
        let unverified = |cause| format!("{}; `SSL_CERT_FILE` names a file with certificates", problem(cause));
        Ok(builder.with_platform_verifier().map_err(unverified)?.with_no_client_auth())
    } else {
        Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    }
}

/// True for the error of a pipe or socket that the peer has closed.
pub(super) fn is_closed(error: &(dyn Error + 'static)) -> bool {
    let kinds = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let closed = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset, io::ErrorKind::NotConnected];
    kinds.into_iter().any(|kind| closed.contains(&kind))
}

/// The transport error for a failed request.
pub(super) fn unsent(request: reqwest::Error) -> io::Error {
    io::Error::other(StreamableHttpError::Client(request))
}

/// True if it is certain that the server has received no part of a request.
pub(super) fn is_unsent(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, NotConnected};
    causes(error).any(|cause| match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(request)) => request.is_connect(),
        Some(StreamableHttpError::SessionExpired) => true,
        _ => cause.downcast_ref::<io::Error>().is_some_and(|error| matches!(error.kind(), BrokenPipe | NotConnected)),
    })
}

/// True if a request failed without a response status.
pub(super) fn is_lost(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
            Some(StreamableHttpError::Client(request)) if request.status().is_none()
        )
    })
}

/// True if a reply exceeded the size limit.
pub(super) fn is_too_large(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
            Some(StreamableHttpError::ResponseBodyTooLarge { .. })
        )
    })
}

/// Returns an error and its causes, the outermost first.
pub(super) fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        // The `source` of an I/O error skips the error that it wraps.
        let made_of = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        made_of.map_or_else(|| error.source(), |inner| Some(inner))
    })
}
