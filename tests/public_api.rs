//! `docs/public-api.txt` lists every public item of the crates, so that a change of the API shows in a review.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that makes the test write the list instead of comparing it.
const UPDATE: &str = "LISPBOX_UPDATE_API";

/// Runs rustdoc for a crate and returns the path of its JSON. The output format is unstable, which rustdoc accepts only
/// with `RUSTC_BOOTSTRAP`; set for rustdoc alone, it does not invalidate compiled dependencies.
fn document(krate: &str, folder: &Path) -> PathBuf {
    let rustdoc = folder.join("rustdoc");
    std::fs::write(&rustdoc, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n").expect("the wrapper can be written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&rustdoc, std::fs::Permissions::from_mode(0o755)).expect("it can be made executable");
    }
    let ran = Command::new(env!("CARGO"))
        .args(["rustdoc", "--quiet", "--locked", "--lib", "--package", krate])
        .args(["--", "-Z", "unstable-options", "--output-format", "json"])
        .env("RUSTDOC", &rustdoc)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join(target);
    target.join("doc").join(format!("{}.json", krate.replace('-', "_")))
}

fn list(krate: &str, folder: &Path) -> Result<String, public_api::Error> {
    let api = public_api::Builder::from_rustdoc_json(document(krate, folder))
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()?;
    Ok(format!("# {krate}\n{api}\n"))
}

#[test]
fn the_public_api_is_the_one_that_is_listed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut listed = String::new();
    for krate in ["lispbox-lang", "lispbox-policy", "lispbox"] {
        match list(krate, folder.path()) {
            Ok(list) => listed.push_str(&list),
            // The format changes between versions of Rust.
            Err(problem) => {
                println!("SKIPPED: the JSON of this rustdoc cannot be read: {problem}");
                return;
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/public-api.txt");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, &listed).expect("the list can be written");
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    let (before, after) = (lines(&known), lines(&listed));
    let mut changes = String::new();
    for line in before.iter().filter(|line| !after.contains(*line)) {
        let _ = writeln!(changes, "- {line}");
    }
    for line in after.iter().filter(|line| !before.contains(*line)) {
        let _ = writeln!(changes, "+ {line}");
    }
    assert!(
        known == listed,
        "the public API differs from docs/public-api.txt; if that is intended, run `{UPDATE}=1 cargo test --test \
         public_api` and say it in CHANGELOG.md:\n{changes}"
    );
}

fn lines(text: &str) -> std::collections::BTreeSet<&str> {
    text.lines().collect()
}
