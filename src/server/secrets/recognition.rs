//! Recognition of secrets in a configuration by their form; [`names`](super::names) recognizes them by their names.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::{addresses, pairs};

/// Prefixes of tokens, each with the minimum length of the token.
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

/// The schemes of the `Authorization` header.
const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey", "api-key", "digest"];

/// Returns the credentials in a value of a configuration, recognized by their form.
pub(in crate::server) fn credentials_in(text: &str) -> Vec<String> {
    let mut found = written_out(text);
    random(text, &mut found);
    found
}

/// Returns whether a value contains an address with the credentials of a user, such as that of a proxy.
pub(in crate::server) fn has_credentials(text: &str) -> bool {
    let mut found = Vec::new();
    addresses::addresses(text, &mut found);
    !found.is_empty()
}

/// Returns whether a value begins like a path, whose parts may have any form.
fn is_place(text: &str) -> bool {
    text.starts_with(['/', '.', '~']) || text.get(1..3) == Some(":\\")
}

/// Returns the credentials in a value that have a known syntax.
pub(super) fn written_out(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    private_keys(text, &mut found);
    addresses::addresses(text, &mut found);
    pairs::assignments(text, &mut found);
    pairs::members(text, &mut found);
    pairs::words(text, &mut found);
    pairs::json(text, &mut found);
    schemes(text, &mut found);
    prefixed(text, &mut found);
    encoded_users(text, &mut found);
    bots(text, &mut found);
    hooks(text, &mut found);
    found
}

/// Private keys in PEM, as a whole and line by line, as programs may print them.
fn private_keys(text: &str, found: &mut Vec<String>) {
    let is_one = |text: &str| text.contains("-----BEGIN ") && text.contains("PRIVATE KEY");
    if !is_one(text) {
        return;
    }
    found.push(text.to_owned());
    // Variables often contain the lines separated by a literal `\n`.
    for line in text.replace("\\n", "\n").lines().map(str::trim) {
        if line.len() >= 16 && !line.starts_with("-----") {
            found.push(line.to_owned());
        }
    }
}

/// `Bearer TOKEN`, and the decoded credentials of HTTP `Basic`.
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

/// Tokens with a known prefix.
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

/// `user:password` in base64, as in HTTP headers, with or without a scheme.
fn encoded_users(text: &str, found: &mut Vec<String>) {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=_-".contains(c);
    for run in text.split(|c: char| !is_base64(c)) {
        let run = run
            .split_once('=')
            .map(|(_, value)| value)
            .filter(|value| !value.trim_matches('=').is_empty())
            .unwrap_or(run);
        let bare = run.trim_matches('=');
        // Shorter runs may decode to readable text by chance.
        if bare.len() < 12 {
            continue;
        }
        let decoded = STANDARD_NO_PAD.decode(bare).or_else(|_| URL_SAFE_NO_PAD.decode(bare));
        let Some(user) = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok()) else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.@+-".contains(c);
        if let Some((name, password)) = user.split_once(':')
            && !name.is_empty()
            && name.chars().all(is_name)
            && password.len() >= 4
            && password.bytes().all(|c| c.is_ascii_graphic())
        {
            found.extend([password.to_owned(), bare.to_owned(), run.to_owned()]);
            found.push(user);
        }
    }
}

/// Telegram bot tokens: `123456789:AAE…`.
fn bots(text: &str, found: &mut Vec<String>) {
    for (at, _) in text.match_indices(":AA") {
        let id = text[..at].bytes().rev().take_while(u8::is_ascii_digit).count();
        let is_inside = |c: &u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        let token = text.as_bytes()[at + 1..].iter().take_while(|c| is_inside(c)).count();
        if (6..=12).contains(&id) && token >= 30 {
            found.extend([&text[at - id..at + 1 + token], &text[at + 1..at + 1 + token]].map(str::to_owned));
        }
    }
}

/// Webhook addresses, to which anyone who knows them may post.
const HOOKS: &[&str] = &[
    "hooks.slack.com/",
    "hooks.slack-gov.com/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "hooks.zapier.com/hooks/",
    "webhook.office.com/",
    "maker.ifttt.com/trigger/",
    "hook.integromat.com/",
];

/// The paths of webhook addresses, and their parts.
fn hooks(text: &str, found: &mut Vec<String>) {
    for host in HOOKS {
        for (at, _) in text.match_indices(host) {
            let path = &text[at + host.len()..];
            let path = &path[..path.find(|c: char| c.is_whitespace() || "\"'`<>?#".contains(c)).unwrap_or(path.len())];
            let path = path.trim_end_matches('/');
            // The first path segment is the kind of the hook.
            let own = path.split_once('/').map(|(_, rest)| rest).filter(|rest| rest.contains('/')).unwrap_or(path);
            found.extend([path, own].map(str::to_owned));
            found.extend(path.rsplit('/').next().map(str::to_owned));
        }
    }
}

/// Tokens recognized by their random characters.
fn random(text: &str, found: &mut Vec<String>) {
    let text = text.trim();
    if is_place(text) || super::is_path(text) {
        return;
    }
    let is_inside = |c: char| c.is_ascii_alphanumeric() || "-_+=".contains(c);
    for run in text.split(|c: char| !is_inside(c)) {
        let before = &text[..run.as_ptr() as usize - text.as_ptr() as usize];
        // The digest of public data, as in image references.
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

/// Returns whether a run of letters and digits alternates so often that it was not written by a person.
pub(super) fn is_random(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| run.len() >= 20 && is_mixed(run))
}

/// Returns whether letters and digits alternate often.
fn is_mixed(text: &str) -> bool {
    let kinds = text.bytes().map(|c| c.is_ascii_digit());
    kinds.clone().zip(kinds.skip(1)).filter(|(one, next)| one != next).count() >= 4
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("Server=tcp:db;Uid=app;Pwd=Hunter2-Abcd;", "Hunter2-Abcd"),
            ("Driver={ODBC Driver 18};PWD={Hun;ter2-Abcd};", "Hun;ter2-Abcd"),
            ("CONN=DRIVER=x;PWD=Hunter2-Abcd", "Hunter2-Abcd"),
            ("Password=\"Hun;ter2, Abcd\";x=1", "Hun;ter2, Abcd"),
            ("User Id = app; Password = Hunter2-Abcd", "Hunter2-Abcd"),
            ("run --pwd Hunter2-Abcd x", "Hunter2-Abcd"),
            ("--pwd=Hunter2-Abcd", "Hunter2-Abcd"),
            ("pwd: Hunter2-Abcd", "Hunter2-Abcd"),
            ("user: app\npwd: Hunter2-Abcd\nx: y", "Hunter2-Abcd"),
            ("user: app\n  - pwd: Hunter2 Abcd\nx: y", "Hunter2 Abcd"),
            ("{user: app, pwd: Hunter2-Abcd}", "Hunter2-Abcd"),
            (r#"{"pwd":"Hunter2-Abcd"}"#, "Hunter2-Abcd"),
            (r#"--config={"x":{"pwd":"Hunter2-Abcd"}}"#, "Hunter2-Abcd"),
            (r#"{"pwd":"Hunter2-Abcd","#, "Hunter2-Abcd"),
            (r#"{\"pwd\":\"Hunter2-Abcd\"}"#, "Hunter2-Abcd"),
            ("https://example.org/x?pwd=Hunter2-Abcd&y=1", "Hunter2-Abcd"),
            ("https://example.org/x#token=Hunter2-Abcd", "Hunter2-Abcd"),
            ("https://x.example.net/?sv=1&sig=abcDEF%2B12345%3D", "abcDEF+12345="),
            ("Pwd: Hunter2-Abcd", "Hunter2-Abcd"),
            ("curl -H 'X-Api-Key: Hunter2-Abcd' x", "Hunter2-Abcd"),
            ("--header=X-Api-Key: Hunter2-Abcd", "Hunter2-Abcd"),
            ("form[password]=Hunter2-Abcd", "Hunter2-Abcd"),
            ("ann:S3cr3tProx1@proxy:3128", "S3cr3tProx1"),
            ("//ann:S3cr3tProx1@proxy", "S3cr3tProx1"),
            ("app:S3cr3t-pw9@db/prod", "S3cr3t-pw9"),
            ("app:s3cr/t-pw9@db", "s3cr/t-pw9"),
            ("--db=app:S3cr3t-pw9@db/prod", "S3cr3t-pw9"),
            ("MYDB=app:S3cr3t-pw9@10.0.0.7:5432", "S3cr3t-pw9"),
            ("user:S3cr3t-pw9@db", "S3cr3t-pw9"),
            (":S3cr3t-pw9@redis:6379", "S3cr3t-pw9"),
            ("root:S3cr3tGo9@tcp(127.0.0.1:3306)/x", "S3cr3tGo9"),
            ("root:S3cr3tGo9@/x", "S3cr3tGo9"),
            ("ann%40x.org:S3cr3tGo9@[::1]:80", "S3cr3tGo9"),
            ("--user=ann:S3cr3t-pw9", "S3cr3t-pw9"),
            ("-u ann:S3cr3t-pw9", "S3cr3t-pw9"),
            ("curl -u 'ann:S3cr3t-pw9' https://example.org", "S3cr3t-pw9"),
            (r#"[{"name":"API_KEY","value":"Hunter2-Abcd"}]"#, "Hunter2-Abcd"),
            (r#"{"pwd": 8127312398721}"#, "8127312398721"),
            (r#"{"tokens": ["Hunter2-Abcd"]}"#, "Hunter2-Abcd"),
            ("machine h login ann password S3cr3tNetrc9", "S3cr3tNetrc9"),
            ("password S3cr3tNetrc9", "S3cr3tNetrc9"),
            ("YW5uOlMzY3IzdEI2NDk=", "S3cr3tB649"),
            ("x=YW5uOlMzY3IzdEI2NDk=", "ann:S3cr3tB649"),
            ("123456789:AAE-abcdefghijklmnopqrstuvwxyz", "123456789:AAE-abcdefghijklmnopqrstuvwxyz"),
            (
                "https://api.telegram.org/bot123456789:AAE-abcdefghijklmnopqrstuvwxyz/getMe",
                "AAE-abcdefghijklmnopqrstuvwxyz",
            ),
            ("https://hooks.slack.com/services/T000/B000/XXXXabcdWXYZ", "T000/B000/XXXXabcdWXYZ"),
            ("https://hooks.slack.com/services/T000/B000/XXXXabcdWXYZ", "XXXXabcdWXYZ"),
            ("https://discord.com/api/webhooks/123/AbC-dEf", "123/AbC-dEf"),
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
            "proxy:3128",
            "localhost:8080",
            "//cdn.example.org/x@2.js",
            "12:30@room",
            "9:15pm@room5",
            "mailto:ann.smith2@example.org",
            "from:ann@example.org",
            "to:Ann.Smith@example.org",
            "user:ann.smith@example.org",
            "@ann:example.org",
            "Ann Smith <ann@example.org>",
            "ann@example.org:25",
            "git@github.com:x/y.git@v1",
            "ann@host:/srv/x@y",
            "npm:lodash@4.17.21",
            "npm:@scope/pkg@1.2.3",
            "alias:lodash@^4.17.21",
            "pkg:cargo/x@1.2.3",
            "registry:5000/img@sha256:8f14e45fceea167a5a36dedd4bea25438f14e45fceea167a5a36dedd4bea2543",
            "alpine:3.19@sha256:8f14e45fceea167a5a36dedd4bea25438f14e45fceea167a5a36dedd4bea2543",
            "C:\\Users\\ann@work",
            "/usr/bin:/opt/python@3.11/bin",
            "--user=1000:1000",
            "-u www-data:www-data",
            "-u ann",
            "http://token-service:8080/oauth/v2",
            "auth-server:1.2.3-alpine",
            r"\u@\h:\w\$ ${chroot:+($chroot)}\u@\h ",
            "if key == value then",
            "Password Generator",
            "a monkey: no",
            "Kubernetes/configuration",
            "alpine@sha256:8f14e45fceea167a5a36dedd4bea25438f14e45fceea167a5a36dedd4bea2543",
        ] {
            assert_eq!(credentials_in(text), Vec::<String>::new(), "{text}");
        }
    }

    mod properties {
        use super::*;
        use proptest::prelude::*;

        /// Spellings of names of secrets.
        const NAMES: &[&str] = &[
            "pwd",
            "PWD",
            "Pwd",
            "password",
            "API_KEY",
            "apiKey",
            "signingKey",
            "X-Api-Key",
            "LDAP_BINDPW",
            "sessionId",
            "auth.token",
            "db_dsn",
        ];
        /// Syntaxes of a value with a name; `@` is the name, `#` the value.
        const WITH_NAME: &[&str] = &[
            "@=#",
            "--@=#",
            "--@ #",
            "x --@ # y",
            "@: #",
            "@:#",
            "a: b\n@: #\nc: d",
            "{a: b, @: #}",
            r##"{"@":"#"}"##,
            r##"{"a":[{"@":"#"}]}"##,
            r##"[{"name":"@","value":"#"}]"##,
            r##"x={"@": "#"}"##,
            "https://h/x?a=b&@=#&c=d",
            "https://h/x#@=#",
            "Server=db;@=#;",
            "A=DRIVER=x;@=#",
            "a = b; @ = '#'; c = d",
            "curl -H '@: #' x",
        ];
        /// Syntaxes of a value without a name.
        const WITHOUT: &[&str] = &[
            "ann:#@db",
            "//ann:#@db/x",
            "x=ann:#@db:80/x",
            "x://ann:#@db",
            "--db=ann:#@tcp(db:80)/x",
            "a,ann:#@db",
            "--user=ann:#",
            "-u ann:#",
            "curl -u 'ann:#' x",
            "machine h login ann password #",
            "Bearer #",
        ];

        proptest! {
            #[test]
            fn credentials_are_found_in_every_syntax(value in "[A-Z][a-z]{3}[0-9][A-Za-z0-9+_.-]{3,12}[A-Z]", name in prop::sample::select(NAMES)) {
                for text in WITH_NAME {
                    // The `#` of a URL fragment is literal.
                    let text = text.replace("x#@", "x\0@").replace('#', &value).replace('\0', "#").replace('@', name);
                    prop_assert!(credentials_in(&text).contains(&value), "{}: {:?}", text, credentials_in(&text));
                }
                for text in WITHOUT {
                    let text = text.replace('#', &value);
                    prop_assert!(credentials_in(&text).contains(&value), "{}: {:?}", text, credentials_in(&text));
                    prop_assert!(!text.contains('@') || has_credentials(&text), "{}", text);
                }
            }
        }
    }
}
