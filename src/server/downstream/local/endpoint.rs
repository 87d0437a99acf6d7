//! An HTTP endpoint as a tool: one request per call.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ::http::{HeaderName, HeaderValue, Method, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use crate::lang::{Tool, ToolError, ToolReply};
use crate::server::config::{Action, LocalTool, Round, Template, rounds, same_origin};
use crate::server::config::{Answering, Function};
use crate::server::downstream::http::client;
use crate::server::downstream::result::text_or_json;
use crate::server::downstream::uncertain;
use crate::server::secrets::Secrets;
use crate::server::text::cut;

use super::{others, too_large, unfit};

/// The characters that are percent-encoded in an address. `.` is among them, since `..` leads elsewhere.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// Maximum number of bytes read, and of characters kept, of an error response.
const REFUSAL_READ: usize = 16 << 10;
const REFUSAL_KEPT: usize = 2_000;

/// A configured endpoint.
pub(super) struct Request {
    tool: LocalTool,
    most_output: usize,
    /// The secrets that are redacted from its error responses.
    secrets: Secrets,
    /// Created for the first call.
    client: OnceLock<Result<reqwest::Client, String>>,
}

impl Request {
    /// Creates the endpoint; its results have at most `most_output` bytes.
    pub(super) fn new(tool: LocalTool, most_output: usize, secrets: Secrets) -> Request {
        Request { tool, most_output, secrets, client: OnceLock::new() }
    }

    async fn ask(&self, arguments: Map<String, Value>) -> Result<ToolReply, ToolError> {
        let Action::Request { method, url, query, headers, takes_json } = &self.tool.action else {
            return Err(ToolError::failed("it is not an endpoint"));
        };
        let mut url = address(url, &arguments)?;
        for (name, template) in query {
            for round in rounds(template.arguments(), &arguments).map_err(unfit)? {
                url.query_pairs_mut().append_pair(name, &template.filled(&round));
            }
        }
        let client = self.client.get_or_init(|| client(url.as_str())).as_ref();
        let client = client.map_err(|problem| ToolError::failed(problem.clone()))?;
        let method = Method::from_bytes(method.as_bytes()).expect("it is one of the known methods");
        let mut request = client.request(method, url);
        for (name, template) in headers {
            for round in rounds(template.arguments(), &arguments).map_err(unfit)? {
                let header = HeaderName::try_from(name.as_str())
                    .map_err(|_| ToolError::failed(format!("`{name}` is not a valid header name")))?;
                let mut value = HeaderValue::try_from(template.filled(&round))
                    .map_err(|_| unfit(format!("the value of header `{name}` cannot be sent")))?;
                value.set_sensitive(true);
                request = request.header(header, value);
            }
        }
        if *takes_json {
            let body = others(&arguments, &self.tool.action.placed()).to_string();
            request = request.header(::http::header::CONTENT_TYPE, "application/json").body(body);
        }
        let answer = request.send().await.map_err(|problem| unavailable(&problem))?;
        let status = answer.status();
        if !status.is_success() {
            let (text, is_whole) = read(answer, REFUSAL_READ).await.unwrap_or_default();
            let text = self.secrets.redact_cut(&String::from_utf8_lossy(&text), false, !is_whole);
            return Err(refused(status, &text));
        }
        let kind = answer.headers().get(::http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_lowercase();
        let (bytes, is_whole) = read(answer, self.most_output).await?;
        if !is_whole {
            return Err(too_large(self.most_output));
        }
        Ok(reply(bytes, &kind))
    }
}

impl Function for Request {
    fn describe(&self) -> Tool {
        self.tool.tool.clone()
    }

    fn call(self: Arc<Self>, arguments: Map<String, Value>, _: Duration) -> Answering {
        Box::pin(async move { self.ask(arguments).await })
    }
}

/// Fills the arguments into the address. Each stays within its part of the path or query: it is percent-encoded, does
/// not turn its segment into `.` or `..`, and does not change scheme, user, host and port.
fn address(template: &Template, arguments: &Map<String, Value>) -> Result<reqwest::Url, ToolError> {
    let mut rounds = rounds(template.arguments(), arguments).map_err(unfit)?;
    let (Some(mut round), true) = (rounds.pop(), rounds.is_empty()) else {
        return Err(unfit("an argument in the address is a list, or missing".to_owned()));
    };
    let harmless: Round = round.keys().map(|name| (name.clone(), "x".to_owned())).collect();
    for (name, value) in &mut round {
        if value.is_empty() {
            return Err(unfit(format!("argument `{name}` is empty, but is part of the address")));
        }
        *value = utf8_percent_encode(value, ENCODED).to_string();
    }
    let (text, expected) = (template.filled(&round), template.filled(&harmless));
    let parsed = |text: &str| {
        let url = reqwest::Url::parse(text);
        url.map_err(|problem| ToolError::failed(format!("its `url` is not a valid address: {problem}")))
    };
    // An encoded argument contains none of these separators, so the parts of both texts correspond.
    let parts = |text: &str| text.split(['/', '\\', '?', '#']).map(str::to_owned).collect::<Vec<_>>();
    let leads_elsewhere = parts(&text).iter().zip(&parts(&expected)).any(|(part, as_expected)| {
        // The parser decodes `%2e` as a dot, and skips tabs and line ends.
        let mut read = part.to_ascii_lowercase().replace("%2e", ".");
        read.retain(|c| !matches!(c, '\t' | '\n' | '\r'));
        part != as_expected && matches!(&*read, "." | "..")
    });
    let url = parsed(&text)?;
    if leads_elsewhere || !same_origin(&url, &parsed(&expected)?) {
        return Err(unfit(
            "an argument in the address is `.` or `..`, or changes the address in another way".to_owned(),
        ));
    }
    Ok(url)
}

/// Reads at most `most` bytes of a response; returns them and whether they are complete.
async fn read(mut answer: reqwest::Response, most: usize) -> Result<(Vec<u8>, bool), ToolError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|problem| unavailable(&problem))? {
        if bytes.len() + chunk.len() > most {
            bytes.extend_from_slice(&chunk[..most - bytes.len()]);
            return Ok((bytes, false));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, true))
}

/// Converts a body: JSON if it is declared as such or parses as JSON, else text, else its media type and size.
fn reply(bytes: Vec<u8>, kind: &str) -> ToolReply {
    if bytes.is_empty() {
        return ToolReply::Json("null".to_owned());
    }
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim_end().ends_with("json"));
    match String::from_utf8(bytes) {
        Ok(text) if is_json && serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok() => ToolReply::Json(text),
        Ok(text) => text_or_json(text),
        Err(bytes) => {
            let size = bytes.as_bytes().len();
            ToolReply::Json(json!({"type": "blob", "mimeType": kind, "bytes": size}).to_string())
        }
    }
}

fn refused(status: StatusCode, text: &str) -> ToolError {
    let elsewhere = if status.is_redirection() { ", a redirect to another address" } else { "" };
    let said = if text.trim().is_empty() { String::new() } else { format!(": {}", cut(text.trim(), REFUSAL_KEPT)) };
    let message = format!("it answered with HTTP status {}{elsewhere}{said}", status.as_u16());
    ToolError::new(uncertain::kind_of_status(status.as_u16()), message)
}

/// Describes a failed request without naming the address.
fn unavailable(problem: &reqwest::Error) -> ToolError {
    ToolError::unavailable(if problem.is_connect() {
        "the connection was refused or the host was not found"
    } else if problem.is_redirect() {
        "it redirects in a loop"
    } else {
        "the HTTP request failed"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(template: &str, value: &str) -> Result<String, String> {
        let template = Template::parse(template).expect("a template");
        let arguments = Map::from_iter([("x".to_owned(), Value::from(value))]);
        address(&template, &arguments).map(|url| url.to_string()).map_err(|error| error.message)
    }

    #[test]
    fn an_argument_stays_in_its_segment() {
        for template in ["https://host/{x}", "https://host/.{x}", "https://host/%2e{x}/a", "https://host/a\\{x}"] {
            for value in ["..", ".", "%2e", "%2E%2e"] {
                if let Ok(url) = asked(template, value) {
                    assert!(url.starts_with("https://host/") && !url.ends_with("host/"), "{template} {value}: {url}");
                }
            }
        }
        assert!(asked("https://host/a/{x}", "..").is_err());
        assert!(asked("https://host/a/.{x}", ".").is_err());
        assert!(asked("https://host/a/%2e{x}", ".").is_err());
        assert!(asked("https://host/a\\{x}", "..").is_err());
        assert_eq!(asked("https://host/{x}", "a/../b").as_deref(), Ok("https://host/a%2F%2E%2E%2Fb"));
    }

    proptest! {
        #[test]
        fn no_argument_changes_where_an_address_leads(
            value in r"[-.:@/\\?#%&=a0 \r\n\t\u{FF0E}\u{2025}\u{200B}]{1,12}", at in 0..5usize
        ) {
            let template =
                ["https://host/{x}", "https://host/a{x}", "https://host/a/{x}/b", "https://host?{x}", "https://u:p@host:81/{x}#{x}"][at];
            if let Ok(url) = asked(template, &value) {
                let url = reqwest::Url::parse(&url).expect("an address");
                prop_assert_eq!(url.host_str(), Some("host"));
                prop_assert_eq!(url.port(), (at == 4).then_some(81));
                prop_assert_eq!(url.username(), if at == 4 { "u" } else { "" });
                prop_assert_eq!(url.path_segments().map(Iterator::count), Some([1, 1, 3, 1, 1][at]));
            }
        }
    }
}
