//! Any text as a configuration file: it is accepted, or the error names the file and the expected content.

use lispbox::server::Configuration;

/// Checks one input.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let variable = |name: &str| (name != "MISSING").then(|| format!("<{name}>"));
    match Configuration::parse(&text, "servers.json", &variable) {
        Ok(configuration) => {
            let mut names: Vec<&str> = configuration.servers.iter().map(|server| server.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), configuration.servers.len(), "each server has a name of its own");
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert!(error.to_string().starts_with("servers.json: "));
        }
    }
}
