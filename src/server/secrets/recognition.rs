//! Tells which texts of a configuration are secrets: by the name that they have, and by what they look like.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Parts of names that people give to secrets.
const PARTS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
    "bearer",
    "webhook",
    "connectionstring",
    "connection_string",
    "conn_str",
    "database_url",
    "database_uri",
    "db_url",
    "db_uri",
];

/// Whole words of names that people give to secrets.
const WORDS: &[&str] = &["key", "pat", "auth", "pass", "pwd", "pw", "psw", "jwt", "dsn", "cred", "creds", "sas", "otp"];

/// Beginnings of tokens, each with the length from which on a text is one.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("rk_test_", 16),
    ("whsec_", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghu_", 16),
    ("ghs_", 16),
    ("ghr_", 16),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("glptt-", 16),
    ("gldt-", 16),
    ("glrt-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("xoxa-", 16),
    ("xoxs-", 16),
    ("xoxr-", 16),
    ("xoxe", 16),
    ("xapp-", 16),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 30),
    ("ya29.", 20),
    ("GOCSPX-", 16),
    ("eyJ", 20),
    ("npm_", 20),
    ("pypi-", 16),
    ("hf_", 16),
    ("gsk_", 16),
    ("xai-", 16),
    ("tvly-", 16),
    ("pplx-", 16),
    ("r8_", 16),
    ("SG.", 20),
    ("shpat_", 16),
    ("shpss_", 16),
    ("dop_v1_", 16),
    ("lin_api_", 16),
    ("ntn_", 16),
    ("figd_", 16),
    ("dapi", 32),
    ("AGE-SECRET-KEY-", 16),
    ("hvs.", 16),
    ("sbp_", 16),
    ("rnd_", 16),
    ("fc-", 16),
    ("BSA", 24),
    ("pat-", 16),
];

/// The schemes of the header `Authorization`.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey", "api-key", "digest"];

/// True for a name that people give to secrets: of a variable, a header, a parameter of a URL, an option.
pub(in crate::server) fn names_a_secret(name: &str) -> bool {
    let name = name.trim().trim_start_matches('-').to_lowercase().replace(['-', '.', ' '], "_");
    // The working folder, on every Unix.
    if matches!(name.as_str(), "pwd" | "oldpwd") {
        return false;
    }
    let mut words = name.split('_');
    PARTS.iter().any(|part| name.contains(part))
        || words.any(|word| {
            WORDS.contains(&word)
                || (word.ends_with("pass") && !matches!(word, "bypass" | "compass"))
                || word.ends_with("pwd")
                || word.ends_with("dsn")
        })
}

/// The credentials in a value of a configuration, by what they look like.
pub(in crate::server) fn credentials_in(text: &str) -> Vec<String> {
    let mut found = written_out(text);
    random(text, &mut found);
    found
}

/// Whether an address in a value says of a user what only that user knows, as that of a proxy may.
pub(in crate::server) fn has_credentials(text: &str) -> bool {
    let mut found = Vec::new();
    addresses(text, &mut found);
    !found.is_empty()
}

/// Whether a value begins like a path, whose parts may look like anything.
fn is_place(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || text.get(1..3) == Some(":\\")
}

/// The credentials that stand in a value in a known form.
pub(super) fn written_out(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    addresses(text, &mut found);
    assignments(text, &mut found);
    header(text, &mut found);
    schemes(text, &mut found);
    prefixed(text, &mut found);
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        fields(&value, &mut found);
    }
    found
}

/// Private keys in PEM, as wholes and line by line: programs print them so.
fn private_keys(text: &str, found: &mut Vec<String>) {
    let is_one = |text: &str| text.contains("-----BEGIN ") && text.contains("PRIVATE KEY");
    if !is_one(text) {
        return;
    }
    found.push(text.to_owned());
    // In a variable the lines are often written with `\n`.
    for line in text.replace("\\n", "\n").lines().map(str::trim) {
        if line.len() >= 16 && !line.starts_with("-----") {
            found.push(line.to_owned());
        }
    }
}

/// What addresses say of a user: `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<String>) {
    for (at, _) in text.match_indices("://") {
        let rest = &text[at + 3..];
        let whole = &rest[..rest.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(rest.len())];
        let authority = &whole[..whole.find(['/', '?', '#']).unwrap_or(whole.len())];
        // A password may have a `/` that should have been encoded; what is before it is then no port.
        let is_port =
            |text: &str| text.split_once(':').is_none_or(|(_, port)| port.bytes().all(|c| c.is_ascii_digit()));
        let user = match authority.rsplit_once('@') {
            Some((user, _)) => user,
            None if is_port(authority) => continue,
            None => match whole.rsplit_once('@') {
                Some((user, _)) => user,
                None => continue,
            },
        };
        let decoded = percent_decode_str(user).decode_utf8_lossy().into_owned();
        for user in [user, &decoded] {
            match user.split_once(':') {
                // With its user, as it stands in a header and before the host: a short password is known by that.
                Some((_, password)) if !password.is_empty() => {
                    found.extend([password.to_owned(), user.to_owned(), format!("{user}@")]);
                }
                _ if user.len() >= 16 || is_random(user) => found.push(user.trim_end_matches(':').to_owned()),
                _ => {}
            }
        }
    }
}

/// `password=…`, `--api-key=…`, `?token=…`, `Password=…;`.
fn assignments(text: &str, found: &mut Vec<String>) {
    let is_end = |c: char| c.is_whitespace() || matches!(c, '&' | ';' | '?' | ',');
    for piece in text.split(is_end) {
        let Some((name, value)) = piece.split_once('=') else { continue };
        let name = name.rsplit(['"', '\'', '(']).next().unwrap_or(name);
        if names_a_secret(name) {
            given(value, found);
        }
    }
    // A value may have what ends one elsewhere.
    if let Some((name, value)) = text.split_once('=')
        && !name.contains(is_end)
        && !name.contains("://")
        && names_a_secret(name)
    {
        given(value, found);
    }
}

/// `Authorization: …`, as an argument has it.
fn header(text: &str, found: &mut Vec<String>) {
    if let Some((name, value)) = text.split_once(':')
        && !name.contains(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c)))
        && !value.starts_with("//")
        && names_a_secret(name)
    {
        given(value, found);
    }
}

/// A value that belongs to the name of a secret.
fn given(value: &str, found: &mut Vec<String>) {
    let value = value.trim().trim_matches(['"', '\'']);
    if !value.is_empty() {
        found.push(value.to_owned());
        found.extend(percent_decode_str(value).decode_utf8().ok().filter(|text| text != value).map(|text| text.into()));
        // `Bearer TOKEN`: the token alone is as secret.
        found.extend(value.split_once(' ').map(|(_, rest)| rest.trim().to_owned()));
    }
}

/// `Bearer TOKEN`, and what stands in the `Basic` of HTTP.
fn schemes(text: &str, found: &mut Vec<String>) {
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let scheme = word.rsplit([':', '=', '"', '\'']).next().unwrap_or(word).to_lowercase();
        let Some(token) = words.peek().filter(|_| SCHEMES.contains(&scheme.as_str())) else { continue };
        let token = token.trim_matches(['"', '\'', ',', ';']);
        if token.len() < super::SHORTEST {
            continue;
        }
        if scheme == "basic"
            && let Some(user) = STANDARD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        {
            found.extend(user.split_once(':').map(|(_, password)| password.to_owned()));
            found.push(user);
        }
        found.push(token.to_owned());
    }
}

/// Tokens that are known by how they begin.
fn prefixed(text: &str, found: &mut Vec<String>) {
    if is_place(text) {
        return;
    }
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    for run in text.split(|c: char| !is_inside(c)) {
        if PREFIXES.iter().any(|(prefix, length)| run.len() >= *length && run.starts_with(prefix)) {
            found.push(run.to_owned());
        }
    }
}

/// Strings of JSON with the name of a secret, and what others have in them.
fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if names_a_secret(name) => given(text, found),
                    _ => {}
                }
                fields(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        // It is shorter than the text that it stands in, so this comes to an end.
        Value::String(text) => found.extend(written_out(text)),
        _ => {}
    }
}

/// Tokens that are known by consisting of random characters.
fn random(text: &str, found: &mut Vec<String>) {
    let text = text.trim();
    if is_place(text) || super::is_path(text) {
        return;
    }
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_+=".contains(c);
    for run in text.split(|c: char| !is_inside(c)) {
        let before = &text[..run.as_ptr() as usize - text.as_ptr() as usize];
        // The digest of something that is public, as images have it.
        let is_digest = before.ends_with("sha256:") || before.ends_with("sha512:");
        let run = run.trim_start_matches('-');
        let run = run.split_once('=').map(|(_, value)| value).filter(|value| !value.is_empty()).unwrap_or(run);
        if !is_digest && is_random(run) {
            found.push(run.to_owned());
        }
    }
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    if text.len() >= 32
        && text.chars().all(is_base64)
        && is_mixed(text)
        && text.chars().any(|c| c.is_ascii_uppercase())
        && !text.contains("//")
    {
        found.push(text.to_owned());
    }
}

/// Whether letters and digits without anything between them change so often that no person has written them.
fn is_random(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| run.len() >= 20 && is_mixed(run))
}

/// Whether letters and digits change often.
fn is_mixed(text: &str) -> bool {
    let kinds = text.bytes().map(|c| c.is_ascii_digit());
    kinds.clone().zip(kinds.skip(1)).filter(|(one, next)| one != next).count() >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "GITHUB_TOKEN",
            "api-key",
            "X-Api-Key",
            "DB_PASSWORD",
            "Authorization",
            "OPENAI_KEY",
            "GH_PAT",
            "DATABASE_URL",
            "SENTRY_DSN",
            "dsn",
            "PGPASS",
            "PGPASSWORD",
            "MYSQL_PWD",
            "SMTP_PASS",
            "JWT",
            "JWT_SECRET",
            "apiKey",
            "accessToken",
            "--api-key",
            "SLACK_WEBHOOK_URL",
            "ConnectionString",
            "client_secret",
            "Cookie",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in
            ["HOME", "KEYBOARD", "PATH", "monkey", "AUTHOR", "Accept", "PWD", "OLDPWD", "compass", "PORT", "BYPASS"]
        {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn credentials_are_known_by_what_they_look_like() {
        let cases = [
            ("postgres://app:S3cr3t-pw@db/prod", "S3cr3t-pw"),
            ("postgres://app:S3cr3t@db/prod", "app:S3cr3t@"),
            ("postgres://app:pa%2Fss%3Aword@db/prod", "pa/ss:word"),
            ("postgres://app:pa/ss#word@db/prod", "pa/ss#word"),
            ("https://9f8e7d6c5b4a39281706f5e4d3c2b1a0@o1.ingest.example.org/5", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
            ("host=db user=app password=hunter-22 dbname=x", "hunter-22"),
            ("Server=db;User Id=app;Password=hunter-22;", "hunter-22"),
            ("--api-key=abc-def-12", "abc-def-12"),
            ("https://example.org/mcp?token=abc-def-12&x=1", "abc-def-12"),
            ("Authorization: Bearer abc-def-12", "abc-def-12"),
            ("Bearer abc-def-12", "abc-def-12"),
            ("Basic YW5uOmh1bnRlci0yMg==", "hunter-22"),
            ("Basic YW5uOmh1bnRlci0yMg==", "ann:hunter-22"),
            (r#"{"Authorization": "Bearer abc-def-12"}"#, "abc-def-12"),
            (r#"{"x": [{"y": "postgres://a:hunter-22@h"}]}"#, "hunter-22"),
            ("ghp_abcdefghijklmnop", "ghp_abcdefghijklmnop"),
            ("--pat github_pat_abcdefghijklmnop", "github_pat_abcdefghijklmnop"),
            ("sk-proj-abcdefghijkl", "sk-proj-abcdefghijkl"),
            ("AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"),
            ("x=8f14e45fceea167a5a36dedd4bea2543", "8f14e45fceea167a5a36dedd4bea2543"),
            ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG"),
            (
                r"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\n-----END RSA PRIVATE KEY-----",
                "MIIEvQIBADANBgkqhkiG",
            ),
        ];
        for (text, credential) in cases {
            let found = credentials_in(text);
            assert!(found.iter().any(|one| one == credential), "{text}: {found:?}");
        }
    }

    #[test]
    fn ordinary_values_have_no_credentials() {
        for text in [
            "@modelcontextprotocol/server-filesystem",
            "mcp-server-fetch@2025.4.7",
            "claude-sonnet-4-20250514",
            "-y",
            "https://example.org:8080/a@b/mcp?page=2",
            "git+https://github.com/x/y@v1.2",
            "ssh://git@github.com/x/y",
            "/opt/sk-learn-environment-2/bin:/usr/bin",
            "/nix/store/0c2axkfx9d5g6hg8s3q7v2l1m4n5p6r7-coreutils/bin",
            "--port=8080",
            "user@example.org",
            "f47ac10b-58cc-4372-a567-0e02b2c3d479",
            "C:\\Users\\Ann",
            "en_US.UTF-8",
            "http://proxy:3128",
            "alpine@sha256:8f14e45fceea167a5a36dedd4bea25438f14e45fceea167a5a36dedd4bea2543",
        ] {
            assert_eq!(credentials_in(text), Vec::<String>::new(), "{text}");
        }
    }
}
