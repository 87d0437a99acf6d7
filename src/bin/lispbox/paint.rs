//! Coloured output: on a terminal, unless `NO_COLOR` is set.

use std::io::IsTerminal;

/// The colour setting of one output stream.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    colour: bool,
}

/// The role of a piece of text, which determines its colour.
#[derive(Clone, Copy, Debug)]
pub enum Tone {
    /// A heading.
    Heading,
    /// Text less important than its surroundings.
    Quiet,
    /// A program.
    Program,
    /// A success.
    Good,
    /// A failure.
    Bad,
    /// A string, a character, or a regular expression.
    Text,
    /// A number.
    Number,
    /// A keyword, or another literal that evaluates to itself.
    Keyword,
    /// The name of a special form or macro.
    Form,
    /// A matching bracket.
    Match,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Heading => "1",
            Tone::Quiet => "2",
            Tone::Program => "36",
            Tone::Good => "1;32",
            Tone::Bad => "1;31",
            Tone::Text => "32",
            Tone::Number => "33",
            Tone::Keyword => "35",
            Tone::Form => "34",
            Tone::Match => "1;4",
        }
    }
}

impl Paint {
    /// The setting for standard output.
    pub fn for_stdout() -> Paint {
        Paint { colour: wanted(&std::io::stdout()) }
    }

    /// The setting for standard error.
    pub fn for_stderr() -> Paint {
        Paint { colour: wanted(&std::io::stderr()) }
    }

    /// The setting without colour.
    #[cfg(test)]
    pub fn plain() -> Paint {
        Paint { colour: false }
    }

    /// True if text is coloured.
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// Colours a text by its tone.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }

    /// Colours a rendered error: its code, its caret and its suggestion.
    pub fn failure(self, rendered: &str) -> String {
        if !self.colour {
            return rendered.to_owned();
        }
        let lines = rendered.lines().enumerate().map(|(index, line)| self.failure_line(index, line));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn failure_line(self, index: usize, line: &str) -> String {
        if index == 0
            && let Some((code, message)) = line.split_once(": ")
        {
            return format!("{}: {message}", self.tone(Tone::Bad, code));
        }
        // In the excerpt, source lines begin with `NUMBER |`; lines that point into the source have no number.
        let bare = line.trim_start();
        if bare.starts_with("Did you mean") {
            self.tone(Tone::Good, line)
        } else if bare.starts_with(',') || bare.starts_with('`') || bare.starts_with("in ") || bare.starts_with("at ") {
            self.tone(Tone::Quiet, line)
        } else if bare.starts_with('|') {
            self.tone(Tone::Bad, line)
        } else {
            line.to_owned()
        }
    }
}

fn wanted(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
