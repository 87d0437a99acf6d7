//! `lispbox doc`: documentation of the names of the language.

use std::process::ExitCode;

use clap::Args;
use lispbox::lang::internal::Registry;
use lispbox::lang::internal::vocabulary::{Word, areas};

use crate::context::{Problem, Settings};
use crate::paint::{Paint, Tone};
use crate::terminal::{complain, line};

/// Describes functions and forms of the language, and tools; without a name, lists the areas of the language.
#[derive(Args)]
pub struct Doc {
    /// Functions, forms, tools as `server/tool` (followed by `:schema` for the schemas of a tool), areas of the
    /// language.
    names: Vec<String>,
    /// Search names and descriptions for this word.
    #[arg(long, value_name = "WORD", conflicts_with = "names")]
    search: Option<String>,
    #[command(flatten)]
    settings: Settings,
}

impl Doc {
    /// Runs the command; the exit code is 1 if a name is unknown.
    pub fn run(self) -> ExitCode {
        self.describe().unwrap_or_else(Problem::report)
    }

    fn describe(self) -> Result<ExitCode, Problem> {
        let context = self.settings.open()?;
        let host = context.observer();
        let mut session = context.session();
        let paint = Paint::for_stdout();
        if let Some(word) = &self.search {
            line(session.describe(Some(&format!("apropos {word}")), host).trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        if self.names.is_empty() {
            line(&overview(context.registry(), paint));
            return Ok(ExitCode::SUCCESS);
        }
        let mut code = ExitCode::SUCCESS;
        // As in `(doc tool :schema)`.
        let mut names: Vec<String> = Vec::new();
        for name in &self.names {
            match names.last_mut() {
                Some(tool) if name == ":schema" => *tool += " :schema",
                _ => names.push(name.clone()),
            }
        }
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                line("");
            }
            match (session.explain(name, host.clone()), area(context.registry(), name)) {
                (Ok(text), _) => line(&described(&text, paint)),
                (Err(_), Some((title, words))) => {
                    line(&paint.tone(Tone::Heading, &title));
                    line(&listed(&words, paint));
                }
                (Err(failure), None) => {
                    complain(&failure);
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }
}

/// Formats the areas of the language with the number of words in each.
fn overview(registry: &Registry, paint: Paint) -> String {
    let areas = areas(registry);
    let longest = areas.iter().map(|(title, _)| title.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for (title, words) in &areas {
        out.push_str(&format!("{title:longest$}  {:>4}\n", words.len()));
    }
    let hint = "`lispbox doc AREA` lists one, `lispbox doc NAME` describes, `lispbox doc --search WORD` searches";
    out + &paint.tone(Tone::Quiet, hint)
}

/// Finds the area with this title, ignoring case.
fn area(registry: &Registry, title: &str) -> Option<(String, Vec<Word>)> {
    areas(registry).into_iter().find(|(known, _)| known.eq_ignore_ascii_case(title))
}

/// Formats one line for each word: its call and its purpose.
fn listed(words: &[Word], paint: Paint) -> String {
    let lines = words.iter().map(|word| {
        let first = word.call.split_inclusive(')').next().unwrap_or(&word.name);
        format!("{}  {}", paint.tone(Tone::Program, first), word.summary)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a description with its calls highlighted.
pub fn described(text: &str, paint: Paint) -> String {
    let tone = |line: &str| if line.starts_with('(') { paint.tone(Tone::Program, line) } else { line.to_owned() };
    text.trim_end().lines().map(tone).collect::<Vec<_>>().join("\n")
}
