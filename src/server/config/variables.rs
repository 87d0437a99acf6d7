//! `${NAME}` and `${NAME:-default}` in a configuration.

/// Replaces every `${NAME}` by the variable's value and `${NAME:-default}` by it or the default. Any
/// other `$` stands for itself.
///
/// # Errors
/// When a variable without a default is not set, or a `${` has no `}`.
pub(super) fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        expanded.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        let end = inside.find('}').ok_or_else(|| "expected `}` after `${`".to_owned())?;
        let (name, default) = match inside[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inside[..end], None),
        };
        match (variable(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => {
                return Err(format!(
                    "the environment variable `{name}` is not set; set it, or write `${{{name}:-default}}`"
                ));
            }
        }
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn variables_are_replaced() {
        let variable = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let expand = |text| expand(text, &variable);
        assert_eq!(expand("x${A}y${A}"), Ok("x1y1".into()));
        assert_eq!(expand("$A and $5"), Ok("$A and $5".into()));
        assert_eq!(expand("${B:-two}${EMPTY:-three}"), Ok("twothree".into()));
        assert_eq!(expand("[${EMPTY}]"), Ok("[]".into()));
        assert_eq!(
            expand("${B}"),
            Err("the environment variable `B` is not set; set it, or write `${B:-default}`".into())
        );
        assert_eq!(expand("${B"), Err("expected `}` after `${`".into()));
    }
}
