//! The codes of errors are one closed list, so that embedders can match on them.

use lispbox::lang::ErrorCode;
use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;

/// Returns the texts in quotes that look like codes where the sources create errors.
fn codes_in_sources() -> BTreeSet<String> {
    // A code is the first text of a call, possibly behind one other argument, or the value of a constant or field.
    let patterns = [
        r#"(?:Error::new|Error::unmet|Failure::of|Refused::new|Refused::session_lost|failed)\(\s*(?:reply,\s*)?"([A-Z][A-Za-z]+)""#,
        r#"const \w*(?:CODE|ERROR|MADE)\w*: &str = "([A-Z][A-Za-z]+)""#,
        r#"code = "([A-Z][A-Za-z]+)""#,
        r#"ToolErrorKind::\w+ => "([A-Z][A-Za-z]+)""#,
    ]
    .map(|pattern| Regex::new(pattern).expect("it is valid"));
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut codes = BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("the sources are there") {
            let path = entry.expect("the entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).expect("the file is readable");
                let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                for pattern in &patterns {
                    codes.extend(pattern.captures_iter(text).map(|found| found[1].to_owned()));
                }
            }
        }
    }
    codes
}

#[test]
fn every_code_in_the_sources_is_listed() {
    let used = codes_in_sources();
    assert!(used.len() > 60, "the patterns find only {}", used.len());
    let listed: BTreeSet<String> = ErrorCode::ALL.iter().map(|code| code.as_str().to_owned()).collect();
    let missing: Vec<_> = used.difference(&listed).collect();
    assert!(missing.is_empty(), "`ErrorCode` lacks {missing:?}");
}

#[test]
fn codes_are_read_back_and_others_are_kept() {
    for code in ErrorCode::ALL {
        assert_eq!(ErrorCode::from(code.as_str()), *code);
    }
    assert_eq!(ErrorCode::from("QuotaExceeded"), ErrorCode::Other("QuotaExceeded".to_owned()));
}
