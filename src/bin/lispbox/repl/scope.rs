//! The names available at the prompt, with a description of each: for completion and hints.

use std::cell::OnceCell;
use std::sync::Arc;

use lispbox::lang::internal::lexer::{LexFault, Lexeme, Token, lex};
use lispbox::lang::internal::vocabulary::Word;
use lispbox::lang::{Catalogue, Host, Limits, Tool};

use super::commands::COMMANDS;
use crate::terminal::Terminal;

/// The names that can be entered.
pub struct Scope {
    /// Functions and forms of the language, sorted by name.
    language: Vec<Word>,
    /// The definitions of the session.
    session: Vec<Word>,
    host: Arc<Terminal>,
    /// The tools, fetched at the first use, because that may start their servers.
    catalogue: OnceCell<Catalogue>,
}

/// A candidate for completion.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// The text.
    pub text: String,
    /// A description: a call, or a value.
    pub about: String,
}

impl Choice {
    fn new(text: &str, about: &str) -> Choice {
        Choice { text: text.to_owned(), about: about.to_owned() }
    }

    fn of(word: &Word) -> Choice {
        Choice::new(&word.name, if word.call.is_empty() { &word.summary } else { &word.call })
    }
}

impl Scope {
    /// Creates the scope of a session without definitions.
    pub fn new(language: Vec<Word>, host: Arc<Terminal>) -> Scope {
        Scope { language, session: Vec::new(), host, catalogue: OnceCell::new() }
    }

    /// Updates the definitions of the session.
    pub fn define(&mut self, words: Vec<Word>) {
        self.session = words;
    }

    /// The completions of the word before `position`: the start of the word, and the candidates.
    pub fn choices(&self, text: &str, position: usize) -> (usize, Vec<Choice>) {
        let start = word_start(text, position);
        let (before, word) = (&text[..start], &text[start..position]);
        let Some(lexemes) = lexemes_before(before) else { return (start, Vec::new()) };
        if word.is_empty() {
            // On a blank line, there is no word to complete; in an entry of several lines, Tab indents.
            let indents =
                before.contains('\n') && before.rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
            return (start, if indents { vec![Choice::new("  ", "")] } else { Vec::new() });
        }
        let mut choices = self.possible(before, word, &lexemes);
        let begins = |choice: &Choice| choice.text.starts_with(word);
        if choices.iter().any(begins) {
            choices.retain(begins);
        } else if word.len() >= 3 && !word.starts_with(':') {
            choices.retain(|choice| choice.text.contains(word));
        } else {
            choices.clear();
        }
        let mut seen = std::collections::HashSet::new();
        choices.retain(|choice| seen.insert(choice.text.clone()));
        choices.sort_by(|one, other| one.text.cmp(&other.text));
        (start, choices)
    }

    /// All candidates after `before`, the most specific first.
    fn possible(&self, before: &str, word: &str, lexemes: &[Lexeme]) -> Vec<Choice> {
        if before.trim() == ":limits" {
            return Limits::default().shown().iter().map(|(name, shown)| Choice::new(name, shown)).collect();
        }
        let mut choices = Vec::new();
        if word.starts_with(':') {
            if before.trim().is_empty() {
                choices.extend(COMMANDS.iter().map(|command| Choice::new(command.name, command.summary)));
            }
            if let Some(tool) = head(before, lexemes).and_then(|head| self.tool(head)) {
                choices.extend(parameters(tool));
            }
        }
        let wanted = if word.starts_with(':') { Token::Keyword } else { Token::Name };
        let nearby = lexemes.iter().filter(|lexeme| lexeme.token == wanted).map(|lexeme| slice(before, lexeme));
        if wanted == Token::Name {
            choices.extend(self.session.iter().map(Choice::of));
            choices.extend(self.language.iter().map(Choice::of));
            for tool in &self.catalogue().tools {
                let about = Word::of_tool(tool);
                choices.push(Choice::of(&about));
                choices.push(Choice::new(&tool.name, &about.call));
            }
        }
        // Last, so that a name with a description is preferred over a bare name.
        choices.extend(nearby.map(|name| Choice::new(name, "")));
        choices
    }

    /// The call syntax of the function whose call encloses the end of the text.
    pub fn call_at_end(&self, text: &str) -> Option<String> {
        let lexemes = lexemes_before(text)?;
        let head = head(text, &lexemes)?;
        let named = |words: &[Word]| words.iter().find(|word| word.name == head).map(|word| word.call.clone());
        let call = named(&self.session).or_else(|| named(&self.language));
        // No server is started to show a hint.
        let call = call.or_else(|| {
            self.catalogue.get()?;
            self.tool(head).map(|tool| Word::of_tool(tool).call)
        });
        call.filter(|call| !call.is_empty())
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        let is_named = |tool: &&Arc<Tool>| {
            tool.name == name || name.split_once('/') == Some((tool.server.as_str(), tool.name.as_str()))
        };
        self.catalogue().tools.iter().find(is_named).map(Arc::as_ref)
    }

    fn catalogue(&self) -> &Catalogue {
        self.catalogue.get_or_init(|| self.host.catalogue())
    }
}

/// The parameters of a tool, as keywords with their types.
fn parameters(tool: &Tool) -> Vec<Choice> {
    let properties = tool.input_schema.get("properties").and_then(|properties| properties.as_object());
    let about = |schema: &serde_json::Value| {
        let text = |key| schema.get(key).and_then(|value| value.as_str()).unwrap_or_default();
        format!("{}  {}", text("type"), text("description")).trim().to_owned()
    };
    properties.into_iter().flatten().map(|(name, schema)| Choice::new(&format!(":{name}"), &about(schema))).collect()
}

/// The tokens of the text; `None` if its end is inside a string or a comment.
fn lexemes_before(text: &str) -> Option<Vec<Lexeme>> {
    let lexemes = match lex(text) {
        Ok(lexemes) => lexemes,
        Err(error) => match error.fault {
            LexFault::UnterminatedString | LexFault::UnterminatedRegex | LexFault::UnterminatedComment => return None,
            _ => error.before,
        },
    };
    let behind = lexemes.last().map_or(0, |last| last.span.end as usize);
    let last_line = text[behind..].rsplit('\n').next().unwrap_or_default();
    (!last_line.contains(';')).then_some(lexemes)
}

/// The name at the head of the innermost open call.
fn head<'a>(text: &'a str, lexemes: &[Lexeme]) -> Option<&'a str> {
    let mut open = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        if lexeme.token.closer().is_some() {
            open.push(at);
        } else if lexeme.token.is_closer() {
            open.pop();
        }
    }
    // A map or a vector may be an argument of the enclosing call.
    let is_call = |at: &&usize| matches!(lexemes[**at].token, Token::ListOpen | Token::FunctionOpen);
    let head = lexemes.get(open.iter().rev().find(is_call)? + 1)?;
    (head.token == Token::Name).then(|| slice(text, head))
}

fn slice<'a>(text: &'a str, lexeme: &Lexeme) -> &'a str {
    &text[lexeme.span.start as usize..lexeme.span.end as usize]
}

/// The start of the word that ends at `position`.
fn word_start(text: &str, position: usize) -> usize {
    let ends_word = |c: char| c.is_whitespace() || "()[]{}\";'`~@^,".contains(c);
    text[..position].char_indices().rev().find(|(_, c)| ends_word(*c)).map_or(0, |(at, c)| at + c.len_utf8())
}
