//! Patterns of tool names: a tool in any spelling that a program can use, or a pattern of such spellings.

use lispbox_lang::internal::canonical_tool;

use super::glob::{self, Folded, Token};
use super::names::{Known, Name, Names, ToolName, is_unreadable};

/// Maximum number of readings of one pattern; only names with many `__` have more than a few.
const READINGS: usize = 1_024;

/// A tool, or a pattern of tools, as an operator writes it: `tool`, `server/tool` or `mcp__server__tool`, and
/// `mcp__server` for all tools of a server.
///
/// Names are compared in canonical form, without `-` and `_` and without case, as in programs. In a pattern `*` matches
/// any characters, `?` one, `[a-z]` one of several, `{a,b}` one of several texts; `\` escapes the next character. A `-`
/// or `_` beside a wildcard matches a word boundary.
///
/// ```
/// use lispbox::policy::ToolPattern;
///
/// let pattern = ToolPattern::new("mail/get-*").unwrap();
/// assert!(pattern.fits("mail", "getUnread") && !pattern.fits("mail", "send"));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolPattern {
    text: String,
    readings: Vec<Vec<Reading>>,
}

/// The certainty of a match between a pattern and a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// The pattern may mean this tool or another one. Such a match counts for rules that deny, and not for rules that
    /// allow.
    Possible,
    /// The pattern means this tool.
    Certain,
}

/// One interpretation of a pattern.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    /// `None` matches any server.
    server: Option<Part>,
    /// `None` matches all tools.
    tool: Option<Part>,
    /// The name of the server must match as written.
    is_literal: bool,
    /// A wildcard is taken for the `__` between server and tool.
    is_guess: bool,
}

/// The part of a pattern that is compared with one name.
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
                // The name of a server has `-` in place of characters that a symbol cannot contain.
                let readable: String = text.chars().filter(|c| !(is_server && is_unreadable(*c))).collect();
                Part::Exact { canonical: canonical_tool(&readable), text }
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
            Part::Exact { canonical, .. } => canonical == name.canonical(),
            Part::Glob { folded, .. } => glob::fits_folded(folded, name.kebab()),
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
            Part::Glob { folded, .. } if glob::fits_any_spelling(folded, name.canonical()) => Some(Fit::Possible),
            _ => None,
        }
    }
}

/// A pattern of names other than those of tools, compared as [`ToolPattern`] compares each of its parts.
#[derive(Clone, Debug)]
pub struct NamePattern(Vec<Part>);

impl NamePattern {
    /// Parses a name or a pattern.
    ///
    /// # Errors
    /// Returns what is wrong with it, as a clause.
    pub fn new(text: &str) -> Result<NamePattern, String> {
        Ok(NamePattern(glob::parse(text)?.iter().map(|tokens| Part::new(tokens, false)).collect()))
    }

    /// Returns whether it matches a name, certainly or possibly.
    pub fn fits(&self, name: &Name<'_>) -> bool {
        self.0.iter().any(|part| part.fit(name, Known::Alone).is_some())
    }
}

impl Reading {
    fn new(server: Option<&[Token]>, tool: Option<&[Token]>) -> Reading {
        let server = server.map(|tokens| Part::new(tokens, true));
        Reading { server, tool: tool.map(|tokens| Part::new(tokens, false)), is_literal: false, is_guess: false }
    }

    /// True if the reading is the full name of a tool.
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

    /// Returns whether it contains the full name of one of these servers.
    fn names_any<'n>(&self, mut servers: impl Iterator<Item = &'n str>) -> bool {
        self.server.as_ref().is_some_and(Part::is_exact)
            && servers.any(|server| self.fit_server(&Name::new(server), Known::Alone).is_some())
    }

    /// Returns whether its server is a pattern.
    fn has_wild_server(&self) -> bool {
        self.server.as_ref().is_some_and(|part| !part.is_exact())
    }
}

impl ToolPattern {
    /// Parses a name or a pattern.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    ///
    /// ```
    /// use lispbox::policy::ToolPattern;
    ///
    /// assert!(ToolPattern::new("mail/[").is_err());
    /// ```
    pub fn new(text: &str) -> Result<ToolPattern, String> {
        let wrong = |problem: String| format!("expected a pattern such as `search-*`, got {text:?}: {problem}");
        let alternatives = glob::parse(text).map_err(wrong)?;
        let readings: Vec<Vec<Reading>> = alternatives.iter().map(|tokens| readings(tokens)).collect();
        if readings.iter().map(Vec::len).sum::<usize>() > READINGS {
            return Err(wrong(format!("it can be read in more than {READINGS} ways")));
        }
        Ok(ToolPattern { text: text.to_owned(), readings })
    }

    /// Creates a pattern that matches exactly that name of a tool.
    pub(super) fn of_tool(name: &str) -> ToolPattern {
        let tokens: Vec<Token> = name.chars().map(Token::Char).collect();
        ToolPattern { text: name.to_owned(), readings: vec![vec![Reading::new(None, Some(&tokens))]] }
    }

    /// Returns the text as the operator wrote it.
    ///
    /// ```
    /// use lispbox::policy::ToolPattern;
    ///
    /// assert_eq!(ToolPattern::new("mail/*").unwrap().text(), "mail/*");
    /// ```
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether it matches a tool of a server, certainly or possibly.
    ///
    /// ```
    /// use lispbox::policy::ToolPattern;
    ///
    /// assert!(ToolPattern::new("mcp__mail").unwrap().fits("mail", "send"));
    /// ```
    pub fn fits(&self, server: &str, tool: &str) -> bool {
        self.fit(&ToolName::alone(server, tool)).is_some()
    }

    /// Returns how it matches a tool, and whether it is the full name of the tool.
    pub(super) fn fit(&self, tool: &ToolName<'_>) -> Option<(Fit, bool)> {
        let is_single = self.readings.len() == 1;
        let alternatives = self.readings.iter().filter_map(|readings| fit(readings, tool));
        alternatives.map(|(fit, is_exact)| (fit, is_exact && is_single)).max()
    }

    /// Returns whether it may apply to tools of a server, judging by the server's name.
    pub(super) fn concerns(&self, server: &str, servers: &Names) -> bool {
        let (name, known) = (Name::new(server), Known::Tools(servers));
        let is_named = |reading: &&Reading| reading.has_wild_server() || reading.names_any(servers.texts());
        self.readings.iter().any(|readings| {
            // A reading as a bare tool name applies to all servers. It is ignored if another reading names an existing
            // server or has a wildcard in its server.
            let is_qualified = readings.iter().any(|reading| is_named(&reading));
            let mut readings = readings.iter().filter(|reading| !is_qualified || reading.server.is_some());
            readings.any(|reading| reading.fit_server(&name, known).is_some())
        })
    }
}

/// Returns the best match among the readings. A match is not certain if another reading may mean a tool of an existing
/// server.
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

/// Returns the readings of a pattern without braces.
fn readings(tokens: &[Token]) -> Vec<Reading> {
    let mut readings = Vec::new();
    // Both the configured name of a server and the name of a tool may contain a `/`.
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

/// Adds the readings of the text after `mcp__`: split at each `__`; without any, split at each `*`, which can match the
/// end of the server name, the `__`, and the beginning of the tool name; or as the name of a server.
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
mod tests;
