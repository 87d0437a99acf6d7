//! The values to which a schema restricts a type, for signatures: `email`, `1..100`, `≤50`.

use super::literal;
use crate::foreign_text;
use serde_json::Value as Json;

/// Maximum length of a format and of a pattern, in characters; a longer one is left out.
const FORMAT: usize = 24;
const PATTERN: usize = 32;
/// A maximum length of a text is noted up to this one: larger ones are not met by accident.
const LENGTH: u64 = 280;
/// Bounds of this size and more are those of a machine's numbers, which generated schemas contain.
const MACHINE: f64 = 2_147_483_647.0;

/// Returns the restrictions of the type `name` of a schema, separated by commas; empty if there are none.
pub(super) fn of(schema: &Json, name: &str) -> String {
    let notes = match name {
        "string" => vec![format(schema), pattern(schema), length(schema)],
        "integer" | "number" => vec![range(schema)],
        "array" => vec![whole(schema, "maxItems").map(|most| format!("≤{most}"))],
        _ => Vec::new(),
    };
    notes.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn format(schema: &Json) -> Option<String> {
    let format = schema.get("format")?.as_str()?;
    is_short(format, FORMAT).then(|| foreign_text::name(format).into_owned())
}

fn pattern(schema: &Json) -> Option<String> {
    let pattern = schema.get("pattern")?.as_str()?;
    (is_short(pattern, PATTERN) && foreign_text::line(pattern) == pattern).then(|| format!("/{pattern}/"))
}

fn length(schema: &Json) -> Option<String> {
    whole(schema, "maxLength").filter(|most| *most <= LENGTH).map(|most| format!("≤{most} chars"))
}

/// Formats the bounds of a number. A minimum of 0 or 1 alone is what everyone expects.
fn range(schema: &Json) -> Option<String> {
    let bound = |key: &str| schema.get(key).filter(|bound| bound.as_f64().is_some_and(|bound| bound.abs() < MACHINE));
    let (least, most) = (bound("minimum"), bound("maximum"));
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    match (least, most, above, below) {
        (Some(least), Some(most), ..) => Some(format!("{}..{}", literal(least), literal(most))),
        (None, Some(most), ..) => Some(format!("≤{}", literal(most))),
        (_, None, _, Some(below)) => Some(format!("<{}", literal(below))),
        (Some(least), None, ..) if !matches!(least.as_f64(), Some(0.0 | 1.0)) => Some(format!("≥{}", literal(least))),
        (None, None, Some(above), None) if above.as_f64() != Some(0.0) => Some(format!(">{}", literal(above))),
        _ => None,
    }
}

fn whole(schema: &Json, key: &str) -> Option<u64> {
    schema.get(key)?.as_u64().filter(|most| (*most as f64) < MACHINE)
}

fn is_short(text: &str, most: usize) -> bool {
    !text.is_empty() && text.chars().nth(most).is_none()
}
