//! The text of a configuration as a value, by the form that the name of its file tells.

use serde_json::Value;

/// True for a file in YAML or TOML, which few clients write.
pub(super) fn is_yaml_or_toml(file: &str) -> bool {
    matches!(ending(file).as_str(), "yaml" | "yml" | "toml")
}

/// Reads the text of a configuration as YAML or TOML, if the name of its file ends like that, or else as JSON with
/// comments and trailing commas. What it says is not looked at.
///
/// # Errors
/// A sentence that says where it is not readable.
pub fn read_document(text: &str, file: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    match ending(file).as_str() {
        "yaml" | "yml" => serde_norway::from_str(text).map_err(|problem| format!("not readable as YAML: {problem}")),
        "toml" => {
            toml::from_str(text).map_err(|problem| format!("not readable as TOML: {}", problem.to_string().trim_end()))
        }
        _ => json5::from_str(text).map_err(|problem| format!("not readable as JSON: {problem}")),
    }
}

fn ending(file: &str) -> String {
    let ending = std::path::Path::new(file).extension().unwrap_or_default();
    ending.to_string_lossy().to_lowercase()
}
