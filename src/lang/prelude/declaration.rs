//! What a `defn` of the prelude says of its function: doc string, attributes, argument lists.

use super::Function;
use crate::lang::form::{Form, FormKind};
use std::sync::OnceLock;

/// `(defn name "doc" {:examples [["program" "value"] …] :aliases [other …] :arglists [[a b] …]} …)`;
/// `defn-` is for what no program can name. The argument lists are those of the code where none are
/// written.
pub fn read(form: Form, area: usize, place: usize) -> Function {
    let items = form.as_list().unwrap_or_default();
    let name = items.get(1).and_then(Form::as_symbol).unwrap_or_default().to_string();
    let doc = match items.get(2).map(|item| &item.kind) {
        // Lines of a doc string are indented in the file as the code is.
        Some(FormKind::Str(doc)) => doc.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    };
    let attributes = items.iter().skip(2).take(2).find_map(|item| match &item.kind {
        FormKind::Map(pairs) => Some(pairs.as_slice()),
        _ => None,
    });
    let attribute = |wanted: &str| {
        let pairs = attributes.unwrap_or_default().chunks_exact(2);
        pairs.filter(|pair| pair[0].as_keyword() == Some(wanted)).find_map(|pair| pair[1].as_vector())
    };
    let examples = attribute("examples").unwrap_or_default().iter().filter_map(|pair| match pair.as_vector()? {
        [Form { kind: FormKind::Str(program), .. }, Form { kind: FormKind::Str(value), .. }] => {
            Some((program.clone(), value.clone()))
        }
        _ => None,
    });
    let aliases = attribute("aliases").unwrap_or_default().iter().filter_map(Form::as_symbol).map(str::to_string);
    let arguments = match attribute("arglists") {
        Some(lists) => lists.iter().filter_map(Form::as_vector).map(shown).collect(),
        None => items.iter().filter_map(parameters).map(shown).collect(),
    };
    Function {
        doc,
        arguments,
        examples: examples.collect(),
        aliases: aliases.collect(),
        is_private: form.is_call_of("defn-"),
        name,
        area,
        place,
        form,
        compiled: OnceLock::new(),
    }
}

/// The parameters of a function's only arity, or of one of several.
fn parameters(item: &Form) -> Option<&[Form]> {
    match &item.kind {
        FormKind::Vector(names) => Some(names),
        FormKind::List(items) => items.first()?.as_vector(),
        _ => None,
    }
}

/// A list of parameters as documentation shows it.
fn shown(names: &[Form]) -> String {
    let names: Vec<&str> = names.iter().map(|name| name.as_symbol().unwrap_or("options")).collect();
    format!("[{}]", names.join(" "))
}
