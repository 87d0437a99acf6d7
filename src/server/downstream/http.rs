//! A server behind streamable HTTP: the client, its TLS, and what its failures are called.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::server::config::cut;

/// A transport to an address.
///
/// # Errors
/// When a header cannot be sent or the system's certificates cannot be used.
pub(super) fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    largest: usize,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut sent = HashMap::new();
    for (name, value) in headers {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is no name of a header"))?;
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| format!("the value of header `{name}` cannot be sent"))?;
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent)
        .max_sse_event_size(largest)
        .max_concurrent_requests(64);
    Ok(StreamableHttpClientTransport::with_client(client(url)?, config))
}

fn client(url: &str) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(url).map_err(|problem| format!("its `url` is no address: {problem}"))?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(url.scheme() == "https")?)
        // Credentials in headers go to the configured server and nowhere else.
        .redirect(reqwest::redirect::Policy::custom(|attempt| {
            let first = attempt.previous().first();
            if attempt.previous().len() < 5 && first.is_some_and(|url| url.origin() == attempt.url().origin()) {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }))
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
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<StreamableHttpError<reqwest::Error>>());
    match failure {
        Some(StreamableHttpError::Client(request)) => match request.status() {
            Some(status) => format!("it answered with HTTP status {}", status.as_u16()),
            None if request.is_connect() => "the connection was refused or the host was not found".into(),
            None if request.is_timeout() => "it did not answer in time".into(),
            None => "the HTTP request failed".into(),
        },
        Some(StreamableHttpError::HttpStatus(answer)) => format!("it answered with HTTP status {}", answer.status),
        Some(StreamableHttpError::AuthRequired(_)) => "it asks for authorization (HTTP status 401)".into(),
        Some(StreamableHttpError::InsufficientScope(_)) => "it refuses our authorization (HTTP status 403)".into(),
        Some(StreamableHttpError::UnexpectedContentType(_) | StreamableHttpError::Deserialize(_)) => {
            "its answer is not MCP".into()
        }
        Some(StreamableHttpError::SessionExpired) => "it has forgotten our session".into(),
        _ => cut(&error.to_string(), 200),
    }
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
        error.source()
    })
}
