//! Names that users give to secrets: of variables, headers, URL parameters, options and fields.

use std::path::Path;

use crate::lang::internal::kebab;

/// Substrings of such names, in lower case and without separators.
const PARTS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "wachtwoord",
    "motdepasse",
    "contrasena",
    "contraseña",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "credential",
    "cookie",
    "bearer",
    "webhook",
    "connectionstring",
    "connstr",
    "databaseurl",
    "databaseuri",
    "dburl",
    "dburi",
    "sessionid",
    "sessid",
    "amzsignature",
    "googsignature",
];

/// Whole words of such names.
const WORDS: &[&str] = &[
    "key", "keys", "pat", "auth", "pass", "psw", "jwt", "cred", "creds", "sas", "otp", "sig", "hmac", "senha",
    "mnemonic",
];

/// Suffixes of words of such names without separators, such as `PRIVKEY` and `BINDPW`.
const ENDS: &[&str] = &["pass", "pwd", "pw", "dsn", "key"];

/// Words with such a suffix that have another meaning.
const OTHERS: &[&str] = &[
    "bypass",
    "compass",
    "monkey",
    "donkey",
    "turkey",
    "hotkey",
    "jockey",
    "hockey",
    "whiskey",
    "smokey",
    "pubkey",
    "publickey",
    "primarykey",
    "foreignkey",
];

/// True for a name that users give to secrets.
pub(in crate::server) fn names_a_secret(name: &str) -> bool {
    let name = kebab(name.trim());
    let words = || name.split(|c: char| !c.is_alphanumeric()).map(|word| word.trim_end_matches(char::is_numeric));
    let joined: String = words().collect();
    has_part(&joined)
        || words().any(|word| {
            WORDS.contains(&word) || (ENDS.iter().any(|end| word.ends_with(end)) && !OTHERS.contains(&word))
        })
}

/// True for a name with one of the [`PARTS`]. Names are short, so that to look at each place costs less than to prepare a
/// search for each part.
fn has_part(name: &str) -> bool {
    let name = name.as_bytes();
    let is_at = |rest: &[u8], part: &str| rest[0] == part.as_bytes()[0] && rest.starts_with(part.as_bytes());
    (0..name.len()).any(|at| PARTS.iter().any(|part| is_at(&name[at..], part)))
}

/// True for an environment variable whose value is a secret. The working folder, which Unix shells keep in `PWD`, is
/// not.
pub(in crate::server) fn is_secret_variable(name: &str, value: &str) -> bool {
    let is_folder = || value.starts_with('/') || Path::new(value).is_absolute();
    names_a_secret(name) && !(matches!(name, "PWD" | "OLDPWD") && is_folder())
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
            "databaseUrl",
            "SENTRY_DSN",
            "dsn",
            "PGPASS",
            "PGPASSWORD",
            "MYSQL_PWD",
            "SMTP_PASS",
            "JWT",
            "JWT_SECRET",
            "apiKey",
            "APIKey",
            "APIKEY2",
            "accessToken",
            "--api-key",
            "SLACK_WEBHOOK_URL",
            "ConnectionString",
            "client_secret",
            "Cookie",
            "pwd",
            "Pwd",
            "PWD",
            "--pwd",
            "OLDPWD",
            "signingKey",
            "openaiKey",
            "LDAP_BINDPW",
            "PRIVKEY",
            "SIGNKEY",
            "SESSIONID",
            "JSESSIONID",
            "session_id",
            "PHPSESSID",
            "sig",
            "X-Amz-Signature",
            "DB_PW1",
            "Passwort",
            "MOT_DE_PASSE",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in [
            "HOME",
            "KEYBOARD",
            "PATH",
            "monkey",
            "AUTHOR",
            "Accept",
            "compass",
            "PORT",
            "BYPASS",
            "SIGNATURE",
            "DESIGN",
            "hotKeyless",
            "SESSION_TYPE",
            "PIPE",
            "cwd",
            "",
        ] {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn the_working_folder_is_no_secret() {
        for name in ["PWD", "OLDPWD"] {
            assert!(!is_secret_variable(name, "/home/ann/gone"), "{name}");
            assert!(is_secret_variable(name, "Hunter2-Abcd"), "{name}");
        }
        for name in ["pwd", "Pwd", "MYSQL_PWD", "OldPwd"] {
            assert!(is_secret_variable(name, "/Hunter2-Abcd"), "{name}");
        }
    }
}
