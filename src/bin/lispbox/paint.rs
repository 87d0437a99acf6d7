//! Colour, where somebody sees it: on a terminal, unless `NO_COLOR` is set.

use std::io::IsTerminal;

/// How text is shown in one place.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    colour: bool,
}

/// What a piece of text is, as far as its colour goes.
#[derive(Clone, Copy, Debug)]
pub enum Tone {
    /// A heading.
    Heading,
    /// Less important than what stands around it.
    Quiet,
    /// A program.
    Program,
    /// Something that is right.
    Good,
    /// Something that is wrong.
    Bad,
    /// A string, a character, a pattern.
    Text,
    /// A number.
    Number,
    /// A keyword, and what stands for itself alone.
    Keyword,
    /// The name of a form of the language.
    Form,
    /// A bracket whose partner is looked for.
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
    /// For standard output.
    pub fn for_stdout() -> Paint {
        Paint { colour: wanted(&std::io::stdout()) }
    }

    /// For standard error.
    pub fn for_stderr() -> Paint {
        Paint { colour: wanted(&std::io::stderr()) }
    }

    /// Without colour.
    #[cfg(test)]
    pub fn plain() -> Paint {
        Paint { colour: false }
    }

    /// True if anything is shown in colour.
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// The text in the colour of its tone.
    pub fn tone(self, tone: Tone, text: &str) -> String {
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.code())
        } else {
            text.to_owned()
        }
    }

    /// A rendered error: its code and its caret stand out, its suggestion too.
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
        // Of the excerpt, the source stands behind `NUMBER |`; what points into it has no number.
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
