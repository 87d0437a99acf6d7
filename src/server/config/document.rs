//! Parsing of a configuration text to a value, in the format given by the file name.

use serde_json::Value;

use crate::lang::Unclosed;

/// True for a YAML or TOML file, formats that few other clients use.
pub(super) fn is_yaml_or_toml(file: &str) -> bool {
    matches!(ending(file).as_str(), "yaml" | "yml" | "toml")
}

/// Parses the text of a configuration as YAML or TOML, according to the extension of the file name, or otherwise as
/// JSON with comments and trailing commas. Does not interpret the value.
///
/// # Errors
/// Returns a sentence that describes where the text is invalid.
pub fn read_document(text: &str, file: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    match ending(file).as_str() {
        "yaml" | "yml" => serde_norway::from_str(text).map_err(|problem| format!("not readable as YAML: {problem}")),
        "toml" => {
            // The full message repeats the line, which may contain a secret.
            toml::from_str(text).map_err(|problem: toml::de::Error| {
                let before = &text[..problem.span().map_or(0, |span| text.floor_char_boundary(span.start))];
                format!("not readable as TOML: line {}: {}", before.matches('\n').count() + 1, problem.message())
            })
        }
        _ => json5::from_str(text).map_err(|problem| format!("not readable as JSON: {}", json_problem(text, &problem))),
    }
}

/// Describes the error in a JSON text. If the text ends too early, reports the unclosed bracket or quote, which is more
/// helpful than the position of the end.
fn json_problem(text: &str, problem: &json5::Error) -> String {
    use json5::ErrorCode::{
        EofParsingArray, EofParsingBool, EofParsingComment, EofParsingEscapeSequence, EofParsingIdentifier,
        EofParsingNull, EofParsingNumber, EofParsingObject, EofParsingString, EofParsingValue,
    };
    // A string left open on the last line means a truncated file, even if a line break follows it.
    let kept = text.trim_end();
    let ends_in_string = problem.code() == Some(json5::ErrorCode::LineTerminatorInString)
        && Unclosed::in_json(kept)
            .is_some_and(|open| matches!(open.mark, '"' | '\'') && open.line == kept.lines().count());
    let is_at_end = ends_in_string
        || matches!(
            problem.code(),
            Some(
                EofParsingArray
                    | EofParsingBool
                    | EofParsingComment
                    | EofParsingEscapeSequence
                    | EofParsingIdentifier
                    | EofParsingNull
                    | EofParsingNumber
                    | EofParsingObject
                    | EofParsingString
                    | EofParsingValue
            )
        );
    if !is_at_end {
        return problem.to_string();
    }
    match Unclosed::in_json(kept) {
        _ if text.trim().is_empty() => "the file is empty".to_owned(),
        Some(open) => format!("the file ends at line {} before it is complete: {open}", text.lines().count()),
        None => format!("the file ends before it is complete ({problem})"),
    }
}

fn ending(file: &str) -> String {
    let ending = std::path::Path::new(file).extension().unwrap_or_default();
    ending.to_string_lossy().to_lowercase()
}
