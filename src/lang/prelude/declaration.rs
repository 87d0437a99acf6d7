//! Reads the declaration in a `defn` of the prelude: doc string, attributes, argument lists.

use crate::form::{Form, FormKind};
use crate::registry::Declaration;

/// Reads the declaration at the start of a text.
pub fn read(text: &str) -> Declaration {
    let forms = crate::reader::read(text).expect("a test reads the prelude");
    let form = forms.into_iter().next().expect("a definition begins with its form");
    let items = form.as_list().unwrap_or_default();
    let doc = match items.get(2).map(|item| &item.kind) {
        // In the file, the lines of a doc string are indented like code.
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
    let examples = examples.collect();
    let arguments = match attribute("arglists") {
        Some(lists) => lists.iter().filter_map(Form::as_vector).map(shown).collect(),
        None => items.iter().filter_map(parameters).map(shown).collect(),
    };
    Declaration { arguments, doc, examples, form }
}

/// Returns the parameters of a function's only arity, or of one of several.
fn parameters(item: &Form) -> Option<&[Form]> {
    match &item.kind {
        FormKind::Vector(names) => Some(names),
        FormKind::List(items) => items.first()?.as_vector(),
        _ => None,
    }
}

/// Formats a parameter list for the documentation. A pattern is shown as `options`.
fn shown(names: &[Form]) -> String {
    let names: Vec<String> = names
        .iter()
        .map(|name| match &name.kind {
            FormKind::Symbol(name) => name.clone(),
            FormKind::Keyword(name) => format!(":{name}"),
            FormKind::Map(items) if items.iter().all(|item| item.as_symbol().is_some()) => {
                format!("{{{}}}", items.iter().filter_map(Form::as_symbol).collect::<Vec<_>>().join(" "))
            }
            _ => "options".to_string(),
        })
        .collect();
    format!("[{}]", names.join(" "))
}
