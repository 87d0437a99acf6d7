//! The tools of the mailbox as listed to a client, described in the style of real mail servers.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

/// The tools.
pub fn tools() -> Vec<Tool> {
    let reading = || ToolAnnotations::new().read_only(true).open_world(false);
    vec![
        tool("fetch-emails", FETCH, fetch_schema(), reading()),
        tool("search-emails", SEARCH, search_schema(), reading()),
        tool("get-email", GET, get_schema(), reading()),
        tool("get-thread", THREAD, thread_schema(), reading()),
        tool(
            "list-labels",
            LABELS,
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
            reading(),
        ),
        tool(
            "send-email",
            SEND,
            send_schema(),
            ToolAnnotations::new().read_only(false).destructive(true).open_world(true),
        ),
    ]
}

fn tool(name: &'static str, description: &'static str, schema: Value, annotations: ToolAnnotations) -> Tool {
    let Value::Object(schema) = schema else { unreachable!("the schemas below are objects") };
    Tool::new(name, description, Arc::new(schema)).with_annotations(annotations)
}

const FETCH: &str = "Fetch messages from the mailbox, newest first, with their full bodies. Use offset and limit to page \
    through the mailbox, and the filters to narrow it down. Each message has id, thread_id, sender {name, email}, \
    recipients, subject, body, labels, unread, size in bytes, date (ISO 8601) and attachments.";

fn fetch_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 1000, "default": 100,
                "description": "Maximum number of messages to return"
            },
            "offset": {
                "type": "integer", "minimum": 0, "default": 0,
                "description": "Number of matching messages to skip, for paging"
            },
            "unread_only": {"type": "boolean", "default": false, "description": "Return only messages that have not been read"},
            "label": {"type": "string", "description": "Return only messages with this label; list-labels has the names"},
            "since": {
                "type": "string", "format": "date-time",
                "description": "Return only messages received at or after this time, for example 2026-11-01T00:00:00Z"
            }
        },
        "additionalProperties": false
    })
}

const SEARCH: &str = "Full-text search over the mailbox, newest first. All words must occur. Returns summaries without \
    bodies: id, thread_id, sender, subject, date, unread and a snippet; get-email returns the whole message.";

fn search_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "description": "Words to search for, case-insensitive"},
            "in": {
                "type": "string", "enum": ["any", "subject", "body", "sender"], "default": "any",
                "description": "Where to look for the words"
            },
            "limit": {
                "type": "integer", "minimum": 1, "maximum": 100, "default": 20,
                "description": "Maximum number of summaries to return"
            }
        },
        "required": ["query"],
        "additionalProperties": false
    })
}

const GET: &str = "Get one message by its id, with its full body and the list of its attachments.";

fn get_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"id": {"type": "string", "description": "The message id, for example msg-0042"}},
        "required": ["id"],
        "additionalProperties": false
    })
}

const THREAD: &str = "Get all messages of a thread, oldest first, with their full bodies.";

fn thread_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"thread_id": {"type": "string", "description": "The thread id, as messages carry it"}},
        "required": ["thread_id"],
        "additionalProperties": false
    })
}

const LABELS: &str = "List all labels of the mailbox with the number of messages and of unread messages under each.";

const SEND: &str = "Send an email on behalf of the user, optionally as a reply in an existing thread. In this sample \
    mailbox nothing leaves the machine: the message is kept as a draft and its id is returned.";

fn send_schema() -> Value {
    let addresses = |description: &str| json!({"type": "array", "items": {"type": "string", "format": "email"}, "description": description});
    let mut to = addresses("Recipients");
    to["minItems"] = json!(1);
    json!({
        "type": "object",
        "properties": {
            "to": to,
            "cc": addresses("Recipients of a copy"),
            "subject": {"type": "string", "description": "Subject line"},
            "body": {"type": "string", "description": "Plain-text body"},
            "reply_to_id": {"type": "string", "description": "Id of the message that this one answers"}
        },
        "required": ["to", "subject", "body"],
        "additionalProperties": false
    })
}
