//! Builds forms from the items between brackets: maps, sets, `#(…)`, reader conditionals, metadata.

use num_bigint::BigInt;

use super::{ReadError, Reading, excerpt, text_of};
use crate::form::{Form, FormKind};
use crate::lexer::Token;
use crate::span::Span;

/// The highest argument number in `#(…)`, as in Clojure.
const MAX_ARGUMENT: usize = 20;

/// Makes a list, a vector, a map or a set of its items, by the bracket that opens it.
pub(crate) fn collection(source: &str, opener: Token, items: Vec<Form>, span: Span) -> Result<FormKind, ReadError> {
    Ok(match opener {
        Token::VectorOpen => FormKind::Vector(items),
        Token::MapOpen => FormKind::Map(map(source, items, span)?),
        Token::SetOpen => FormKind::Set(set(source, items)?),
        _ => FormKind::List(items),
    })
}

/// Checks the items of a map, alternating keys and values: no constant key occurs twice.
fn map(source: &str, items: Vec<Form>, span: Span) -> Result<Vec<Form>, ReadError> {
    if items.len() % 2 == 1 {
        return Err(odd_map(source, &items, span));
    }
    refuse_duplicates(source, items.iter().step_by(2), "key", "map")?;
    Ok(items)
}

/// Checks the items of a set: no constant occurs twice.
fn set(source: &str, items: Vec<Form>) -> Result<Vec<Form>, ReadError> {
    refuse_duplicates(source, items.iter(), "item", "set")?;
    Ok(items)
}

fn odd_map(source: &str, items: &[Form], span: Span) -> ReadError {
    let shown = |form: &Form| excerpt(text_of(source, form.span));
    let is_keyword = |form: &Form| form.as_keyword().is_some();
    let last = items.last();
    let message = match last {
        Some(key) => format!("a map needs a value for each key: `{}` has none", shown(key)),
        None => "a map needs a value for each key".to_string(),
    };
    let error = ReadError::new("MapLiteral", last.map_or(span, |key| key.span), message);
    // If all keys should be keywords, the first key that is not one shows which value is missing.
    let slipped = items.iter().step_by(2).position(|key| !is_keyword(key)).filter(|nth| *nth > 0);
    match slipped.and_then(|nth| items[..2 * nth].chunks_exact(2).rev().find(|pair| is_keyword(&pair[1]))) {
        Some(pair) => error.suggest(format!("perhaps the value of `{}` is missing", shown(&pair[0]))),
        None => error,
    }
}

/// A form whose value does not depend on its context.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Constant<'f> {
    Nil,
    Bool(bool),
    Int(i64),
    BigInt(&'f BigInt),
    Float(u64),
    Char(char),
    Str(&'f str),
    Keyword(&'f str),
    Symbol(&'f str),
    QuotedSymbol(&'f str),
}

fn constant(form: &Form) -> Option<Constant<'_>> {
    Some(match &form.kind {
        FormKind::Nil => Constant::Nil,
        FormKind::Bool(value) => Constant::Bool(*value),
        FormKind::Int(value) => Constant::Int(*value),
        FormKind::BigInt(value) => match i64::try_from(value) {
            Ok(value) => Constant::Int(value),
            Err(_) => Constant::BigInt(value),
        },
        FormKind::Float(value) if value.is_nan() => return None,
        FormKind::Float(value) if *value == 0.0 => Constant::Float(0),
        FormKind::Float(value) => Constant::Float(value.to_bits()),
        FormKind::Char(value) => Constant::Char(*value),
        FormKind::Str(value) => Constant::Str(value),
        FormKind::Keyword(value) => Constant::Keyword(value),
        FormKind::Symbol(value) => Constant::Symbol(value),
        FormKind::List(items) if form.is_call_of("quote") => match items.as_slice() {
            [_, quoted] => Constant::QuotedSymbol(quoted.as_symbol()?),
            _ => return None,
        },
        _ => return None,
    })
}

fn refuse_duplicates<'f>(
    source: &str,
    forms: impl Iterator<Item = &'f Form>,
    what: &str,
    whose: &str,
) -> Result<(), ReadError> {
    let mut constants: Vec<(Constant<'f>, Span)> =
        forms.filter_map(|form| Some((constant(form)?, form.span))).collect();
    constants.sort_unstable_by(|(a, at_a), (b, at_b)| a.cmp(b).then(at_a.start.cmp(&at_b.start)));
    let twice = constants.windows(2).filter(|pair| pair[0].0 == pair[1].0);
    let Some([(_, first), (_, second)]) = twice.min_by_key(|pair| pair[1].1.start) else {
        return Ok(());
    };
    let shown = excerpt(text_of(source, *second));
    let message = format!("the {what} `{shown}` appears twice in this {whose}");
    let mut error = ReadError::new("DuplicateKey", *second, message);
    error.related.push((*first, "it first appears here".to_string()));
    Err(error)
}

/// The `%` arguments seen so far inside a `#(…)`.
#[derive(Clone, Copy, Default)]
pub(super) struct FunctionLiteral {
    highest: usize,
    takes_rest: bool,
}

impl FunctionLiteral {
    /// Records a form if it is an argument; `%` becomes `%1`.
    pub(super) fn argument(&mut self, form: Form) -> Result<Form, ReadError> {
        let Some(number) = form.as_symbol().and_then(|name| name.strip_prefix('%')) else {
            return Ok(form);
        };
        match number {
            "&" => self.takes_rest = true,
            "" => {
                self.highest = self.highest.max(1);
                return Ok(Form::symbol("%1", form.span));
            }
            _ => match number.parse::<usize>() {
                Ok(nth @ 1..=MAX_ARGUMENT) if !number.starts_with('+') => {
                    self.highest = self.highest.max(nth);
                    return Ok(Form::symbol(&format!("%{nth}"), form.span));
                }
                _ => {
                    let shown = excerpt(number);
                    let message = format!("`%{shown}` is not an argument of `#(…)`");
                    return Err(ReadError::new("FunctionLiteral", form.span, message)
                        .suggest(format!("its arguments are `%`, `%1` to `%{MAX_ARGUMENT}`, and `%&` for the rest")));
                }
            },
        }
        Ok(form)
    }

    /// Builds the function: `(fn* [%1 %2 & %&] (body))`.
    pub(super) fn form(self, body: Vec<Form>, span: Span, opener: Span) -> Form {
        let mut parameters: Vec<Form> =
            (1..=self.highest).map(|nth| Form::symbol(&format!("%{nth}"), opener)).collect();
        if self.takes_rest {
            parameters.extend([Form::symbol("&", opener), Form::symbol("%&", opener)]);
        }
        let parameters = Form::vector(parameters, opener);
        Form::list(vec![Form::symbol("fn*", opener), parameters, Form::list(body, span)], span)
    }
}

/// Builds the error for a `#(…)` inside another.
pub(super) fn nested_function(span: Span) -> ReadError {
    ReadError::new("FunctionLiteral", span, "a `#(…)` cannot be nested in another `#(…)`")
        .suggest("write the inner one as `(fn [x] …)`")
}

/// Returns the first branch of a reader conditional whose feature holds.
pub(super) fn choose(
    source: &str,
    mut items: Vec<Form>,
    span: Span,
    reading: &Reading,
) -> Result<Option<Form>, ReadError> {
    let error = |span, message: String| Err(ReadError::new("InvalidConditional", span, message));
    if let Some(feature) = items.iter().step_by(2).find(|feature| feature.as_keyword().is_none()) {
        let shown = excerpt(text_of(source, feature.span));
        return error(feature.span, format!("`{shown}` is not a feature of a reader conditional; expected a keyword"));
    }
    if items.len() % 2 == 1 {
        return error(span, "a reader conditional needs a form for each feature".to_string());
    }
    let chosen = items.iter().step_by(2).position(|feature| reading.holds(feature));
    Ok(chosen.map(|nth| items.swap_remove(2 * nth + 1)))
}

/// Returns the forms that `#?@(…)` splices in.
pub(super) fn spliced(chosen: Option<Form>) -> Result<Vec<Form>, ReadError> {
    match chosen {
        None => Ok(Vec::new()),
        Some(Form { kind: FormKind::List(items) | FormKind::Vector(items), .. }) => Ok(items),
        Some(form) => {
            Err(ReadError::new("InvalidConditional", form.span, "`#?@(…)` needs a list or a vector to splice"))
        }
    }
}

/// Reads `#:name` before a form that is not a map: Racket's keyword.
pub(super) fn racket_keyword(source: &str, span: Span) -> Result<Form, ReadError> {
    let shown = text_of(source, span);
    match shown.strip_prefix("#:").filter(|name| !name.is_empty() && !name.contains([':', '/'])) {
        Some(name) => Ok(Form::new(FormKind::Keyword(name.to_string()), span)),
        None => Err(ReadError::new("InvalidKeyword", span, format!("`{}` must precede a map", excerpt(shown)))
            .suggest("a keyword is written `:name`")),
    }
}

/// Reads the map after `#:name`: keys without a namespace get this one; the namespace `_` is removed.
pub(super) fn qualify(source: &str, prefix: Span, form: Form) -> Result<Form, ReadError> {
    let shown = text_of(source, prefix);
    let namespace = shown.trim_start_matches(['#', ':']);
    let error = |message: String| ReadError::new("InvalidKeyword", prefix, message);
    if shown == "#:" || namespace.contains(['/', ':']) {
        return Err(error(format!("`{}` does not name a namespace", excerpt(shown))));
    }
    // For `#::alias`, one colon is kept until the alias is resolved.
    let namespace = if shown.starts_with("#::") && !namespace.is_empty() { &shown[2..] } else { namespace };
    let span = prefix.to(form.span);
    let FormKind::Map(mut items) = form.kind else { return Ok(form) };
    for key in items.iter_mut().step_by(2) {
        if let FormKind::Keyword(name) | FormKind::Symbol(name) = &mut key.kind {
            match name.strip_prefix("_/") {
                Some(bare) => *name = bare.to_string(),
                None if name.contains('/') || namespace.is_empty() => {}
                None => *name = format!("{namespace}/{name}"),
            }
        }
    }
    Ok(Form::new(FormKind::Map(map(source, items, span)?), span))
}

/// Attaches a metadata map to a form, as `^metadata form` does.
pub(super) fn with_metadata(source: &str, form: Form, metadata: Form, span: Span) -> Result<Form, ReadError> {
    use FormKind::{Keyword, List, Map, Set, Str, Symbol, Vector};
    let shown = |form: &Form| excerpt(text_of(source, form.span));
    if !matches!(metadata.kind, Symbol(_) | Keyword(_) | Str(_) | Map(_) | Vector(_)) {
        let message =
            format!("`{}` is not metadata: expected a symbol, keyword, string, vector or map", shown(&metadata));
        return Err(ReadError::new("InvalidMetadata", metadata.span, message).suggest(POWERS));
    }
    if !matches!(form.kind, Symbol(_) | List(_) | Vector(_) | Map(_) | Set(_)) {
        let message = format!("metadata cannot be attached to `{}`", shown(&form));
        return Err(ReadError::new("InvalidMetadata", span, message).suggest(POWERS));
    }
    let pair = |key: &str, value: Form| vec![Form::new(Keyword(key.to_string()), metadata.span), value];
    let mut entries = match &metadata.kind {
        Map(entries) => entries.clone(),
        Keyword(name) => pair(name, Form::new(FormKind::Bool(true), metadata.span)),
        Vector(_) => pair("param-tags", metadata.clone()),
        _ => pair("tag", metadata.clone()),
    };
    // If metadata is repeated, the outer one takes precedence.
    if let Some(Map(inner)) = form.metadata.as_ref().map(|inner| &inner.kind) {
        for entry in inner.chunks_exact(2) {
            if !entries.iter().step_by(2).any(|key| *key == entry[0]) {
                entries.extend_from_slice(entry);
            }
        }
    }
    let metadata = Some(Box::new(Form::new(Map(entries), metadata.span)));
    Ok(Form { span, metadata, ..form })
}

const POWERS: &str = "`^` attaches metadata to the form after it; for powers write `(Math/pow x y)`";
