//! The time after which a client gives up on a call: a program that takes longer is answered before.
//!
//! A client does not say how long it waits. The table is from reports of their users and from their sources; whoever is
//! not in it is taken to wait for a minute, as the SDKs do by default.

use std::str::FromStr;
use std::time::Duration;

/// The time after which a program is answered that is still running, before clients that wait for a minute give up.
const BEFORE_A_MINUTE: Duration = Duration::from_secs(45);

/// The patience of a kind of client.
struct Client {
    /// The beginning of the name by which it introduces itself, in lower case.
    name: &'static str,
    /// The time after which it is answered; `None` if it waits for as long as a program may take.
    within: Option<Duration>,
    /// True if each progress notification begins its time anew.
    extends: bool,
}

/// The clients of which something else is known than that they wait for a minute.
const CLIENTS: [Client; 6] = [
    // Its time-out (`MCP_TOOL_TIMEOUT`) is more than a day by default, but its HTTP client waits five minutes for the head
    // of a response (claude-code#69487, claude-agent-sdk-typescript#118).
    Client { name: "claude-code", within: Some(Duration::from_secs(4 * 60)), extends: false },
    // Ten minutes by default.
    Client { name: "gemini-cli", within: Some(Duration::from_secs(9 * 60)), extends: false },
    // It sets no time-out for calls of tools.
    Client { name: "visual studio code", within: None, extends: false },
    // These begin their time anew with each notification, if they request progress (opencode#28186, opencode#35204).
    Client { name: "inspector-client", within: Some(BEFORE_A_MINUTE), extends: true },
    Client { name: "mcp-inspector", within: Some(BEFORE_A_MINUTE), extends: true },
    Client { name: "opencode", within: Some(BEFORE_A_MINUTE), extends: true },
];

/// The time after which the call of a program is answered that is still running. The program goes on.
///
/// ```
/// use std::time::Duration;
/// use lispbox::server::ReplyWithin;
///
/// assert_eq!("90s".parse(), Ok(ReplyWithin::Time(Duration::from_secs(90))));
/// assert_eq!("never".parse(), Ok(ReplyWithin::Never));
/// assert!("soon".parse::<ReplyWithin>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyWithin {
    /// Before the client gives up, as far as is known: after 45 seconds, unless its name tells that it waits longer.
    #[default]
    ByClient,
    /// After this time, for all clients.
    Time(Duration),
    /// Not before its end.
    Never,
}

impl FromStr for ReplyWithin {
    type Err = String;

    fn from_str(text: &str) -> Result<ReplyWithin, String> {
        let mut limits = crate::lang::Limits::default();
        match text {
            "client" => Ok(ReplyWithin::ByClient),
            "never" => Ok(ReplyWithin::Never),
            // Written as the limits on time are.
            _ => match limits.set("total", text) {
                Ok(()) if !limits.total.is_zero() => Ok(ReplyWithin::Time(limits.total)),
                _ => Err(format!("expected a time such as `45s`, `never`, or `client`, got `{text}`")),
            },
        }
    }
}

impl ReplyWithin {
    /// Returns the time after which a call of that client is answered, if there is one. `has_progress` tells whether the
    /// client requested progress notifications for it.
    pub(super) fn of(self, client: Option<&str>, has_progress: bool) -> Option<Duration> {
        match self {
            ReplyWithin::Never => None,
            ReplyWithin::Time(time) => Some(time),
            ReplyWithin::ByClient => {
                let begins = |known: &&Client| {
                    let name = client.and_then(|client| client.get(..known.name.len()));
                    name.is_some_and(|name| name.eq_ignore_ascii_case(known.name))
                };
                match CLIENTS.iter().find(begins) {
                    Some(client) if client.extends && has_progress => None,
                    Some(client) => client.within,
                    None => Some(BEFORE_A_MINUTE),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_answered_before_they_give_up() {
        let within = |client, has_progress| ReplyWithin::ByClient.of(Some(client), has_progress);
        let minute = Some(BEFORE_A_MINUTE);
        for client in ["claude-ai", "local-agent-mode-files", "codex-mcp-client", "cursor-vscode", "mine", ""] {
            assert_eq!((within(client, false), within(client, true)), (minute, minute), "{client}");
        }
        assert_eq!(within("claude-code", false), Some(Duration::from_secs(240)));
        assert_eq!(within("Visual Studio Code - Insiders", false), None);
        assert_eq!((within("opencode", false), within("opencode", true)), (minute, None));
        assert_eq!(ReplyWithin::ByClient.of(None, true), minute);
        assert_eq!(
            ReplyWithin::Time(Duration::from_secs(1)).of(Some("claude-code"), true),
            Some(Duration::from_secs(1))
        );
        assert_eq!(ReplyWithin::Never.of(Some("claude-ai"), false), None);
    }

    #[test]
    fn a_time_is_written_as_a_limit_is() {
        assert_eq!("1500ms".parse(), Ok(ReplyWithin::Time(Duration::from_millis(1_500))));
        for wrong in ["0", "0s", "soon", "-1s", ""] {
            assert_eq!(
                wrong.parse::<ReplyWithin>(),
                Err(format!("expected a time such as `45s`, `never`, or `client`, got `{wrong}`"))
            );
        }
    }
}
