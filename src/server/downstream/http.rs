//! A server behind HTTP: the client, its TLS, streamable HTTP, and what failures are called.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::auth::{AuthClient, AuthError};
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::server::config::cut;

use super::login::Login;

/// How many requests to one server may be under way at once.
pub(super) const MOST_REQUESTS: usize = 64;

/// A transport over streamable HTTP to an address.
///
/// # Errors
/// When a header cannot be sent or the system's certificates cannot be used.
pub(super) async fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    largest: usize,
    login: &Login,
) -> Result<StreamableHttpClientTransport<AuthClient<reqwest::Client>>, String> {
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent(headers)?)
        .max_sse_event_size(largest)
        .max_concurrent_requests(MOST_REQUESTS);
    Ok(StreamableHttpClientTransport::with_client(login.client().await?, config))
}

/// Headers as they are sent.
///
/// # Errors
/// When one of them cannot be.
pub(super) fn sent<Headers: FromIterator<(HeaderName, HeaderValue)>>(
    headers: &BTreeMap<String, String>,
) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        Ok((header, value))
    };
    headers.iter().map(header).collect()
}

/// A client for an address, which sends what it is given nowhere else.
///
/// # Errors
/// When it is no address or the system's certificates cannot be used.
pub(super) fn client(url: &str) -> Result<reqwest::Client, String> {
    // Credentials in headers go to the configured server and nowhere else.
    client_with(
        url,
        Policy::custom(|attempt| {
            let first = attempt.previous().first();
            if attempt.previous().len() < 5 && first.is_some_and(|url| url.origin() == attempt.url().origin()) {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }),
    )
}

/// A client for one address.
///
/// # Errors
/// As [`client`].
pub(super) fn client_with(url: &str, redirects: Policy) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(url).map_err(|problem| format!("its `url` is no address: {problem}"))?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(url.scheme() == "https")?)
        .redirect(redirects)
        // A connection kept idle with an unread body stalls the next request for 40 ms.
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_secs(10));
    let host = url.host_str().unwrap_or_default();
    let loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
    let builder = if loopback { builder.no_proxy() } else { builder };
    builder.build().map_err(|problem| format!("no HTTP client: {problem}"))
}

/// TLS on ring, with the system's certificates where they are needed.
fn tls(needed: bool) -> Result<rustls::ClientConfig, String> {
    let problem = |problem: rustls::Error| format!("TLS cannot be used: {problem}");
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(problem)?;
    if needed {
        Ok(builder.with_platform_verifier().map_err(problem)?.with_no_client_auth())
    } else {
        Ok(builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth())
    }
}

/// What went wrong in a transport, in words that name no address of ours.
pub(super) fn problem(error: &(dyn Error + 'static)) -> String {
    if let Some(status) = status(error) {
        return answered(status);
    }
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<StreamableHttpError<reqwest::Error>>());
    match failure {
        Some(StreamableHttpError::Client(request)) => failed(request),
        Some(StreamableHttpError::UnexpectedContentType(_) | StreamableHttpError::Deserialize(_)) => {
            "its answer is not MCP".into()
        }
        Some(StreamableHttpError::SessionExpired) => "it has forgotten our session".into(),
        _ => cut(&error.to_string(), 200),
    }
}

/// True for the error of a pipe or socket that the other side has closed.
pub(super) fn is_closed(error: &(dyn Error + 'static)) -> bool {
    let kinds = causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    let closed = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset, io::ErrorKind::NotConnected];
    kinds.into_iter().any(|kind| closed.contains(&kind))
}

/// The error of a transport whose request failed.
pub(super) fn unsent(request: reqwest::Error) -> io::Error {
    io::Error::other(StreamableHttpError::Client(request))
}

/// The error of a transport whose request was answered with a status that is neither success nor an error.
pub(super) fn refused(status: u16) -> io::Error {
    io::Error::other(StreamableHttpError::<reqwest::Error>::UnexpectedServerResponse(format!("HTTP {status}").into()))
}

/// Why a request has no answer.
pub(super) fn failed(request: &reqwest::Error) -> String {
    match request.status() {
        Some(status) => answered(status.as_u16()),
        None if request.is_connect() => "the connection was refused or the host was not found".into(),
        None if request.is_timeout() => "it did not answer in time".into(),
        None => "the HTTP request failed".into(),
    }
}

/// What it means that a server answered with a status.
pub(super) fn answered(status: u16) -> String {
    match status {
        401 => "it asks for authorization (HTTP status 401)".into(),
        403 => "it refuses our authorization (HTTP status 403)".into(),
        status => format!("it answered with HTTP status {status}"),
    }
}

/// The HTTP status with which a server refused a request, where that is what went wrong.
pub(super) fn status(error: &(dyn Error + 'static)) -> Option<u16> {
    causes(error).find_map(|cause| match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(request) => request.status().map(|status| status.as_u16()),
        StreamableHttpError::HttpStatus(answer) => Some(answer.status),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::Auth(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Some(401),
        StreamableHttpError::InsufficientScope(_) => Some(403),
        // This is how rmcp says it where the body is no JSON-RPC: `HTTP 404 Not Found: …`.
        StreamableHttpError::UnexpectedServerResponse(words) => {
            words.strip_prefix("HTTP ")?.split(' ').next()?.parse().ok()
        }
        _ => None,
    })
}

/// True when it is certain that nothing of a request has come to the server.
pub(super) fn is_unsent(error: &(dyn Error + 'static)) -> bool {
    use io::ErrorKind::{BrokenPipe, NotConnected};
    causes(error).any(|cause| match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(request)) => request.is_connect(),
        Some(StreamableHttpError::SessionExpired) => true,
        _ => cause.downcast_ref::<io::Error>().is_some_and(|error| matches!(error.kind(), BrokenPipe | NotConnected)),
    })
}

/// True when a request has begun and has no answer.
pub(super) fn is_lost(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
            Some(StreamableHttpError::Client(request)) if request.status().is_none()
        )
    })
}

/// True when a reply was larger than may be taken in.
pub(super) fn is_too_large(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        matches!(
            cause.downcast_ref::<StreamableHttpError<reqwest::Error>>(),
            Some(StreamableHttpError::ResponseBodyTooLarge { .. })
        )
    })
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        // An I/O error is silent about the one that it was made of.
        let made_of = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        made_of.map_or_else(|| error.source(), |inner| Some(inner))
    })
}
