//! The commands of the prompt, which begin with a colon: `:help` and others.
//!
//! An entry is a command if its first word is the name of one. A single word that is similar to such a name is treated
//! as a misspelled command; every other keyword is a program that evaluates to itself.

use lispbox::lang::internal::closest;

/// A command of the prompt.
pub struct CommandEntry {
    /// The name, with the colon.
    pub name: &'static str,
    /// The optional argument.
    pub argument: &'static str,
    /// A summary of the command.
    pub summary: &'static str,
}

const fn entry(name: &'static str, argument: &'static str, summary: &'static str) -> CommandEntry {
    CommandEntry { name, argument, summary }
}

/// All commands.
pub const COMMANDS: [CommandEntry; 6] = [
    entry(":help", "[NAME]", "this page, or what a function, form or tool is for"),
    entry(":env", "", "what this session defines"),
    entry(":limits", "[NAME VALUE]", "the limits of an evaluation; sets one: `:limits fuel 1e9`"),
    entry(":time", "", "shows or hides what an evaluation spent"),
    entry(":more", "", "the rest of a result that was folded"),
    entry(":quit", "", "exits, like Ctrl-D"),
];

/// A parsed command.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Shows the help page, or the documentation of a name.
    Help(Option<&'a str>),
    /// Shows the definitions of the session.
    Env,
    /// Shows the limits, or sets one: name and value.
    Limits(Option<(&'a str, &'a str)>),
    /// Toggles or sets the display of what an evaluation spent.
    Time(Option<bool>),
    /// Shows the rest of a folded result.
    More,
    /// Ends the REPL.
    Quit,
    /// An invalid command, with the error message.
    Wrong(String),
}

/// Words that end other REPLs, accepted here too.
const FAREWELLS: [&str; 5] = ["exit", "quit", "(exit)", "(quit)", ":exit"];

/// Parses an entry as a command; `None` if it is a program.
pub fn parse(entry: &str) -> Option<Command<'_>> {
    let entry = entry.trim();
    if FAREWELLS.contains(&entry) {
        return Some(Command::Quit);
    }
    if !entry.starts_with(':') {
        return None;
    }
    let (name, argument) = entry.split_once(char::is_whitespace).unwrap_or((entry, ""));
    let argument = argument.trim();
    let names = || COMMANDS.iter().map(|command| command.name);
    let Some(known) = COMMANDS.iter().find(|command| command.name == name) else {
        let nearest = if argument.is_empty() { closest(name, names()) } else { None }?;
        let names: Vec<&str> = names().collect();
        return Some(Command::Wrong(format!(
            "there is no command `{name}`; did you mean `{nearest}`? There are {}\n(as a value, write `(identity {name})`)",
            names.join(" ")
        )));
    };
    if known.argument.is_empty() && !argument.is_empty() && name != ":time" {
        return Some(Command::Wrong(format!("`{name}` takes no argument, got `{argument}`")));
    }
    Some(match name {
        ":help" if argument.is_empty() => Command::Help(None),
        ":help" => Command::Help(Some(argument.trim_matches(['\'', '"', '(', ')']))),
        ":env" => Command::Env,
        ":limits" if argument.is_empty() => Command::Limits(None),
        ":limits" => match argument.split_once(|c: char| c == '=' || c.is_whitespace()) {
            Some((limit, value)) => Command::Limits(Some((limit.trim_start_matches(':'), value.trim()))),
            None => Command::Wrong(format!("`:limits {argument}` needs a value: `:limits {argument} VALUE`")),
        },
        ":time" => match argument {
            "" => Command::Time(None),
            "on" => Command::Time(Some(true)),
            "off" => Command::Time(Some(false)),
            _ => Command::Wrong(
                "`:time` shows or hides what each evaluation spent; `(time …)` measures one form".to_owned(),
            ),
        },
        ":more" => Command::More,
        _ => Command::Quit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_names_are_commands_and_other_keywords_programs() {
        assert_eq!(parse(" :help\n"), Some(Command::Help(None)));
        assert_eq!(parse(":help map"), Some(Command::Help(Some("map"))));
        assert_eq!(parse(":limits fuel 1e9"), Some(Command::Limits(Some(("fuel", "1e9")))));
        assert_eq!(parse(":limits memory=1 GiB"), Some(Command::Limits(Some(("memory", "1 GiB")))));
        assert_eq!(parse(":time off"), Some(Command::Time(Some(false))));
        assert_eq!(parse("(quit)"), Some(Command::Quit));
        for program in [":a", ":sender", ":helpful-things", "[:help]", ":hepl 1", "help", ""] {
            assert_eq!(parse(program), None, "{program}");
        }
    }

    #[test]
    fn what_is_nearly_a_command_is_told_so() {
        let wrong = |entry: &str| match parse(entry) {
            Some(Command::Wrong(message)) => message,
            other => panic!("{entry}: {other:?}"),
        };
        assert!(wrong(":hlep").contains("did you mean `:help`?"), "{}", wrong(":hlep"));
        assert!(wrong(":limit").contains(":limits"));
        assert!(wrong(":more of it").contains("takes no argument"));
        assert!(wrong(":limits fuel").contains("needs a value"));
    }
}
