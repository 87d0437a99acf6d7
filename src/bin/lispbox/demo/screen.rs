//! Output of the demo: a hundred columns, with colour on a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use super::costs::Cost;
use super::peer::Answer;
use super::steps::Step;
use crate::paint::{Paint, Tone};
use crate::terminal::line;

/// The width of the output in columns.
const WIDTH: usize = 100;
/// Maximum lines of a reply that are shown; the cost counts the whole reply.
const LINES: usize = 12;

/// The output of the demo.
pub struct Screen {
    paint: Paint,
}

impl Screen {
    /// Creates the output on standard output.
    pub fn of_stdout() -> Screen {
        Screen { paint: Paint::for_stdout() }
    }

    /// Shows the introduction.
    pub fn opening(&self) {
        line(&format!("{}: a program instead of forty tool calls", self.paint.tone(Tone::Heading, "lispbox demo")));
        line("");
        self.text(
            "An agent has a mailbox of 1000 messages with the usual tools. Below, lispbox runs as an MCP server \
             over stdio, as Claude Desktop would start it, with that mailbox as a downstream server in a separate \
             process. Each program is one call of `lisp_eval`; only its reply goes to the model.",
        );
    }

    /// Shows the introduction to guards.
    pub fn injection(&self, words: &str) {
        let title = self.paint.tone(Tone::Heading, "lispbox demo injection");
        line(&format!("{title}: where a steered value ends"));
        line("");
        self.text(
            "An agent may read the inbox and send mail. One mail tries to make it forward invoices to a stranger. The \
             policy has one guard: recipients have to come from the words of the user, which the client passes beside \
             the model's program.",
        );
        line("");
        line(&format!(
            "  policy    {}",
            self.paint.tone(Tone::Program, "{tool: mail/send-email, argument: [to, cc, bcc], from: [user]}")
        ));
        line(&format!("  the user  {words}"));
    }

    /// Shows the last lines about guards.
    pub fn guarded(&self) {
        line("");
        self.text(
            "The guard looks at values, not at texts: whoever carries the address, and however it is written, it did not \
             come from the user. Next: `policy: {preset: careful}` in a configuration, and docs/guards.md.",
        );
    }

    /// Shows the tools that the model sees, through lispbox and directly.
    pub fn tools(&self, through: &[String], direct: &[String]) {
        line("");
        line(&format!("  the model sees    {}", through.join(", ")));
        line(&format!("  instead of        {}", direct.join(", ")));
    }

    /// Shows a program that is about to run.
    pub fn program(&self, number: usize, step: &Step) {
        let title = format!(" {number}  {} ", step.title);
        let rule = "─".repeat(WIDTH.saturating_sub(title.chars().count() + 2));
        line("");
        line(&format!("──{}{}", self.paint.tone(Tone::Heading, &title), self.paint.tone(Tone::Quiet, &rule)));
        for text in step.program.lines() {
            line(format!("  {}", self.paint.tone(Tone::Program, text)).trim_end());
        }
        if let Some(fuel) = step.fuel {
            line(&self.paint.tone(Tone::Quiet, &format!("  with limits {{\"fuel\": {fuel}}}")));
        }
    }

    /// Shows the reply to a program.
    pub fn reply(&self, answer: &Answer, took: Duration) {
        let tone = if answer.is_error { Tone::Bad } else { Tone::Good };
        let mut lines: Vec<String> = answer.text.lines().flat_map(|text| wrapped(text, WIDTH - 4)).collect();
        let hidden = lines.len().saturating_sub(LINES);
        if hidden > 1 {
            lines.truncate(LINES);
            lines.push(format!("… {hidden} more lines"));
        }
        line(&format!(
            "{} {}",
            self.paint.tone(tone, "→"),
            self.paint.tone(Tone::Quiet, &format!("{} ms", took.as_millis()))
        ));
        for text in lines {
            line(format!("    {text}").trim_end());
        }
    }

    /// Shows the cost of a step, through lispbox and directly.
    pub fn cost(&self, through: Cost, direct: Cost) {
        let through = format!("{} bytes, {} tokens", grouped(through.bytes), grouped(through.tokens));
        let direct = match direct.bytes {
            0 => "nothing new".to_owned(),
            _ => format!("{} bytes, {} tokens", grouped(direct.bytes), grouped(direct.tokens)),
        };
        let text = format!("  cost, about: {through}; the same tools called directly: {direct}");
        line(&self.paint.tone(Tone::Quiet, &text));
    }

    /// Shows a table of all costs, and how they are counted.
    pub fn table(&self, rows: &[(String, Cost, Cost)]) {
        let title = " what went to the model ";
        let rule = "─".repeat(WIDTH - 2 - title.chars().count());
        line("");
        line(&format!("──{}{}", self.paint.tone(Tone::Heading, title), self.paint.tone(Tone::Quiet, &rule)));
        line(&format!("{:48}{:>24}{:>28}", "", "through lispbox", "called directly"));
        line(&format!("{:48}{:>14}{:>10}{:>16}{:>12}", "", "bytes", "tokens", "bytes", "tokens"));
        let (mut through, mut direct) = (Cost::default(), Cost::default());
        for (name, one, other) in rows {
            line(&row(name, *one, *other));
            through += *one;
            direct += *other;
        }
        line(&self.paint.tone(Tone::Heading, &row("total", through, direct)));
        let factor = direct.tokens as f64 / through.tokens.max(1) as f64;
        line("");
        line(&self.paint.tone(Tone::Good, &format!("  About {factor:.0} times fewer tokens.")));
        line("");
        self.text(
            "How it is counted: names, descriptions and schemas of the tools once (the result of tools/list); then, \
             for each call, its arguments as JSON and all that it answered: the text, and on an error the record \
             beside it. Directly: the calls that the programs made, the same call never twice, with their full \
             results. Tokens are an estimate of those of o200k_base. Not counted: that a model reads all of it again at every \
             later turn, and what it would have to write to do the counting itself.",
        );
    }

    /// Shows the last line.
    pub fn ending(&self, took: Duration) {
        line("");
        let text = format!(
            "  {:.1} s in all. Next: `lispbox repl`, or attach `lispbox serve --config FILE`.",
            took.as_secs_f64()
        );
        line(&self.paint.tone(Tone::Quiet, &text));
    }

    /// Shows a paragraph.
    fn text(&self, text: &str) {
        for part in wrapped(text, WIDTH - 2) {
            line(&format!("  {}", part.trim_end()));
        }
    }
}

fn row(name: &str, through: Cost, direct: Cost) -> String {
    let mut text = format!("  {name:46}");
    let number = |number: usize| if number == 0 { "-".to_owned() } else { grouped(number) };
    for (count, width) in [(through.bytes, 14), (through.tokens, 10), (direct.bytes, 16), (direct.tokens, 12)] {
        let _ = write!(text, "{:>width$}", number(count));
    }
    text
}

/// Formats `1234567` as `1,234,567`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Wraps a line into pieces of at most `width` characters, at spaces if possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut length = 0;
    for piece in text.split_inclusive(' ').flat_map(|word| pieces(word, width)) {
        if length > 0 && length + piece.trim_end().chars().count() > width {
            lines.push(String::new());
            length = 0;
        }
        length += piece.chars().count();
        if let Some(last) = lines.last_mut() {
            last.push_str(&piece);
        }
    }
    lines
}

/// Splits a word that is longer than a line.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = word.chars().collect();
    characters.chunks(width.max(1)).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped() {
        let lines = |text: &str| wrapped(text, 5).iter().map(|part| part.trim_end().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines("one two three"), ["one", "two", "three"]);
        assert_eq!(lines("a b c d"), ["a b c", "d"]);
        assert_eq!(lines("abcdefgh i"), ["abcde", "fgh i"]);
        assert_eq!(lines(""), [""]);
        assert_eq!(lines("  indented"), ["", "inden", "ted"]);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(["0", "999", "1,000", "12,345,678"], [0, 999, 1000, 12345678].map(grouped));
    }
}
