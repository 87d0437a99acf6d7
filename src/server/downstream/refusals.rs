//! Recognises the refusals by which a server says that a call does not fit its tools: they may have changed.
//!
//! MCP has a code for that in errors. Many servers report it in a result instead, in the words of their SDK.

use rmcp::model::{CallToolResponse, ErrorCode};
use rmcp::service::ServiceError;

/// Maximum length of a text that is looked at, in bytes; longer ones are results.
const LONGEST: usize = 4_000;

/// Words of the SDKs, in lower case.
const WORDS: &[&str] = &[
    "unknown tool",
    "tool not found",
    "no such tool",
    "no tool named",
    "validation error",
    "invalid argument",
    "invalid params",
    "invalid parameters",
    "unexpected keyword argument",
    "missing required",
    "unrecognized key",
];

/// Returns whether an answer to a call is such a refusal.
pub(super) fn is_of_list(answer: &Result<CallToolResponse, ServiceError>) -> bool {
    match answer {
        Err(ServiceError::McpError(error)) => {
            matches!(error.code, ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND) || has_words(&error.message)
        }
        Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => {
            result.content.iter().filter_map(|block| block.as_text()).any(|text| has_words(&text.text))
        }
        _ => false,
    }
}

/// Returns true if a text has such words.
pub(super) fn has_words(text: &str) -> bool {
    if text.len() > LONGEST {
        return false;
    }
    let text = text.to_lowercase();
    let is_tool_missing = text.contains("tool") && text.contains("not found");
    is_tool_missing || WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_the_sdks_are_recognised() {
        for text in [
            "Unknown tool: t",
            "MCP error -32602: Tool t not found",
            "Input validation error: Additional properties are not allowed ('y' was unexpected)",
            "1 validation error for call[t]\ny\n  Unexpected keyword argument",
        ] {
            assert!(has_words(text), "{text}");
        }
        for text in ["no such mailbox", "file not found", "quota is used up", ""] {
            assert!(!has_words(text), "{text}");
        }
    }
}
