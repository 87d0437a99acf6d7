//! The kinds of responses that a client accepts. MCP demands both JSON and event streams in `Accept`; clients that say
//! less are served as far as that is possible.

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::StreamExt;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use rmcp::model::{ErrorCode, RequestId};

use crate::server::transport::envelope::Envelope;

use super::refusal::failed;

const JSON: &str = "application/json";
const STREAM: &str = "text/event-stream";

/// What MCP demands, in the words of most clients.
const BOTH: &str = "application/json, text/event-stream";

/// Maximum size of a stream that becomes one reply, in bytes.
const LARGEST: usize = 64 << 20;

/// Marks a request whose client does not say that it reads event streams: it is answered in JSON.
#[derive(Clone, Copy)]
pub(super) struct JsonAlone;

/// Completes the `Accept` of a client that names less than MCP demands, but nothing else; returns whether the reply is
/// to be JSON.
pub(super) fn complete(method: &Method, headers: &mut HeaderMap) -> Option<JsonAlone> {
    if is_both(headers) {
        return None;
    }
    let ranges = ranges(headers);
    let names = |range: &str| ranges.iter().any(|named| named == range);
    let is_any = ranges.is_empty() && !headers.contains_key(header::ACCEPT) || names("*/*");
    let takes_stream = names(STREAM);
    match *method {
        Method::GET if is_any || names("text/*") => {
            headers.insert(header::ACCEPT, HeaderValue::from_static(STREAM));
            None
        }
        Method::POST if is_any || names(JSON) || names("application/*") => {
            headers.insert(header::ACCEPT, HeaderValue::from_static(BOTH));
            (!takes_stream).then_some(JsonAlone)
        }
        _ => None,
    }
}

/// True if `Accept` says what MCP demands, in the usual words.
pub(super) fn is_both(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::ACCEPT).iter();
    given.next().is_some_and(|accept| accept == BOTH) && given.next().is_none()
}

/// Returns the media ranges of `Accept`, without those of weight 0.
fn ranges(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges = values.flat_map(|value| value.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next()?.to_ascii_lowercase();
        let is_refused = |part: &str| {
            let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
            weight.and_then(|weight| weight.parse::<f64>().ok()) == Some(0.0)
        };
        (!name.is_empty() && !parts.any(is_refused)).then_some(name)
    });
    ranges.collect()
}

/// Returns the reply to a request as JSON, without the notifications before it. A stream in which the server asks the
/// client for something stays a stream: without it the request could not be answered.
pub(super) async fn as_json(response: Response, id: Option<&RequestId>) -> Response {
    let is_stream = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == STREAM);
    let Some(id) = id.filter(|_| is_stream) else { return response };
    let (mut parts, body) = response.into_parts();
    let mut pieces = body.into_data_stream();
    let (mut text, mut read) = (Vec::new(), 0);
    while let Some(Ok(piece)) = pieces.next().await {
        text.extend_from_slice(&piece);
        if text.len() > LARGEST {
            break;
        }
        while let Some(length) = event_length(&text[read..]) {
            let message = data(&text[read..read + length]);
            read += length;
            let envelope = Envelope::of(&message);
            if envelope.has_method() && envelope.has_id() {
                let rest = futures::stream::once(async { Ok(Bytes::from(text)) }).chain(pieces);
                return Response::from_parts(parts, Body::from_stream(rest));
            }
            if !envelope.has_method() && envelope.id().as_ref() == Some(id) {
                parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
                return Response::from_parts(parts, Body::from(message));
            }
        }
    }
    let message = "the stream of the reply ended without it, or it is too large for a client that reads no streams";
    failed(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::INTERNAL_ERROR, Some(id.clone()), message)
}

/// Returns the length of the first event in a text, with the blank line that ends it.
fn event_length(text: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, b"\n\n").map(|end| end + 2)
}

/// Returns the data of an event.
fn data(event: &[u8]) -> Vec<u8> {
    let lines = event.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data:"));
    let lines: Vec<&[u8]> = lines.map(<[u8]>::trim_ascii).collect();
    lines.join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(method: Method, accept: &[&'static str]) -> (Option<String>, bool) {
        let values = accept.iter().map(|value| (header::ACCEPT, HeaderValue::from_static(value)));
        let mut headers: HeaderMap = values.collect();
        let is_json = complete(&method, &mut headers).is_some();
        (headers.get(header::ACCEPT).map(|value| value.to_str().expect("text").to_owned()), is_json)
    }

    #[test]
    fn clients_that_name_less_than_both_kinds_get_json() {
        let both = Some("application/json, text/event-stream".to_owned());
        for accept in [&[] as &[&str], &["*/*"], &["application/json"], &["application/*"], &["text/html, */*;q=0.8"]] {
            assert_eq!(completed(Method::POST, accept), (both.clone(), true), "{accept:?}");
        }
        for accept in [&["application/json, text/event-stream"] as &[&str], &["text/event-stream", "*/*"]] {
            assert_eq!(completed(Method::POST, accept), (both.clone(), false), "{accept:?}");
        }
        for accept in ["text/event-stream", "text/html", "application/json;q=0", "*/*;q=0.000"] {
            assert_eq!(completed(Method::POST, &[accept]), (Some(accept.to_owned()), false), "{accept}");
        }
        let stream = Some(STREAM.to_owned());
        assert_eq!(completed(Method::GET, &[]), (stream.clone(), false));
        assert_eq!(completed(Method::GET, &["*/*"]), (stream, false));
        assert_eq!(completed(Method::GET, &[JSON]), (Some(JSON.to_owned()), false));
    }

    #[test]
    fn events_are_taken_apart() {
        let text = b"id: 1\ndata:\n\ndata: {\"a\":\ndata: 1}\n\nrest";
        let first = event_length(text).expect("an event");
        assert_eq!(data(&text[..first]), b"");
        let second = event_length(&text[first..]).expect("another");
        assert_eq!(data(&text[first..first + second]), b"{\"a\":\n1}");
        assert_eq!(event_length(&text[first + second..]), None);
    }
}
