//! The names, schemas, contents and questions that the descriptions of the suite's scenarios require.

use serde_json::{Value, json};

/// Questions that are asked together, by the keys of their answers.
pub type Round = Vec<(&'static str, Value)>;

/// A PNG image of one red pixel.
const IMAGE: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// Tools without arguments.
const PLAIN: [&str; 23] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_tool_with_progress",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

/// Returns the list of tools.
pub fn tools() -> Vec<Value> {
    let tool =
        |name: &str, schema: Value| json!({"name": name, "description": format!("See {name}"), "inputSchema": schema});
    let taking = |name: &str, argument: &str| {
        tool(name, json!({"type": "object", "properties": {(argument): {"type": "string"}}, "required": [argument]}))
    };
    let in_header = json!({"type": "string", "x-mcp-header": "Region"});
    let mut all: Vec<Value> = PLAIN.iter().map(|name| tool(name, json!({"type": "object"}))).collect();
    all.extend([
        taking("test_sampling", "prompt"),
        taking("test_elicitation", "message"),
        tool(
            "test_custom_header",
            json!({"type": "object", "properties": {"region": in_header}, "required": ["region"]}),
        ),
        tool("json_schema_2020_12_tool", every_keyword()),
    ]);
    all
}

/// Returns a schema with keywords of JSON Schema 2020-12 that must arrive unchanged.
fn every_keyword() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }},
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Builds a result with a single text.
pub fn text(text: &str) -> Value {
    json!({"content": [text_block(text)]})
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image() -> Value {
    json!({"type": "image", "data": IMAGE, "mimeType": "image/png"})
}

fn embedded(uri: &str, media: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": media, "text": text}})
}

/// Returns the result of a tool whose result is constant.
pub fn result(tool: &str) -> Option<Value> {
    let content = match tool {
        "test_simple_text" => json!([text_block("This is a simple text response for testing.")]),
        "test_image_content" => json!([image()]),
        "test_audio_content" => json!([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => json!([
            text_block("Multiple content types test:"),
            image(),
            embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ]),
        "test_error_handling" => {
            let content = [text_block("This tool intentionally returns an error for testing")];
            return Some(json!({"content": content, "isError": true}));
        }
        "test_custom_header" | "json_schema_2020_12_tool" => json!([text_block("The arguments have arrived.")]),
        _ => return None,
    };
    Some(json!({"content": content}))
}

fn elicitation(message: &str, properties: Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
}

fn sampling(text: &str) -> Value {
    let messages = [json!({"role": "user", "content": text_block(text)})];
    json!({"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}})
}

/// Returns the request that a tool sends to the client during a call, in revisions before 2026-07-28.
pub fn request(tool: &str, arguments: &Value) -> Option<Value> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let titled = |items: [(&str, &str); 3]| -> Vec<Value> {
        items.iter().map(|(value, title)| json!({"const": value, "title": title})).collect()
    };
    let options = ["option1", "option2", "option3"];
    Some(match tool {
        "test_sampling" => sampling(argument("prompt")),
        "test_elicitation" => {
            let text = json!({"type": "string", "description": "What the user says"});
            elicitation(argument("message"), json!({"username": text, "email": text}), &["username", "email"])
        }
        "test_elicitation_sep1034_defaults" => elicitation(
            "Take these or others",
            json!({
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true},
            }),
            &[],
        ),
        "test_elicitation_sep1330_enums" => elicitation(
            "Choose",
            json!({
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {
                    "type": "string",
                    "oneOf": titled([("value1", "First"), ("value2", "Second"), ("value3", "Third")]),
                },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {
                    "type": "array",
                    "items": {"anyOf": titled([("value1", "First"), ("value2", "Second"), ("value3", "Third")])},
                },
            }),
            &[],
        ),
        _ => return None,
    })
}

/// Returns the rounds of questions that a client must answer before a tool or a prompt has a result, from 2026-07-28
/// on.
pub fn rounds(name: &str) -> Option<Vec<Round>> {
    let text = |key: &str, message: &str| elicitation(message, json!({(key): {"type": "string"}}), &[key]);
    let confirm = || ("confirm", elicitation("Please confirm", json!({"ok": {"type": "boolean"}}), &["ok"]));
    let user = || ("user_name", text("name", "What is your name?"));
    let roots = || ("client_roots", json!({"method": "roots/list", "params": {}}));
    let capital = || ("capital_question", sampling("What is the capital of France?"));
    Some(match name {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => vec![vec![user()]],
        "test_input_required_result_sampling" | "test_missing_capability" => vec![vec![capital()]],
        "test_input_required_result_list_roots" => vec![vec![roots()]],
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
            vec![vec![confirm()]]
        }
        "test_input_required_result_multiple_inputs" => {
            vec![vec![user(), ("greeting", sampling("Generate a greeting")), roots()]]
        }
        "test_input_required_result_multi_round" => vec![
            vec![("step1", text("name", "Step 1: What is your name?"))],
            vec![("step2", text("color", "Step 2: What is your favorite color?"))],
        ],
        "test_input_required_result_capabilities" => vec![vec![user(), capital()]],
        "test_input_required_result_prompt" => {
            vec![vec![("user_context", text("context", "What context should the prompt use?"))]]
        }
        _ => return None,
    })
}

/// Returns the list of resources.
pub fn resources() -> Vec<Value> {
    let resource =
        |uri: &str, name: &str, media: &str| json!({"uri": uri, "name": name, "description": name, "mimeType": media});
    vec![
        resource("test://static-text", "A text", "text/plain"),
        resource("test://static-binary", "An image", "image/png"),
    ]
}

/// Returns the contents of a resource.
pub fn contents(uri: &str) -> Option<Value> {
    Some(match uri {
        "test://static-text" => {
            json!({"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."})
        }
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": IMAGE}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            json!({"uri": uri, "mimeType": "application/json", "text": data.to_string()})
        }
    })
}

/// Returns the list of prompts.
pub fn prompts() -> Vec<Value> {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments: Vec<Value> =
            arguments.iter().map(|name| json!({"name": name, "description": name, "required": true})).collect();
        json!({"name": name, "description": format!("See {name}"), "arguments": arguments})
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

/// Returns the messages of a prompt.
pub fn messages(prompt: &str, arguments: &Value) -> Option<Vec<Value>> {
    let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
    let contents = match prompt {
        "test_simple_prompt" => vec![text_block("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![text_block(&format!("Prompt with arguments: arg1='{first}', arg2='{second}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
            text_block("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![image(), text_block("Please analyze the image above.")],
        "test_input_required_result_prompt" => vec![text_block("The context has arrived.")],
        _ => return None,
    };
    Some(contents.into_iter().map(|content| json!({"role": "user", "content": content})).collect())
}
