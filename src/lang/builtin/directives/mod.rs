//! Common Lisp's format directives: `(format nil "~a has ~d~%" x n)`, and `cl-format` of `clojure.pprint`.

mod numbers;
mod pattern;
mod spelled;

use super::arguments::{room, take};
use super::dynamic::print_settings;
use super::text::{Builder, pay};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::print::Printer;
use pattern::{Directive, NESTING, Parameter, Part, parse, wrong};

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[Builtin::new(
    "pprint/cl-format",
    &["[to pattern & values]"],
    "Formats values by a Common Lisp pattern: returns a string if `to` is nil, prints it if true.\n\
     `~a` any value, `~s` in readable form, `~d` an integer (`~:d` with commas), `~,2f` two decimals, `~r` in words, \
     `~p` plural s, `~%` a newline, `~{ ~}` iteration, `~[ ~; ~]` a choice, `~( ~)` lower case.",
    &[
        ("(cl-format nil \"~a has ~:d~%\" \"Ada\" 1234567)", "\"Ada has 1,234,567\\n\""),
        ("(cl-format nil \"~{~a~^, ~}\" [1 2 3])", "\"1, 2, 3\""),
        ("(cl-format nil \"~d item~:p, ~5,2f\" 2 3.14159)", "\"2 items,  3.14\""),
        ("(cl-format nil \"~r ~[none~;one~:;many~]\" 42 7)", "\"forty-two many\""),
    ],
    cl_format,
)];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] =
    &[("cl-format", "pprint/cl-format"), ("clojure.pprint/cl-format", "pprint/cl-format")];

fn cl_format(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let to = take(arguments, 0);
    let Value::Str(pattern) = take(arguments, 1) else {
        return Err(Error::expected("a string as the pattern", &arguments[1]).into());
    };
    put(machine, &to, pattern.as_str(), &arguments[2..])
}

/// Formats values by a pattern and prints the text if `to` is truthy, else returns it as a string.
///
/// # Errors
/// Returns the errors of [`formatted`].
pub(super) fn put(machine: &mut Machine, to: &Value, pattern: &str, values: &[Value]) -> Outcome<Value> {
    let text = formatted(machine, pattern, values)?;
    if to.is_truthy() {
        machine.core.print(text.as_str());
        return Ok(Value::Nil);
    }
    Ok(text.finish())
}

/// Formats values by a pattern of directives.
///
/// # Errors
/// Returns `FormatError` if a directive is unknown or lacks an argument; halts if a resource limit is exceeded.
fn formatted(machine: &mut Machine, pattern: &str, values: &[Value]) -> Outcome<Builder> {
    pay(machine, pattern)?;
    let parts = parse(pattern)?;
    let mut run = Run { machine, pattern, out: Builder::default(), depth: 0 };
    let mut values = Values { items: values.to_vec(), at: 0 };
    run.all(&parts, &mut values)?;
    Ok(run.out)
}

/// Bound on the magnitude of numeric parameters: beyond what memory allows, and small enough to rule out overflow.
const FURTHEST: i64 = 1 << 31;

/// The arguments of a pattern and a cursor into them.
struct Values {
    items: Vec<Value>,
    at: usize,
}

/// Control flow after a part: continue, or leave the enclosing block because of `~^`.
#[derive(Clone, Copy, PartialEq)]
enum Flow {
    On,
    Left,
}

/// A formatting run.
struct Run<'m> {
    machine: &'m mut Machine,
    pattern: &'m str,
    out: Builder,
    /// Current nesting depth of patterns passed as arguments (`~?`).
    depth: usize,
}

impl Run<'_> {
    fn all(&mut self, parts: &[Part<'_>], values: &mut Values) -> Outcome<Flow> {
        for part in parts {
            self.machine.charge(1)?;
            let flow = match part {
                Part::Text(text) => self.push(text).map(|()| Flow::On),
                Part::Directive(directive) => self.one(directive, values),
                Part::Block(opening, clauses, closing) => self.block(opening, clauses, closing, values),
            }?;
            if flow == Flow::Left {
                return Ok(Flow::Left);
            }
        }
        Ok(Flow::On)
    }

    fn push(&mut self, text: &str) -> Outcome<()> {
        self.out.push(self.machine, text)
    }

    fn fill(&mut self, with: char, times: i64) -> Outcome<()> {
        let times = usize::try_from(times).unwrap_or(0);
        self.out.push_times(self.machine, with.encode_utf8(&mut [0; 4]), times)
    }

    /// Consumes the next argument.
    fn next(&mut self, directive: &Directive, values: &mut Values) -> Outcome<Value> {
        match values.items.get(values.at) {
            Some(value) => {
                values.at += 1;
                Ok(value.clone())
            }
            None => Err(wrong(self.pattern, format!("`~{}` has no argument", directive.letter)).into()),
        }
    }

    /// Returns a numeric parameter, clamped to ±[`FURTHEST`].
    fn number(&mut self, directive: &Directive, at: usize, values: &mut Values) -> Outcome<Option<i64>> {
        let number = match directive.parameters.get(at) {
            Some(Parameter::Number(number)) => Some(*number),
            Some(Parameter::Left) => Some((values.items.len() - values.at.min(values.items.len())) as i64),
            Some(Parameter::Next) => match self.next(directive, values)? {
                Value::Int(number) => Some(number),
                _ => None,
            },
            _ => None,
        };
        Ok(number.map(|number| number.clamp(-FURTHEST, FURTHEST)))
    }

    /// Returns a character parameter, `usual` by default.
    fn character(&mut self, directive: &Directive, at: usize, values: &mut Values, usual: char) -> Outcome<char> {
        Ok(match directive.parameters.get(at) {
            Some(Parameter::Character(character)) => *character,
            Some(Parameter::Next) => match self.next(directive, values)? {
                Value::Char(character) => character,
                _ => usual,
            },
            _ => usual,
        })
    }

    fn one(&mut self, directive: &Directive, values: &mut Values) -> Outcome<Flow> {
        match directive.letter {
            '%' | '~' | '|' => {
                let times = self.number(directive, 0, values)?.unwrap_or(1);
                self.fill(if directive.letter == '%' { '\n' } else { directive.letter }, times)?;
            }
            '&' => {
                let times = self.number(directive, 0, values)?.unwrap_or(1);
                let fresh = self.out.as_str().is_empty() || self.out.as_str().ends_with('\n');
                self.fill('\n', if fresh { times - 1 } else { times })?;
            }
            'a' | 's' | 'w' => self.any(directive, values)?,
            'c' => self.character_argument(directive, values)?,
            'd' | 'b' | 'o' | 'x' | 'r' => self.whole(directive, values)?,
            'f' | 'e' | 'g' | '$' => self.real(directive, values)?,
            'p' => {
                if directive.colon {
                    values.at = values.at.saturating_sub(1);
                }
                let one = matches!(self.next(directive, values)?, Value::Int(1));
                self.push(match (directive.at, one) {
                    (true, true) => "y",
                    (true, false) => "ies",
                    (false, true) => "",
                    (false, false) => "s",
                })?;
            }
            '*' => {
                let given = self.number(directive, 0, values)?;
                let by = usize::try_from(given.unwrap_or(i64::from(!directive.at))).unwrap_or(0);
                values.at = match (directive.at, directive.colon) {
                    (true, _) => by,
                    (false, true) => values.at.saturating_sub(by),
                    (false, false) => values.at.saturating_add(by),
                }
                .min(values.items.len());
            }
            '^' => {
                let ends = match self.number(directive, 0, values)? {
                    Some(number) => number == 0,
                    None => values.at >= values.items.len(),
                };
                return Ok(if ends { Flow::Left } else { Flow::On });
            }
            't' => {
                let column = self.number(directive, 0, values)?.unwrap_or(1);
                let step = self.number(directive, 1, values)?.unwrap_or(1);
                self.tabulate(column, step, directive.at)?;
            }
            '?' => {
                let inner = self.next(directive, values)?;
                let Value::Str(inner) = inner else {
                    return Err(Error::expected("a string as the pattern of `~?`", &inner).into());
                };
                let list = self.next(directive, values)?;
                let items = self.machine.items(list)?;
                if self.depth >= NESTING {
                    return Err(wrong(self.pattern, format!("`~?` nests more than {NESTING} deep")).into());
                }
                pay(self.machine, inner.as_str())?;
                let parts = parse(inner.as_str())?;
                self.depth += 1;
                self.all(&parts, &mut Values { items, at: 0 })?;
                self.depth -= 1;
            }
            _ => {}
        }
        Ok(Flow::On)
    }

    /// `~a` and `~s`: any value, padded to a width.
    fn any(&mut self, directive: &Directive, values: &mut Values) -> Outcome<()> {
        let width = self.number(directive, 0, values)?.unwrap_or(0);
        let step = self.number(directive, 1, values)?.unwrap_or(1).max(1);
        let least = self.number(directive, 2, values)?.unwrap_or(0);
        let with = self.character(directive, 3, values, ' ')?;
        let value = self.next(directive, values)?;
        let text = self.shown(&value, directive.letter != 'a')?;
        let mut missing = least.max(0);
        let length = text.chars().count() as i64;
        if length.saturating_add(missing) < width {
            let short = width - length - missing;
            missing += short.div_euclid(step).saturating_add(i64::from(short % step != 0)).saturating_mul(step);
        }
        if directive.at {
            self.fill(with, missing)?;
        }
        self.push(&text)?;
        if !directive.at {
            self.fill(with, missing)?;
        }
        Ok(())
    }

    fn shown(&mut self, value: &Value, readable: bool) -> Outcome<String> {
        let budget = room(self.machine);
        let printer = if readable { Printer::new(budget, true) } else { Printer::plain(budget) };
        let mut printer = printer.with(print_settings(self.machine));
        if !printer.print(value, self.machine)? {
            self.machine.reserve(u64::MAX / 4)?;
        }
        Ok(printer.into_text())
    }

    fn character_argument(&mut self, directive: &Directive, values: &mut Values) -> Outcome<()> {
        let value = self.next(directive, values)?;
        let text = self.shown(&value, directive.at)?;
        self.push(&text)
    }

    /// `~20t`: pads with spaces up to a column.
    fn tabulate(&mut self, column: i64, step: i64, relative: bool) -> Outcome<()> {
        let text = self.out.as_str();
        self.machine.charge(text.len() as u64 / 64)?;
        let at = text[text.rfind('\n').map_or(0, |end| end + 1)..].chars().count() as i64;
        let blanks = match (relative, step) {
            (true, step) if step > 0 => column + (-(at + column)).rem_euclid(step),
            (true, _) => column,
            (false, _) if at < column => column - at,
            (false, step) if step > 0 => step - (at - column).rem_euclid(step),
            (false, _) => 0,
        };
        self.fill(' ', blanks)
    }

    fn block(
        &mut self,
        opening: &Directive,
        clauses: &[Vec<Part<'_>>],
        closing: &Directive,
        values: &mut Values,
    ) -> Outcome<Flow> {
        match closing.letter {
            '}' => self.repeat(opening, clauses.first().map_or(&[], Vec::as_slice), closing.colon, values),
            ']' => self.choose(opening, clauses, values),
            _ => self.in_case(opening, clauses.first().map_or(&[], Vec::as_slice), values),
        }
    }

    /// `~{ … ~}`: iterates over a list; with `@` over the remaining arguments, with `:` over sublists.
    fn repeat(
        &mut self,
        opening: &Directive,
        body: &[Part<'_>],
        at_least_once: bool,
        values: &mut Values,
    ) -> Outcome<Flow> {
        let most = self.number(opening, 0, values)?.unwrap_or(i64::MAX);
        let mut own = None;
        if !opening.at {
            let list = self.next(opening, values)?;
            own = Some(Values { items: self.machine.items(list)?, at: 0 });
        }
        let items = own.as_mut().unwrap_or(values);
        let mut turns = 0;
        while turns < most && (items.at < items.items.len() || at_least_once && turns == 0) {
            self.machine.charge(1)?;
            turns += 1;
            if opening.colon {
                let list = self.next(opening, items)?;
                let mut inner = Values { items: self.machine.items(list)?, at: 0 };
                self.all(body, &mut inner)?;
            } else if self.all(body, items)? == Flow::Left {
                break;
            }
        }
        Ok(Flow::On)
    }

    /// `~[ … ~; … ~]`: selects a clause by number; with `:` the second clause for a truthy value, else the first; with
    /// `@` the only clause, if the next argument is truthy, which it then leaves unconsumed.
    fn choose(&mut self, opening: &Directive, clauses: &[Vec<Part<'_>>], values: &mut Values) -> Outcome<Flow> {
        let has_default = opening.has_default;
        if opening.at {
            return match values.items.get(values.at) {
                Some(value) if value.is_truthy() => self.all(&clauses[0], values),
                _ => {
                    values.at += 1;
                    Ok(Flow::On)
                }
            };
        }
        let chosen = if opening.colon {
            usize::from(self.next(opening, values)?.is_truthy())
        } else {
            match self.number(opening, 0, values)? {
                Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
                None => match self.next(opening, values)? {
                    Value::Int(number) => usize::try_from(number).unwrap_or(usize::MAX),
                    other => return Err(Error::expected("an integer for `~[`", &other).into()),
                },
            }
        };
        match clauses.get(chosen) {
            Some(clause) if !(has_default && chosen + 1 == clauses.len()) || opening.colon => self.all(clause, values),
            _ if has_default => self.all(&clauses[clauses.len() - 1], values),
            _ => Ok(Flow::On),
        }
    }

    /// `~( … ~)`: lower case; with `:` capitalizes each word, with `@` the first word, with both converts to upper
    /// case.
    fn in_case(&mut self, opening: &Directive, body: &[Part<'_>], values: &mut Values) -> Outcome<Flow> {
        let before = std::mem::take(&mut self.out);
        let flow = self.all(body, values);
        let inner = std::mem::replace(&mut self.out, before);
        let flow = flow?;
        let text = inner.as_str();
        super::text::ask_for_copy(self.machine, text, 3)?;
        let text = match (opening.colon, opening.at) {
            (false, false) => text.to_lowercase(),
            (true, true) => text.to_uppercase(),
            (every, _) => capitalized(text, every),
        };
        self.push(&text)?;
        Ok(flow)
    }
}

/// Converts to lower case, but capitalizes each word or, unless `every`, the first word.
fn capitalized(text: &str, every: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_word, mut words) = (false, 0);
    for character in text.chars() {
        let begins = character.is_alphanumeric() && !in_word;
        in_word = character.is_alphanumeric();
        words += usize::from(begins);
        if begins && (every || words == 1) {
            out.extend(character.to_uppercase());
        } else {
            out.extend(character.to_lowercase());
        }
    }
    out
}
