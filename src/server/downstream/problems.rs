//! Why a request over HTTP has no answer: the cause, the next step, and the server's own words as data.

use std::borrow::Cow;
use std::error::Error;
use std::{fmt, io};

use reqwest::header::{CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{Response, Url};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{AuthRequiredError, StreamableHttpError};
use serde_json::Value;

use crate::lang::internal::foreign_text;
use crate::server::secrets::Secrets;
use crate::server::text::{cut, cut_bytes};

use super::http::causes;

/// Maximum number of bytes that are read of a response which refuses a request.
const LARGEST: usize = 64 << 10;

type Failure = StreamableHttpError<reqwest::Error>;

/// Maximum length of the words of a server that a message quotes, in bytes.
pub(super) const WORDS: usize = 300;

/// Maximum length of the words of a server that are kept before secrets are redacted in them, in bytes.
const KEPT: usize = 8 << 10;

/// The advice for a server that asks for authorization although a header has one.
pub(super) const NOT_ACCEPTED: &str = "; it does not accept the `Authorization` in its `headers`";

/// Returns words of a server as a message quotes them.
pub(super) fn quoted(words: &str, secrets: &Secrets) -> String {
    format!("\"{}\"", shown(words, secrets))
}

/// Returns words of a server on one line, without secrets, and of bounded length.
fn shown(words: &str, secrets: &Secrets) -> String {
    let kept = &words[..words.floor_char_boundary(KEPT)];
    let words = secrets.redact_cut(kept, false, kept.len() < words.len());
    cut_bytes(&foreign_text::line(&words), WORDS).into_owned()
}

/// A response that is not the answer that was asked for, with its words about the reason.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused {
    pub(super) status: u16,
    words: Option<String>,
    /// The type of its body.
    kind: Option<String>,
    redirect: Option<Redirect>,
    /// The scope that it requires.
    scope: Option<String>,
    /// The time that it asks to wait: a number of seconds or a date.
    wait: Option<String>,
}

/// A redirect that is not followed.
#[derive(Clone, Debug)]
enum Redirect {
    Nowhere,
    /// To an address on the server itself, once more.
    Again(String),
    /// To another server.
    Elsewhere(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HTTP status {}", self.status)
    }
}

impl Error for Refused {}

impl Refused {
    /// Reads a response with the beginning of its body, which is returned too.
    pub(super) async fn read(mut response: Response) -> (Refused, Vec<u8>) {
        let mut body = Vec::new();
        while body.len() < LARGEST
            && let Ok(Some(piece)) = response.chunk().await
        {
            body.extend_from_slice(&piece[..piece.len().min(LARGEST - body.len())]);
        }
        (Refused::of(&response, &body), body)
    }

    /// Describes a response and the beginning of its body.
    pub(super) fn of(response: &Response, body: &[u8]) -> Refused {
        let header = |name: &HeaderName| {
            response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let challenge = header(&WWW_AUTHENTICATE);
        let parameter = |name: &str| challenge.as_deref().and_then(|challenge| parameter(challenge, name));
        let redirect = || match header(&LOCATION).filter(|target| !target.is_empty()) {
            None => Redirect::Nowhere,
            Some(target) => {
                let is_here = response.url().join(&target).is_ok_and(|to| to.origin() == response.url().origin());
                // The query may have credentials.
                let target = target.split(['?', '#']).next().unwrap_or_default().to_owned();
                if is_here { Redirect::Again(target) } else { Redirect::Elsewhere(target) }
            }
        };
        Refused {
            status: response.status().as_u16(),
            words: words(body).or_else(|| parameter("error_description")).or_else(|| parameter("error")),
            kind: header(&CONTENT_TYPE),
            redirect: response.status().is_redirection().then(redirect),
            scope: parameter("scope"),
            wait: header(&RETRY_AFTER),
        }
    }

    /// Returns the error that carries this through rmcp.
    pub(super) fn error(self) -> Failure {
        StreamableHttpError::Io(io::Error::other(self))
    }

    /// Returns the error upon which rmcp renews a login and sends the request once more. It has room for the challenge
    /// alone, so the words of the body stand in it.
    pub(super) fn challenge(self) -> Failure {
        StreamableHttpError::AuthRequired(AuthRequiredError::new(self.words.unwrap_or_default()))
    }

    /// Describes the response without naming the address.
    pub(super) fn describe(&self, secrets: &Secrets) -> String {
        let begin = match self.status {
            200..=299 => {
                let kind = self.kind.as_deref().map(|kind| format!("`{}`", shown(kind, secrets)));
                let kind = kind.unwrap_or_else(|| "no type".to_owned());
                format!("its answer is not MCP: expected JSON or a stream of events, got {kind}")
            }
            401 => "it asks for authorization (HTTP status 401)".to_owned(),
            403 if self.words.is_none() => "it refuses our authorization (HTTP status 403)".to_owned(),
            403 => "it refused the request (HTTP status 403)".to_owned(),
            status => format!("it answered with HTTP status {status}"),
        };
        format!("{begin}{}", self.details(secrets))
    }

    /// Returns what a message says behind the status: the words of the server, and the next step.
    pub(super) fn details(&self, secrets: &Secrets) -> String {
        let mut details = match &self.redirect {
            Some(Redirect::Nowhere) => ", a redirect that does not say where to".to_owned(),
            Some(Redirect::Again(target)) => {
                format!(", a redirect to {} on itself that does not end", quoted(target, secrets))
            }
            Some(Redirect::Elsewhere(target)) => format!(
                ", a redirect to {}, which is not followed; if the server is there, that is its `url`",
                quoted(target, secrets)
            ),
            None => self.words.as_deref().map_or_else(String::new, |words| format!(": {}", quoted(words, secrets))),
        };
        if let Some(scope) = &self.scope {
            details.push_str(&format!("; it requires the scope {}", quoted(scope, secrets)));
        }
        if let Some(wait) = &self.wait {
            let unit = if wait.bytes().all(|byte| byte.is_ascii_digit()) { " s" } else { "" };
            details.push_str(&format!("; it asks to wait: {}{unit}", shown(wait, secrets)));
        }
        if matches!(self.status, 403 | 421) && self.names_host() {
            details.push_str("; it is to be called by another host name than that of the `url`, or to be told ours");
        }
        details
    }

    /// True if it objects to the host by whose name it was called.
    fn names_host(&self) -> bool {
        let words = self.words.as_deref().unwrap_or_default().to_lowercase();
        self.status == 421 || words.contains("host")
    }
}

/// Returns a parameter of a challenge, such as that of `scope="read write"`.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((before, behind)) = rest.split_once('=') {
        let key = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let (value, after) = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => behind.split_at(behind.find([',', ' ']).unwrap_or(behind.len())),
        };
        if key == name && !value.is_empty() {
            return Some(value.to_owned());
        }
        rest = after;
    }
    None
}

/// Returns the words of a body about the reason of a refusal.
fn words(body: &[u8]) -> Option<String> {
    const PLACES: [&str; 8] = [
        "/error/message",
        "/message",
        "/error_description",
        "/detail",
        "/error",
        "/errors/0/message",
        "/title",
        "/msg",
    ];
    let body = String::from_utf8_lossy(body);
    let value = serde_json::from_str::<Value>(&body).ok();
    let told = value.as_ref().and_then(|value| PLACES.into_iter().find_map(|place| value.pointer(place)?.as_str()));
    let is_page = body.trim_start().starts_with('<');
    let told = match told {
        Some(told) => Cow::Borrowed(told),
        None if is_page => Cow::Owned(text_of_page(&body)),
        None => body,
    };
    let told = told.trim();
    (!told.is_empty() && !matches!(told, "{}" | "[]" | "null")).then(|| told.to_owned())
}

/// Returns the text of a page of HTML, without its scripts and styles.
fn text_of_page(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    // Those whose end is still to be found: without one, it is not looked for again.
    let mut hidden = vec![("script", "</script"), ("style", "</style"), ("svg", "</svg")];
    while let Some((before, behind)) = rest.split_once('<') {
        text.push_str(before);
        text.push(' ');
        let begins =
            |(name, _): &(&str, &str)| behind.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        let end = match hidden.iter().position(begins) {
            None => behind,
            Some(which) => match behind.find(hidden[which].1) {
                Some(at) => &behind[at..],
                None => {
                    hidden.swap_remove(which);
                    behind
                }
            },
        };
        rest = end.split_once('>').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")];
    signs.into_iter().fold(text, |text, (name, sign)| text.replace(name, sign))
}

/// Returns the response that refused a request, if that is the cause of the error.
pub(super) fn refused<'a>(error: &'a (dyn Error + 'static)) -> Option<Cow<'a, Refused>> {
    causes(error).find_map(|cause| match cause.downcast_ref::<Failure>() {
        Some(StreamableHttpError::AuthRequired(challenge)) => {
            let words = Some(challenge.www_authenticate_header.clone()).filter(|words| !words.is_empty());
            Some(Cow::Owned(Refused { status: 401, words, ..Refused::default() }))
        }
        _ => cause.downcast_ref::<Refused>().map(Cow::Borrowed),
    })
}

/// Returns the HTTP status with which a server refused a request, if that is the cause of the error.
pub(super) fn status(error: &(dyn Error + 'static)) -> Option<u16> {
    let of_response = refused(error).map(|refused| refused.status);
    of_response.or_else(|| {
        causes(error).find_map(|cause| match cause.downcast_ref::<Failure>()? {
            StreamableHttpError::Client(request) => request.status().map(|status| status.as_u16()),
            StreamableHttpError::Auth(
                AuthError::AuthorizationRequired
                | AuthError::TokenRefreshRejected(_)
                | AuthError::TokenRefreshFailed(_),
            ) => Some(401),
            _ => None,
        })
    })
}

/// Describes a transport failure without naming the address.
pub(super) fn problem(error: &(dyn Error + 'static), secrets: &Secrets) -> String {
    if let Some(refused) = refused(error) {
        return refused.describe(secrets);
    }
    match causes(error).find_map(|cause| cause.downcast_ref::<Failure>()) {
        Some(StreamableHttpError::Client(request)) => failed(request),
        Some(StreamableHttpError::Auth(AuthError::AuthorizationRequired)) => {
            Refused { status: 401, ..Refused::default() }.describe(secrets)
        }
        Some(StreamableHttpError::Auth(AuthError::TokenRefreshRejected(words))) => {
            format!("its authorization server does not renew the login (HTTP status 401): {}", quoted(words, secrets))
        }
        Some(StreamableHttpError::Auth(AuthError::TokenRefreshFailed(words))) => {
            format!("the login could not be renewed: {}", quoted(words, secrets))
        }
        Some(StreamableHttpError::Deserialize(problem)) => format!("its answer is not MCP: {problem}"),
        Some(StreamableHttpError::SessionExpired) => "it has forgotten our session".into(),
        Some(StreamableHttpError::TransportChannelClosed | StreamableHttpError::UnexpectedEndOfStream) => {
            "its connection has ended".into()
        }
        _ => cut(&secrets.redact(&error.to_string()), 200),
    }
}

/// Describes why a request has no answer.
pub(super) fn failed(request: &reqwest::Error) -> String {
    match request.status() {
        Some(status) => Refused { status: status.as_u16(), ..Refused::default() }.describe(&Secrets::default()),
        None if request.is_connect() => unconnected(request),
        None if request.is_timeout() => "it did not answer in time".into(),
        None => broken(request),
    }
}

/// Returns the advice for the `url` of a server that has closed the connection before it answered anything, as some with TLS
/// do.
pub(super) fn advice_on_scheme(error: &(dyn Error + 'static)) -> &'static str {
    let request = causes(error).find_map(|cause| match cause.downcast_ref::<Failure>()? {
        StreamableHttpError::Client(request) => Some(request),
        _ => None,
    });
    match request.is_some_and(|request| is_plain(request) && !request.is_connect() && is_closed(request)) {
        true => "; a server with TLS has a `url` that begins with `https://`",
        false => "",
    }
}

const CLOSED: &str = "it closed the connection before it answered";

/// Returns whether a request went to an address without TLS.
fn is_plain(request: &reqwest::Error) -> bool {
    request.url().is_some_and(|url| url.scheme() == "http")
}

/// Returns whether the server has closed the connection in place of an answer.
fn is_closed(request: &reqwest::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset};
    causes(request).any(|cause| {
        let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
        matches!(kind, Some(BrokenPipe | ConnectionAborted | ConnectionReset))
            || cause.to_string().contains("closed before message completed")
    })
}

/// Describes how a connection broke.
fn broken(request: &reqwest::Error) -> String {
    if is_closed(request) {
        return CLOSED.into();
    }
    let mut last = String::new();
    for cause in causes(request) {
        last = cause.to_string();
        let says = |words: &[&str]| words.iter().any(|words| last.contains(words));
        if says(&["end of file before", "unexpected EOF"]) {
            return "it closed the connection in the middle of its answer".into();
        }
        if says(&["invalid HTTP version", "invalid HTTP header"]) {
            let tls = if is_plain(request) { "expected a `url` that begins with `https://`, or " } else { "expected " };
            return format!("its answer is not HTTP: {tls}another port");
        }
    }
    format!("the HTTP request failed: {}", cut(&last, 200))
}

/// Describes why there is no connection.
fn unconnected(request: &reqwest::Error) -> String {
    let proxy = request.url().and_then(proxy_variable);
    let named = proxy.unwrap_or("HTTPS_PROXY` or `HTTP_PROXY");
    let without = "`NO_PROXY` lists the hosts that are reached without it";
    let is_tunnel = causes(request).any(|cause| cause.to_string().contains("tunnel error"));
    for cause in causes(request) {
        if let Some(problem) = cause.downcast_ref::<rustls::Error>() {
            return untrusted(problem);
        }
        let words = cause.to_string();
        if words.ends_with("proxy authorization required") {
            return format!(
                "the proxy of `{named}` asks for a login, as in `http://USER:PASSWORD@HOST:PORT`; {without}"
            );
        }
        if words.ends_with("tunnel error: unsuccessful") {
            return format!("the proxy of `{named}` refused to connect to it; {without}");
        }
        let Some(what) = unreached(cause, &words) else { continue };
        return match (is_tunnel, proxy) {
            (true, _) => format!("the proxy of `{named}` cannot be used: {what}; {without}"),
            (false, Some(proxy)) => format!("{what}; requests go through the proxy of `{proxy}`; {without}"),
            (false, None) => what.to_owned(),
        };
    }
    let otherwise = "the connection was refused or the host was not found";
    if is_tunnel { format!("the proxy of `{named}` did not connect to it; {without}") } else { otherwise.into() }
}

/// Describes a cause for which a host was not reached.
fn unreached(cause: &(dyn Error + 'static), words: &str) -> Option<&'static str> {
    match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => return Some("the connection was refused"),
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof) => {
            return Some(CLOSED);
        }
        Some(io::ErrorKind::TimedOut) => return Some("it did not accept the connection in time"),
        _ => {}
    }
    let is_unknown = words.starts_with("dns error") || words.contains("failed to lookup address");
    is_unknown.then_some("the host was not found")
}

/// Returns the variable that names a proxy for an address.
fn proxy_variable(url: &Url) -> Option<&'static str> {
    if super::http::is_loopback(url) {
        return None;
    }
    let own = if url.scheme() == "https" { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let names = own.into_iter().chain(["ALL_PROXY", "all_proxy"]);
    names.into_iter().find(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
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
        rustls::Error::InvalidCertificate(Certificate::NotValidYet | Certificate::NotValidYetContext { .. }) => {
            "its certificate is not valid yet, or the clock of this machine is wrong".into()
        }
        rustls::Error::InvalidCertificate(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "its certificate is that of an authority (`CA:TRUE`), as `openssl req -x509` makes them; a server needs one \
             with `basicConstraints=CA:FALSE`"
                .into()
        }
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS at this port: expected a `url` that begins with `http://`, or another port".into()
        }
        rustls::Error::AlertReceived(alert) => format!(
            "it refused the TLS connection ({alert:?}): it may expect a certificate of the client, or another host name"
        ),
        other => format!("there is no TLS connection: {}", cut(&other.to_string(), 200)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_body_are_found_wherever_they_are() {
        let long = format!("<style>{}</style><h1>It&#39;s &lt;full&gt;</h1>", "x".repeat(500));
        for (body, expected) in [
            (r#"{"error": {"code": 1, "message": "no quota"}}"#, Some("no quota")),
            (r#"{"error": "invalid_token", "error_description": "too old"}"#, Some("too old")),
            (r#"{"title": "Gone", "status": 410}"#, Some("Gone")),
            (r#"{"errors": [{"message": "first"}, {"message": "second"}]}"#, Some("first")),
            (
                r#"{"detail": [{"loc": ["body"], "msg": "missing"}]}"#,
                Some(r#"{"detail": [{"loc": ["body"], "msg": "missing"}]}"#),
            ),
            ("plain\nwords", Some("plain\nwords")),
            (&long, Some("It's <full>")),
            ("<html></html>", None),
            ("{}", None),
            ("  ", None),
        ] {
            assert_eq!(words(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn the_parameters_of_a_challenge_are_read() {
        let challenge = r#"Bearer realm="x scope=no", error=insufficient_scope, scope="repo:write read""#;
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("repo:write read"));
        assert_eq!(parameter(challenge, "error").as_deref(), Some("insufficient_scope"));
        assert_eq!(parameter(challenge, "error_description"), None);
    }

    #[test]
    fn quoted_words_have_a_bounded_number_of_bytes_and_no_part_of_a_secret() {
        let secret = "sk-live-0123456789abcdef";
        let secrets = Secrets::default();
        secrets.add([secret]);
        let shown = quoted(&"é".repeat(400), &secrets);
        assert!(shown.len() <= WORDS + "\"\"…".len() && shown.ends_with("…\""), "{shown}");
        for blanks in 270..310 {
            let shown = quoted(&format!("{}{secret} is unknown", ".".repeat(blanks)), &secrets);
            assert!(!shown.contains("sk-l"), "{shown}");
        }
        let long = format!("{}{secret}", "x ".repeat(KEPT / 2 - 5));
        assert!(!quoted(&long, &secrets).contains("sk-l"));
    }
}
