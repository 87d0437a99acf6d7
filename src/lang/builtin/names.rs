//! Keywords, symbols and their names.

use super::arguments::{string, take};
use crate::error::{Error, Outcome};
use crate::machine::Machine;
use crate::native::{Builtin, Intrinsic};
use crate::value::Value;
use crate::value::names::LONGEST_NAME;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "keyword",
        &["[name]", "[namespace name]"],
        "The keyword of that name; nil if `name` is not a name.",
        &[("(keyword \"a\")", ":a"), ("(keyword \"mail\" \"id\")", ":mail/id"), ("(keyword nil)", "nil")],
        keyword,
    )
    .with_intrinsic(Intrinsic::Keyword),
    Builtin::new(
        "symbol",
        &["[name]", "[namespace name]"],
        "The symbol of that name; for a var, its qualified name.",
        &[("(symbol \"a\")", "a"), ("(symbol :a/b)", "a/b")],
        symbol,
    ),
    Builtin::new(
        "name",
        &["[x]"],
        "The name of a keyword or symbol, without its namespace; a string unchanged.",
        &[("(name :mail/id)", "\"id\""), ("(name \"a\")", "\"a\"")],
        name,
    ),
    Builtin::new(
        "namespace",
        &["[x]"],
        "The namespace of a keyword or symbol, or nil.",
        &[("(namespace :mail/id)", "\"mail\""), ("(namespace :id)", "nil")],
        namespace,
    ),
    Builtin::new(
        "gensym",
        &["[]", "[prefix]"],
        "A new symbol with a unique name.",
        &[("(= (gensym) (gensym))", "false")],
        gensym,
    ),
];

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("find-keyword", "keyword"),
    ("keyword->string", "name"),
    ("symbol-name", "name"),
    ("string->keyword", "keyword"),
];

/// Checks the length of a text that becomes the name of a keyword or symbol. This bound keeps names short enough to
/// compare, hash and print without charging for their length.
///
/// # Errors
/// Returns `NameTooLong` if the text exceeds [`LONGEST_NAME`] bytes.
pub fn short_enough(name: &str) -> Result<&str, Error> {
    if name.len() <= LONGEST_NAME {
        return Ok(name);
    }
    let length = name.len();
    Err(Error::new("NameTooLong", format!("a name may have at most {LONGEST_NAME} bytes, got {length}"))
        .suggest("keep long text in a string"))
}

/// Returns the text of a name qualified by a namespace.
fn qualified(arguments: &[Value]) -> Result<String, Error> {
    let [namespace, name] = arguments else { return Ok(String::new()) };
    let name = short_enough(string(name)?)?;
    if namespace.is_nil() {
        return Ok(name.to_string());
    }
    Ok(short_enough(&format!("{}/{name}", short_enough(string(namespace)?)?))?.to_string())
}

fn keyword(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        return Ok(Value::keyword(&qualified(arguments)?));
    }
    Ok(match take(arguments, 0) {
        ref named if let Some(name) = named.as_name() => Value::Keyword(name.clone()),
        Value::Str(text) => Value::keyword(short_enough(text.as_str())?),
        _ => Value::Nil,
    })
}

/// Converts a string, keyword, symbol or var to a symbol.
pub fn symbol(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    if arguments.len() == 2 {
        return Ok(Value::symbol(&qualified(arguments)?));
    }
    match take(arguments, 0) {
        Value::Keyword(name) => Ok(Value::Symbol(name)),
        symbol @ (Value::Symbol(_) | Value::Annotated(_)) => Ok(symbol),
        Value::Var(name) => Ok(Value::symbol(&match name.as_str().strip_prefix("core/") {
            Some(base) => format!("clojure.core/{base}"),
            None if name.namespace().is_none() => format!("user/{}", name.as_str()),
            None => name.as_str().to_string(),
        })),
        Value::Str(text) => Ok(Value::symbol(short_enough(text.as_str())?)),
        other => Err(Error::expected("a string, a keyword or a symbol", &other).into()),
    }
}

fn name(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        ref named if let Some(name) = named.as_name() => Ok(Value::string(name.base())),
        text @ Value::Str(_) => Ok(text),
        other => Err(Error::expected("a keyword, a symbol or a string", &other)
            .suggest("`(str x)` makes a string of anything")
            .into()),
    }
}

fn namespace(_: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    match take(arguments, 0) {
        ref named if let Some(name) = named.as_name() => Ok(name.namespace().map_or(Value::Nil, Value::string)),
        other => Err(Error::expected("a keyword or a symbol", &other).into()),
    }
}

fn gensym(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let prefix = match arguments.first() {
        Some(named) if let Some(prefix) = named.as_name() => prefix.as_str(),
        Some(prefix) => string(prefix)?,
        None => "G__",
    };
    let prefix = short_enough(prefix)?;
    let generated = &mut machine.core.globals.generated;
    *generated += 1;
    Ok(Value::symbol(&format!("{prefix}{generated}")))
}
