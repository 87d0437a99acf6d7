//! Checks of a request for the page that need no sign-in: its host, its origin, and the headers of its response.

use http::uri::{Authority, Uri};
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// The headers of each response: no script, no frame, no other site, no copy.
const HEADERS: [(HeaderName, &str); 8] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // With `no-referrer`, browsers would send forms of the page itself with the origin `null`.
    (header::REFERRER_POLICY, "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
];

/// Sets the headers of a response.
pub(super) fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns why a form may come from another web site than the page, or `None` if it comes from the page.
///
/// The origin must be that of the request itself, or one of `origins`: a proxy may pass on another host than the browser
/// asked for.
pub(super) fn foreign(headers: &HeaderMap, origins: &[String]) -> Option<&'static str> {
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin") {
        return Some("the form was sent by another web site");
    }
    let mut named = headers.get_all(header::ORIGIN).iter();
    match (named.next(), named.next()) {
        (Some(origin), None) => {
            let origin = origin.to_str().unwrap_or_default();
            let is_own = is_of_host(origin, headers) || origins.iter().any(|known| known.eq_ignore_ascii_case(origin));
            (!is_own).then_some(
                "the form was sent by another web site, or a proxy changes `Host`: name the origin with `serve --origin`",
            )
        }
        (Some(_), Some(_)) => Some("the form has several origins"),
        (None, _) => site.is_none().then_some("a browser that says from where a form comes is needed"),
    }
}

fn is_of_host(origin: &str, headers: &HeaderMap) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let usual = match origin.scheme_str() {
        Some("https") => 443,
        Some("http") => 80,
        _ => return false,
    };
    let Some(host) = host(headers) else { return false };
    let place = |authority: &Authority| {
        (authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(usual), authority.as_str().contains('@'))
    };
    origin.authority().is_some_and(|authority| place(authority) == place(&host))
}

fn host(headers: &HeaderMap) -> Option<Authority> {
    headers.get(header::HOST)?.to_str().ok()?.parse().ok()
}

/// Returns whether the cookie of a form is for HTTPS only: always, except on this machine itself. `None` if the form
/// came without HTTPS from another machine, where a browser would not keep it and others could have read the token.
pub(super) fn is_secure(headers: &HeaderMap) -> Option<bool> {
    let says_https = |name: &str, begins: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(|value| value.trim().to_ascii_lowercase().starts_with(begins))
    };
    let is_https =
        says_https("origin", "https://") == Some(true) || says_https("x-forwarded-proto", "https") == Some(true);
    let name = host(headers)?.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let is_here = name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    match is_https {
        true => Some(true),
        false => is_here.then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let named = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(named).collect()
    }

    #[test]
    fn a_form_comes_from_the_page_itself() {
        let is_own = |pairs: &[(&'static str, &'static str)]| {
            foreign(&headers(pairs), &["https://box.example.com".to_owned()]).is_none()
        };
        let (here, same) = (("host", "127.0.0.1:8787"), ("sec-fetch-site", "same-origin"));
        for origin in ["http://127.0.0.1:8787", "https://127.0.0.1:8787", "https://box.example.com"] {
            assert!(is_own(&[here, ("origin", origin), same]) && is_own(&[here, ("origin", origin)]), "{origin}");
        }
        assert!(is_own(&[here, same]));
        assert!(is_own(&[("host", "box"), ("origin", "https://box:443")]));
        for origin in
            ["http://127.0.0.1:8788", "http://127.0.0.1", "null", "https://evil.example.com", "", "127.0.0.1:8787"]
        {
            assert!(!is_own(&[here, ("origin", origin), same]), "{origin}");
        }
        assert!(!is_own(&[here]), "neither header");
        assert!(!is_own(&[here, ("origin", "http://127.0.0.1:8787"), ("sec-fetch-site", "same-site")]));
        assert!(!is_own(&[here, ("origin", "http://127.0.0.1:8787"), ("origin", "https://evil.example.com")]));
    }

    #[test]
    fn a_cookie_is_for_https_except_on_this_machine() {
        assert_eq!(is_secure(&headers(&[("host", "localhost:8787")])), Some(false));
        assert_eq!(is_secure(&headers(&[("host", "[::1]:8787"), ("origin", "http://[::1]:8787")])), Some(false));
        assert_eq!(
            is_secure(&headers(&[("host", "127.0.0.1:8787"), ("origin", "https://box.example.com")])),
            Some(true)
        );
        assert_eq!(is_secure(&headers(&[("host", "box"), ("x-forwarded-proto", "https")])), Some(true));
        assert_eq!(is_secure(&headers(&[("host", "box.example.com"), ("origin", "http://box.example.com")])), None);
        assert_eq!(is_secure(&headers(&[("host", "10.0.0.7:8787")])), None);
    }
}
