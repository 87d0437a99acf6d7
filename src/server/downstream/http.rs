//! HTTP connections to servers: the client, its TLS, streamable HTTP, and the classification of failures.

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
use serde_json::Value;

use crate::lang::internal::foreign_text;
use crate::server::text::cut;

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
) -> Result<StreamableHttpClientTransport<AuthClient<Http>>, String> {
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent(headers)?)
        .max_sse_event_size(largest)
        .max_concurrent_requests(MOST_REQUESTS);
    Ok(StreamableHttpClientTransport::with_client(login.client(largest).await?, config))
}

/// Converts the configured headers.
///
/// # Errors
/// Returns an error if one of them is invalid.
pub(super) fn sent<Headers: FromIterator<(HeaderName, HeaderValue)>>(
    headers: &BTreeMap<String, String>,
) -> Result<Headers, String> {
    let header = |(name, value): (&String, &String)| {
        let header = HeaderName::try_from(name.as_str()).map_err(|_| format!("`{name}` is not a valid header name"))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| {
            format!("the value of header `{name}` cannot be sent: it has a line break or a control character")
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
    // Credentials in headers are sent only to the configured server.
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

/// Creates a client for one address.
///
/// # Errors
/// As for [`client`].
pub(super) fn client_with(url: &str, redirects: Policy) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(url).map_err(|problem| format!("its `url` is not a valid address: {problem}"))?;
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

/// Configures TLS with ring, and with the system's certificates if they are needed.
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

/// Describes a transport failure without naming the address.
pub(super) fn problem(error: &(dyn Error + 'static)) -> String {
    if let Some(status) = status(error) {
        return match words(error) {
            Some(words) if status == 403 => format!("it refused the request (HTTP status 403): {words}"),
            Some(words) => format!("{}: {words}", answered(status)),
            None => answered(status),
        };
    }
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<StreamableHttpError<reqwest::Error>>());
    match failure {
        Some(StreamableHttpError::Client(request)) => failed(request),
        Some(StreamableHttpError::UnexpectedContentType(Some(kind))) => {
            format!("its answer is not MCP: expected JSON or a stream of events, got `{}`", quoted(kind, 80))
        }
        Some(StreamableHttpError::UnexpectedContentType(None)) => "its answer is not MCP".into(),
        Some(StreamableHttpError::Deserialize(problem)) => format!("its answer is not MCP: {problem}"),
        Some(StreamableHttpError::SessionExpired) => "it has forgotten our session".into(),
        _ => cut(&error.to_string(), 200),
    }
}

/// Maximum length of the words of a server that an error quotes, in bytes.
const WORDS: usize = 300;

/// Returns the words with which a server refused a request, quoted as data.
pub(super) fn words(error: &(dyn Error + 'static)) -> Option<String> {
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<StreamableHttpError<reqwest::Error>>())?;
    let StreamableHttpError::UnexpectedServerResponse(text) = failure else { return None };
    let (_, body) = text.strip_prefix("HTTP ")?.split_once(": ")?;
    let value = serde_json::from_str::<Value>(body).ok();
    let told = value.as_ref().and_then(|value| {
        let places = ["/error/message", "/message", "/error_description", "/detail", "/error"];
        places.into_iter().find_map(|place| value.pointer(place)?.as_str())
    });
    let is_page = body.trim_start().starts_with('<');
    let told = told.or((!is_page).then_some(body)).map(str::trim).filter(|told| !told.is_empty())?;
    Some(format!("\"{}\"", quoted(told, WORDS)))
}

/// Returns a text on one line, without characters that steer a terminal.
fn quoted(text: &str, most: usize) -> String {
    cut(&foreign_text::line(text), most)
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

/// The transport error for a response whose status is neither success nor an error.
pub(super) fn refused(status: u16) -> io::Error {
    io::Error::other(StreamableHttpError::<reqwest::Error>::UnexpectedServerResponse(format!("HTTP {status}").into()))
}

/// Describes why a request has no answer.
pub(super) fn failed(request: &reqwest::Error) -> String {
    match request.status() {
        Some(status) => answered(status.as_u16()),
        None if request.is_connect() => unconnected(request),
        None if request.is_timeout() => "it did not answer in time".into(),
        None => "the HTTP request failed".into(),
    }
}

/// Describes why there is no connection.
fn unconnected(request: &reqwest::Error) -> String {
    for cause in causes(request) {
        if let Some(problem) = cause.downcast_ref::<rustls::Error>() {
            return untrusted(problem);
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return "the connection was refused".into(),
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof) => {
                return "it closed the connection before it answered".into();
            }
            Some(io::ErrorKind::TimedOut) => return "it did not accept the connection in time".into(),
            _ => {}
        }
        let words = cause.to_string();
        if words.starts_with("dns error") || words.contains("failed to lookup address") {
            return "the host was not found".into();
        }
        if words.contains("tunnel") || words.contains("proxy") {
            return "the proxy (`HTTPS_PROXY` or `HTTP_PROXY`) did not connect to it".into();
        }
    }
    "the connection was refused or the host was not found".into()
}

/// Describes why a TLS connection was not made.
fn untrusted(problem: &rustls::Error) -> String {
    use rustls::CertificateError as Certificate;
    match problem {
        rustls::Error::InvalidCertificate(Certificate::UnknownIssuer) => {
            "its certificate is of an issuer that this system does not trust; `SSL_CERT_FILE` names a file with others"
                .into()
        }
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => "its certificate is for another host name than that of the `url`".into(),
        rustls::Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            "its certificate has expired".into()
        }
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS at this port: expected a `url` that begins with `http://`, or another port".into()
        }
        other => format!("there is no TLS connection: {}", cut(&other.to_string(), 200)),
    }
}

/// Describes a response status that is not a success.
pub(super) fn answered(status: u16) -> String {
    match status {
        401 => "it asks for authorization (HTTP status 401)".into(),
        403 => "it refuses our authorization (HTTP status 403)".into(),
        status => format!("it answered with HTTP status {status}"),
    }
}

/// The HTTP status with which a server refused a request, if that is the cause of the error.
pub(super) fn status(error: &(dyn Error + 'static)) -> Option<u16> {
    causes(error).find_map(|cause| match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        StreamableHttpError::Client(request) => request.status().map(|status| status.as_u16()),
        StreamableHttpError::HttpStatus(answer) => Some(answer.status),
        StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::Auth(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Some(401),
        StreamableHttpError::InsufficientScope(_) => Some(403),
        // rmcp reports a status this way if the body is not JSON-RPC: `HTTP 404 Not Found: …`.
        StreamableHttpError::UnexpectedServerResponse(words) => {
            words.strip_prefix("HTTP ")?.split(' ').next()?.parse().ok()
        }
        _ => None,
    })
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

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        // The `source` of an I/O error skips the error that it wraps.
        let made_of = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        made_of.map_or_else(|| error.source(), |inner| Some(inner))
    })
}
