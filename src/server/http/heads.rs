//! Checks of the request head that apply to all routes.

use std::net::IpAddr;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, Uri, Version, header};

use crate::server::text::cut;

/// Maximum size of the text of a refusal, in bytes.
const LARGEST_REFUSAL: usize = 1_024;

/// Rejects a request with an ambiguous target host: the host that a proxy or a browser checked must be the host that
/// this server checks.
pub(super) async fn of_one_host(request: Request, next: Next) -> Response {
    match check(request.version(), request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => (StatusCode::BAD_REQUEST, format!("{problem}\n")).into_response(),
    }
}

fn check(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match hosts.next() {
        Some(host) => host,
        // Health checks of load balancers use HTTP/1.0; handlers that need a host check for it themselves.
        None if version == Version::HTTP_10 => return Ok(()),
        None => return Err("expected a `Host` header, got none".to_owned()),
    };
    let others = hosts.count();
    if others > 0 {
        return Err(format!("expected one `Host` header, got {}", others + 1));
    }
    let expected = "expected a name or an address with or without a port in `Host`";
    let host = host.to_str().map_err(|_| format!("{expected}, got bytes that are not text"))?;
    if host.is_empty() {
        return Err(format!("{expected}, got nothing"));
    }
    let authority: Authority =
        host.parse().ok().filter(|_| !host.contains('@')).ok_or_else(|| format!("{expected}, got something else"))?;
    match uri.authority() {
        Some(target) if place(target, uri) != place(&authority, uri) => {
            Err("expected the host of the request target in `Host`, got another one".to_owned())
        }
        _ => Ok(()),
    }
}

/// True if `Host` is one of the given names, `localhost`, or an IP address. A web page may reach this machine by any
/// other name that its owner lets resolve to it (DNS rebinding).
pub(super) fn has_known_host(headers: &HeaderMap, hosts: &[String]) -> bool {
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return false };
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    let is_known = |known: &String| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok() || hosts.iter().any(is_known)
}

/// Completes the refusal of a request whose `Host` or `Origin` is not allowed: with the host, and the option that allows
/// it.
pub(super) async fn named(host: Option<&HeaderValue>, refusal: Response) -> Response {
    let (mut parts, body) = refusal.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_REFUSAL).await else { return parts.status.into_response() };
    let said = String::from_utf8_lossy(&body);
    let host = host.map(|host| cut(&String::from_utf8_lossy(host.as_bytes()), 100)).unwrap_or_default();
    let text = match &*said {
        "Forbidden: Host header is not allowed" => {
            format!("{said}: `{host}` is no name of this server; start it with `--host {}`\n", name_of(&host))
        }
        "Forbidden: Origin header is not allowed" => {
            format!("{said}: start the server with `--origin`, followed by the origin of the page, to allow it\n")
        }
        _ => said.into_owned(),
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(text))
}

/// Returns the name in a host that may have a port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Returns the host name and the port of an authority in a canonical form that can be compared.
fn place(authority: &Authority, uri: &Uri) -> (String, String) {
    let usual = if uri.scheme_str() == Some("https") { "443" } else { "80" };
    // Compare the port as text: a port that is not a number must not compare equal to a missing one.
    let text = authority.as_str();
    let text = text.rsplit_once('@').map_or(text, |(_, place)| place);
    let text = text.rsplit_once(']').map_or(text, |(_, rest)| rest);
    let port = text.split_once(':').map_or("", |(_, port)| port);
    (authority.host().to_ascii_lowercase(), if port == usual { String::new() } else { port.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_fine(target: &str, hosts: &[&'static str]) -> bool {
        let uri: Uri = target.parse().expect("a target");
        let pairs = hosts.iter().map(|host| (header::HOST, http::HeaderValue::from_static(host)));
        check(Version::HTTP_11, &uri, &pairs.collect()).is_ok()
    }

    #[test]
    fn a_request_names_one_host() {
        assert!(is_fine("/mcp", &["localhost:80"]));
        assert!(is_fine("/mcp", &["[::1]:8787"]));
        let wrong: [&[&str]; 7] =
            [&[], &["localhost", "localhost"], &["localhost", "evil"], &[""], &["a, b"], &["a@localhost"], &["a b"]];
        for hosts in wrong {
            assert!(!is_fine("/mcp", hosts), "{hosts:?}");
        }
        let old = check(Version::HTTP_10, &"/healthz".parse().expect("a target"), &HeaderMap::new());
        assert!(old.is_ok(), "HTTP/1.0 knows requests without a host");
    }

    #[test]
    fn the_host_is_that_of_the_target() {
        assert!(is_fine("http://localhost:80/mcp", &["LOCALHOST"]));
        assert!(is_fine("http://[::1]:8787/mcp", &["[::1]:8787"]));
        for (target, host) in [
            ("http://localhost/mcp", "evil"),
            ("http://evil/mcp", "localhost"),
            ("http://localhost:81/mcp", "localhost"),
            ("http://localhost/mcp", "localhost:81"),
            ("https://localhost/mcp", "localhost:80"),
        ] {
            assert!(!is_fine(target, &[host]), "{target} {host}");
        }
    }
}
