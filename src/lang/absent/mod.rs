//! Names of capabilities and idioms that do not exist here, each with equivalent code.

mod habits;
pub mod libraries;
mod powers;

use habits::HABITS;
use powers::POWERS;

/// Returns advice on what to use instead of a name; `None` if the name is not listed.
pub fn advice(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("clojure.core/").unwrap_or(name);
    POWERS.iter().chain(HABITS).find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// Derives an explanation from the spelling of a name that no list contains.
pub fn kind_of_name(name: &str) -> Option<String> {
    if let Some(method) = name.strip_prefix(".-") {
        return Some(format!("there are no objects: a map's entry is `(:{method} m)`"));
    }
    if let Some(method) = name.strip_prefix('.').filter(|method| !method.is_empty()) {
        let field = method.strip_prefix("get").filter(|rest| rest.starts_with(char::is_uppercase));
        return Some(match field {
            Some(field) => {
                format!("there are no Java objects: a map's entry is `(:{} m)`", crate::value::map::kebab(field))
            }
            None => "there are no Java objects, and only some methods of strings and numbers: `(apropos \"…\")` finds a function".to_string(),
        });
    }
    if let Some((object, method)) = foreign_method(name) {
        return Some(format!(
            "this is a method call of another language: here the function comes first, `({method} … {object})`"
        ));
    }
    if let Some(class) = name.strip_suffix('.').filter(|class| libraries::is_class(class)) {
        return Some(libraries::class_advice(class));
    }
    if let Some((class, _)) = name.split_once('/').filter(|(class, _)| libraries::is_class(class)) {
        return Some(libraries::class_advice(class));
    }
    if libraries::is_class(name) && name.contains('.') {
        return Some(libraries::class_advice(name));
    }
    infix(name)
}

/// Splits `xs.map` into the object's name and the method's name.
fn foreign_method(name: &str) -> Option<(&str, &str)> {
    let (object, method) = name.split_once('.')?;
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_lowercase() || c == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    (plain(object) && plain(method)).then_some((object, method))
}

/// Explains infix expressions such as `x+1` and `a==b`, written without spaces as other languages allow.
fn infix(name: &str) -> Option<String> {
    let at = name.find(['*', '+', '=', '<', '>', '%', '&', '|'])?;
    let operator: String = name[at..].chars().take_while(|c| !c.is_alphanumeric() && *c != '_').collect();
    let (left, right) = (&name[..at], &name[at + operator.len()..]);
    if left.is_empty() || right.is_empty() || !left.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let function = match operator.as_str() {
        "==" | "===" => "=",
        "!=" | "!==" => "not=",
        "**" => "math/pow",
        "&&" => "and",
        "||" => "or",
        "%" => "mod",
        "=" => "def",
        "+" | "-" | "*" | "<" | ">" | "<=" | ">=" | "+=" | "*=" | "-=" => operator.as_str(),
        _ => return None,
    };
    Some(format!("operators come first, with spaces between all parts: `({function} {left} {right})`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_has_two_answers() {
        let mut names: Vec<&str> = POWERS.iter().chain(HABITS).flat_map(|(names, _)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn names_tell_where_they_come_from() {
        let said = |name: &str| kind_of_name(name).unwrap_or_default();
        assert!(said("xs.map").contains("(map … xs)"));
        assert!(said("x*2").contains("(* x 2)"));
        assert!(said("a==b").contains("(= a b)"));
        assert!(said(".getName").contains("(:name m)"));
        assert!(said("java.util.ArrayList.").contains("[]"));
        assert!(kind_of_name("fetch-mail").is_none() && kind_of_name("*sum*").is_none());
    }
}
