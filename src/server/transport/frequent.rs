//! Encodes and decodes the messages that are sent most, calls of tools and their results, as what they are.
//!
//! rmcp tries one type after the other, up to twenty for a result, and formats an error for each that does not fit. A
//! message that is not exactly of the form here is left to it.

use std::any::Any;

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, CallToolResult, ClientNotification, ClientRequest,
    ClientResult, ContentBlock, JsonRpcMessage, JsonRpcRequest, JsonRpcVersion2_0, MetaObject, RequestId, ServerResult,
};
use rmcp::model::{ServerNotification, ServerRequest};
use rmcp::service::{RxJsonRpcMessage, ServiceRole};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A field that may not be there: with it the message is of another kind.
#[derive(Default)]
struct Absent;

impl<'de> Deserialize<'de> for Absent {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Absent, D::Error> {
        Err(D::Error::custom("the field does not belong here"))
    }
}

/// A request to call a tool.
#[derive(Deserialize)]
struct Call {
    // Decided first: almost all other messages differ here.
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    params: CallToolRequestParams,
    #[serde(default, rename = "result")]
    _result: Absent,
    #[serde(default, rename = "error")]
    _error: Absent,
}

/// The result of a tool call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Returned {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    result: Fields,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Fields {
    content: Vec<ContentBlock>,
    #[serde(default, deserialize_with = "present")]
    structured_content: Option<Value>,
    is_error: Option<bool>,
    #[serde(rename = "_meta")]
    meta: Option<MetaObject>,
}

/// Reads a value, `null` too, as one that is there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Returns the text of a call of a tool, as a client sends it.
///
/// # Errors
/// Fails if the parameters cannot be encoded.
pub(in crate::server) fn text_of_call(id: &RequestId, params: &CallToolRequestParams) -> serde_json::Result<Vec<u8>> {
    #[derive(Serialize)]
    struct Called<'c> {
        jsonrpc: JsonRpcVersion2_0,
        id: &'c RequestId,
        method: CallToolRequestMethod,
        params: &'c CallToolRequestParams,
    }
    serde_json::to_vec(&Called { jsonrpc: JsonRpcVersion2_0, id, method: CallToolRequestMethod, params })
}

/// Returns the call of a tool in this text, with the id of its request.
pub(in crate::server) fn tool_call(text: &[u8]) -> Option<(RequestId, CallToolRequestParams)> {
    serde_json::from_slice(text).ok().map(|Call { id, params, .. }| (id, params))
}

/// Returns the message in this text if it calls a tool, as a server receives it.
pub(super) fn call<Role: ServiceRole>(text: &[u8]) -> Option<RxJsonRpcMessage<Role>> {
    let (id, mut params) = tool_call(text)?;
    let meta = params.meta.take();
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    let request = JsonRpcRequest::new(id, ClientRequest::CallToolRequest(request));
    same::<JsonRpcMessage<ClientRequest, ClientResult, ClientNotification>, _>(JsonRpcMessage::Request(request))
}

/// Returns the message in this text if it is the result of a tool call, as a client receives it.
pub(super) fn returned<Role: ServiceRole>(text: &[u8]) -> Option<RxJsonRpcMessage<Role>> {
    let Returned { id, result: Fields { content, structured_content, is_error, meta }, .. } =
        serde_json::from_slice(text).ok()?;
    let mut result = CallToolResult::default();
    result.result_type = None;
    result.content = content;
    result.structured_content = structured_content;
    result.is_error = is_error;
    result.meta = meta;
    let message = JsonRpcMessage::response(ServerResult::CallToolResult(result), id);
    same::<JsonRpcMessage<ServerRequest, ServerResult, ServerNotification>, _>(message)
}

/// Returns the value as what it is: a role determines its messages, which Rust cannot tell here.
pub(super) fn same<Known: Any, Wanted: Any>(value: Known) -> Option<Wanted> {
    (&mut Some(value) as &mut dyn Any).downcast_mut::<Option<Wanted>>()?.take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::service::{RoleClient, RoleServer};

    /// Asserts that a text is decoded here and by rmcp with the same outcome.
    fn is_decoded_alike<Role: ServiceRole>(text: &str, decode: fn(&[u8]) -> Option<RxJsonRpcMessage<Role>>) {
        let here = decode(text.as_bytes()).unwrap_or_else(|| panic!("it is decoded: {text}"));
        let by_rmcp: RxJsonRpcMessage<Role> = serde_json::from_str(text).expect("rmcp reads it");
        assert_eq!(format!("{here:?}"), format!("{by_rmcp:?}"));
    }

    #[test]
    fn a_call_is_what_rmcp_reads() {
        for params in [
            r#"{"name":"t"}"#,
            r#"{"name":"t","arguments":null}"#,
            r#"{"name":"t","arguments":{"a":[1,-2,3.5,1e300,18446744073709551615,"é\u00e9",null,{"b":{}}]}}"#,
            r#"{"_meta":{"progressToken":7,"x/y":{"z":1}},"name":"t","arguments":{},"unknown":1}"#,
            r#"{"name":"t","requestState":"s","inputResponses":{}}"#,
        ] {
            for id in ["1", "\"a\""] {
                let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#);
                is_decoded_alike::<RoleServer>(&text, call::<RoleServer>);
                let (id, params) = tool_call(text.as_bytes()).expect("a call");
                let here = text_of_call(&id, &params).expect("it is encoded");
                let by_rmcp = serde_json::to_value(call::<RoleServer>(text.as_bytes())).expect("rmcp encodes it");
                assert_eq!(serde_json::from_slice::<Value>(&here).expect("JSON"), by_rmcp);
            }
        }
    }

    #[test]
    fn a_result_is_what_rmcp_reads() {
        for result in [
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a","annotations":{"priority":0.5}}],"isError":true}"#,
            r#"{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":null}"#,
            r#"{"content":[],"structuredContent":{"a":[1,2.5]},"_meta":{"a/b":1},"isError":null}"#,
            r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n"}]}"#,
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#);
            is_decoded_alike::<RoleClient>(&text, returned::<RoleClient>);
        }
    }

    #[test]
    fn other_messages_are_left_to_rmcp() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"},"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"},"error":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}]"#,
        ] {
            assert!(call::<RoleServer>(text.as_bytes()).is_none(), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"task":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{"content":[]}}"#,
        ] {
            assert!(returned::<RoleClient>(text.as_bytes()).is_none(), "{text}");
        }
    }
}
