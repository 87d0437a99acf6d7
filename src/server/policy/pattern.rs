//! Rules that name tools: in any spelling by which a program can call them, or as patterns of such spellings.

use crate::lang::value::map::canonical;
use crate::server::config::is_unreadable;

use super::glob::{self, Folded, Token};
use super::names::{Known, Name, Names, ToolName};

/// The most readings of one pattern; only names with many `__` have more than a few.
const READINGS: usize = 1_024;

/// A tool, or a pattern of tools, as an operator writes it: `tool`, `server/tool` or `mcp__server__tool`, and
/// `mcp__server` for all tools of a server.
///
/// Names are compared in canonical form, without `-` and `_` and without case, as the names in programs are. In a pattern
/// `*` stands for any characters, `?` for one, `[a-z]` for one of several, `{a,b}` for one of several texts; `\` takes
/// its meaning from the character behind it. A `-` or `_` beside a wildcard is the end of a word.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPattern {
    text: String,
    readings: Vec<Vec<Reading>>,
}

/// How surely a pattern fits a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It may mean this tool or another one. That counts for rules that forbid, and not for rules that allow.
    Possible,
    /// It means this tool.
    Certain,
}

/// One way to read a pattern.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    /// Nothing stands for any server.
    server: Option<Part>,
    /// Nothing stands for all tools.
    tool: Option<Part>,
    /// Only the name of the server as it is written.
    is_literal: bool,
    /// A wildcard stands for the marks between server and tool.
    is_guess: bool,
}

/// What is compared with one name.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Exact { text: String, canonical: String },
    Glob { tokens: Vec<Token>, folded: Vec<Folded> },
}

impl Part {
    fn new(tokens: &[Token], is_server: bool) -> Part {
        let text: Option<String> =
            tokens.iter().map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect();
        match text {
            Some(text) => {
                // The name of a server has `-` for what cannot stand in a symbol.
                let readable: String = text.chars().filter(|c| !(is_server && is_unreadable(*c))).collect();
                Part::Exact { canonical: canonical(&readable), text }
            }
            None => {
                let readable = |token: &Token| match token {
                    Token::Char(c) if is_server && is_unreadable(*c) => Token::Char('-'),
                    token => token.clone(),
                };
                let tokens: Vec<Token> = tokens.iter().map(readable).collect();
                Part::Glob { folded: glob::fold(&tokens), tokens }
            }
        }
    }

    fn is_exact(&self) -> bool {
        matches!(self, Part::Exact { .. })
    }

    fn fits_literally(&self, name: &str) -> bool {
        match self {
            Part::Exact { text, .. } => text == name,
            Part::Glob { tokens, .. } => glob::fits_literally(tokens, name),
        }
    }

    fn fit(&self, name: &Name<'_>, known: Known<'_>) -> Option<Fit> {
        if self.fits_literally(name.text) {
            return Some(Fit::Certain);
        }
        let fits = match self {
            Part::Exact { canonical, .. } => *canonical == name.canonical,
            Part::Glob { folded, .. } => glob::fits_folded(folded, &name.kebab),
        };
        if fits {
            return match (known, self.is_exact()) {
                (Known::Nothing, _) => Some(Fit::Possible),
                (Known::Alone, _) => Some(Fit::Certain),
                (Known::Tools(names), is_exact) => {
                    match (names.twins(name).any(|twin| self.fits_literally(twin)), is_exact) {
                        (false, _) => Some(Fit::Certain),
                        (true, false) => Some(Fit::Possible),
                        (true, true) => None,
                    }
                }
            };
        }
        match self {
            Part::Glob { folded, .. } if glob::fits_any_spelling(folded, &name.canonical) => Some(Fit::Possible),
            _ => None,
        }
    }
}

/// A pattern of other names than those of tools, compared as [`ToolPattern`] compares each of its parts.
#[derive(Clone, Debug)]
pub(in crate::server) struct NamePattern(Vec<Part>);

impl NamePattern {
    /// Reads a name or a pattern.
    ///
    /// # Errors
    /// Says what is wrong with it, as a clause.
    pub(in crate::server) fn new(text: &str) -> Result<NamePattern, String> {
        Ok(NamePattern(glob::parse(text)?.iter().map(|tokens| Part::new(tokens, false)).collect()))
    }

    /// Whether it fits a name, or may fit it.
    pub(in crate::server) fn fits(&self, name: &Name<'_>) -> bool {
        self.0.iter().any(|part| part.fit(name, Known::Alone).is_some())
    }
}

impl Reading {
    fn new(server: Option<&[Token]>, tool: Option<&[Token]>) -> Reading {
        let server = server.map(|tokens| Part::new(tokens, true));
        Reading { server, tool: tool.map(|tokens| Part::new(tokens, false)), is_literal: false, is_guess: false }
    }

    /// True for the name of a tool in full.
    fn is_exact(&self) -> bool {
        !self.is_guess
            && self.tool.as_ref().is_some_and(Part::is_exact)
            && self.server.as_ref().is_none_or(Part::is_exact)
    }

    fn fit(&self, tool: &ToolName<'_>) -> Option<Fit> {
        let server = self.fit_server(&tool.server, tool.servers.map_or(Known::Alone, Known::Tools))?;
        let tool = self.tool.as_ref().map_or(Some(Fit::Certain), |part| part.fit(&tool.tool, tool.tools))?;
        Some(if self.is_guess { Fit::Possible } else { server.min(tool) })
    }

    fn fit_server(&self, name: &Name<'_>, known: Known<'_>) -> Option<Fit> {
        match &self.server {
            None => Some(Fit::Certain),
            Some(part) if self.is_literal => part.fits_literally(name.text).then_some(Fit::Certain),
            Some(part) => part.fit(name, known),
        }
    }

    /// Whether it names one of these servers in full.
    fn names_any<'n>(&self, mut servers: impl Iterator<Item = &'n str>) -> bool {
        self.server.as_ref().is_some_and(Part::is_exact)
            && servers.any(|server| self.fit_server(&Name::new(server), Known::Alone).is_some())
    }

    /// Whether its server is a pattern.
    fn has_wild_server(&self) -> bool {
        self.server.as_ref().is_some_and(|part| !part.is_exact())
    }
}

impl ToolPattern {
    /// Reads a name or a pattern.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn new(text: &str) -> Result<ToolPattern, String> {
        let wrong = |problem: String| format!("expected a pattern such as `search-*`, got {text:?}: {problem}");
        let alternatives = glob::parse(text).map_err(wrong)?;
        let readings: Vec<Vec<Reading>> = alternatives.iter().map(|tokens| readings(tokens)).collect();
        if readings.iter().map(Vec::len).sum::<usize>() > READINGS {
            return Err(wrong(format!("it can be read in more than {READINGS} ways")));
        }
        Ok(ToolPattern { text: text.to_owned(), readings })
    }

    /// Just that name of a tool.
    pub(super) fn of_tool(name: &str) -> ToolPattern {
        let tokens: Vec<Token> = name.chars().map(Token::Char).collect();
        ToolPattern { text: name.to_owned(), readings: vec![vec![Reading::new(None, Some(&tokens))]] }
    }

    /// As the operator wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it fits a tool of a server, or may fit it.
    pub fn fits(&self, server: &str, tool: &str) -> bool {
        self.fit(&ToolName::alone(server, tool)).is_some()
    }

    /// How it fits a tool, and whether it is its name in full.
    pub(super) fn fit(&self, tool: &ToolName<'_>) -> Option<(Fit, bool)> {
        let is_single = self.readings.len() == 1;
        let alternatives = self.readings.iter().filter_map(|readings| fit(readings, tool));
        alternatives.map(|(fit, is_exact)| (fit, is_exact && is_single)).max()
    }

    /// Whether it may concern tools of a server, as far as the server's name says.
    pub(super) fn concerns(&self, server: &str, servers: &Names) -> bool {
        let (name, known) = (Name::new(server), Known::Tools(servers));
        let is_named = |reading: &&Reading| reading.has_wild_server() || reading.names_any(servers.texts());
        self.readings.iter().any(|readings| {
            // Read as the name of a tool alone it concerns all servers, unless it begins with one that is there.
            let is_qualified = readings.iter().any(|reading| is_named(&reading));
            let mut readings = readings.iter().filter(|reading| !is_qualified || reading.server.is_some());
            readings.any(|reading| reading.fit_server(&name, known).is_some())
        })
    }
}

/// How the best reading fits. One that may as well mean another tool, of a server that is there, is not certain.
fn fit(readings: &[Reading], tool: &ToolName<'_>) -> Option<(Fit, bool)> {
    let mut best = None;
    for (at, reading) in readings.iter().enumerate() {
        let Some(fit) = reading.fit(tool) else { continue };
        let mut others = readings.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
        let own = std::iter::once(tool.server.text);
        let is_ambiguous = others.any(|other| match (&reading.server, tool.servers) {
            (None, None) => other.has_wild_server() || other.names_any(own.clone()),
            (None, Some(servers)) => other.has_wild_server() || other.names_any(servers.texts()),
            (Some(_), None) => false,
            (Some(_), Some(servers)) => other.names_any(servers.texts().filter(|server| *server != tool.server.text)),
        });
        best = best.max(Some((if is_ambiguous { fit.min(Fit::Possible) } else { fit }, reading.is_exact())));
    }
    best
}

/// The ways to read a pattern without braces.
fn readings(tokens: &[Token]) -> Vec<Reading> {
    let mut readings = Vec::new();
    // The name of a server in its configuration, and that of a tool, may have a `/` in it as well.
    let slashes = (1..tokens.len().saturating_sub(1)).filter(|at| tokens[*at] == Token::Char('/'));
    readings.extend(slashes.map(|at| Reading::new(Some(&tokens[..at]), Some(&tokens[at + 1..]))));
    let prefix: Option<String> =
        tokens.iter().take(5).map(|token| if let Token::Char(c) = token { Some(*c) } else { None }).collect();
    if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("mcp__")) && tokens.len() > 5 {
        long_readings(&tokens[5..], &mut readings);
    }
    readings.push(Reading::new(None, Some(tokens)));
    readings
}

/// The ways to read what follows `mcp__`: split at each `__`; without any, split at each `*`, which can end the name of
/// the server, stand for the `__`, and begin the name of the tool; or as the name of a server.
fn long_readings(rest: &[Token], readings: &mut Vec<Reading>) {
    let is_mark = |token: &Token| *token == Token::Char('_');
    let has_marks = rest.windows(2).any(|pair| pair.iter().all(is_mark));
    let may_be_marks = |pair: &[Token]| glob::fits_literally(pair, "__") && !pair.contains(&Token::Any);
    let guesses = (1..rest.len().saturating_sub(2)).map(|at| (at, &rest[at..at + 2]));
    let guesses = guesses.filter(|(_, pair)| may_be_marks(pair) && !pair.iter().all(is_mark));
    readings.extend(
        guesses.map(|(at, _)| Reading { is_guess: true, ..Reading::new(Some(&rest[..at]), Some(&rest[at + 2..])) }),
    );
    if has_marks {
        let marks = (1..rest.len().saturating_sub(2)).filter(|at| rest[*at..at + 2].iter().all(is_mark));
        readings.extend(marks.map(|at| Reading::new(Some(&rest[..at]), Some(&rest[at + 2..]))));
    } else {
        let stars = (0..rest.len()).filter(|at| rest[*at] == Token::Any);
        readings.extend(stars.map(|at| Reading::new(Some(&rest[..=at]), Some(&rest[at..]))));
    }
    let whole = Reading { is_literal: has_marks, ..Reading::new(Some(rest), None) };
    if !has_marks || whole.server.as_ref().is_some_and(Part::is_exact) {
        readings.push(whole);
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
