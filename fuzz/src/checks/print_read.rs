//! Values of every type, built by calls: the printed text reads back as an equal value, and prints as the same text
//! again.

use super::super::{evaluate, moved, session, small_limits};
use arbitrary::Arbitrary;

/// A value, with a program that builds it without its literal.
#[derive(Arbitrary, Debug)]
pub enum Made {
    Nil,
    Bool(bool),
    Integer(i64),
    Big(u128, u8),
    Decimal(i64, i16),
    Float(f64),
    Character(char),
    Text(String),
    Keyword(String),
    Symbol(String),
    Regex(String),
    Instant(i64),
    Date(i16, u8, u8),
    Time(u8, u8, u8, u32),
    Length(i64),
    Period(i16, i16, i16),
    List(Vec<Made>),
    Vector(Vec<Made>),
    Set(Vec<Made>),
    Map(Vec<(Made, Made)>),
    Sorted(Vec<(String, Made)>),
    Json(Vec<(String, i16)>),
    Record(Box<Made>, Box<Made>),
    Annotated(Vec<Made>, Box<Made>),
}

/// Maximum depth to which values are written out. Keys may not nest deeper than 64 levels.
const DEPTH: usize = 40;

/// Checks one input.
pub fn check(made: Made) {
    let mut program = String::from("(defrecord Point [x y]) (def v ");
    made.write(&mut program, 0);
    program.push_str(") :made");
    if program.len() > 20_000 {
        return;
    }
    let limits = lispbox::lang::Limits { fuel: 1_000_000, memory: 64 << 20, output: 1 << 20, ..small_limits() };
    let mut session = session();
    // Some numbers are out of range for their type, and some texts are not valid regexes: these errors are no findings.
    if evaluate(&mut session, &program, None, limits.clone()).value.as_deref() != Some(":made") {
        return;
    }
    let reply = evaluate(&mut session, CHECK, None, limits.clone());
    let came = reply.value.unwrap_or_else(|| reply.failure.map(|failure| failure.rendered).unwrap_or_default());
    let expected = if made.has_equal() { "[true true " } else { " true " };
    assert!(came.contains(expected), "{program}\n{came}");
    let elsewhere = evaluate(&mut moved(&mut session), CHECK, None, limits);
    assert_eq!(elsewhere.value.unwrap_or_default(), came, "{program}");
}

const CHECK: &str = "(let [text (pr-str v) back (read-string text)] [(= v back) (= text (pr-str back)) text])";

impl Made {
    fn write(&self, out: &mut String, depth: usize) {
        if depth > DEPTH {
            return out.push_str(" nil");
        }
        let mut all = |opening: &str, items: &mut dyn Iterator<Item = &Made>| {
            out.push_str(opening);
            items.for_each(|item| item.write(out, depth + 1));
            out.push(')');
        };
        let simple = match self {
            Made::List(items) => return all(" (list", &mut items.iter()),
            Made::Vector(items) => return all(" (vector", &mut items.iter()),
            Made::Set(items) => return all(" (hash-set", &mut items.iter()),
            Made::Map(entries) => return all(" (hash-map", &mut entries.iter().flat_map(|(key, value)| [key, value])),
            Made::Record(x, y) => return all(" (->Point", &mut [&**x, &**y].into_iter()),
            Made::Annotated(items, note) => {
                all(" (with-meta (vector", &mut items.iter());
                all(" (hash-map :m", &mut [&**note].into_iter());
                return out.push(')');
            }
            Made::Sorted(entries) => {
                out.push_str(" (sorted-map");
                for (key, value) in entries {
                    out.push_str(&spelled(key));
                    value.write(out, depth + 1);
                }
                return out.push(')');
            }
            Made::Nil => " nil".to_string(),
            Made::Bool(is_true) => format!(" {is_true}"),
            Made::Integer(number) => format!(" {number}"),
            Made::Big(number, power) => format!(" (bigint \"{number}{}\")", "0".repeat(usize::from(*power))),
            Made::Decimal(digits, power) => format!(" (bigdec \"{digits}e{power}\")"),
            Made::Float(number) if number.is_finite() => format!(" (parse-double \"{number:e}\")"),
            Made::Float(number) if number.is_nan() => " ##NaN".to_string(),
            Made::Float(number) => format!(" {}", if *number > 0.0 { "##Inf" } else { "##-Inf" }),
            Made::Character(c) => format!(" (char {})", u32::from(*c)),
            Made::Text(text) => spelled(text),
            Made::Keyword(name) => format!(" (keyword{})", spelled(name)),
            Made::Symbol(name) => format!(" (symbol{})", spelled(name)),
            Made::Regex(text) => format!(" (re-pattern{})", spelled(text)),
            Made::Instant(millis) => format!(" (Instant/ofEpochMilli {millis})"),
            Made::Date(year, month, day) => format!(" (LocalDate/of {year} {month} {day})"),
            Made::Time(hour, minute, second, nanos) => {
                format!(" (LocalTime/of {} {} {} {})", hour % 24, minute % 60, second % 60, nanos % 1_000_000_000)
            }
            Made::Length(nanos) => format!(" (Duration/ofNanos {nanos})"),
            Made::Period(years, months, days) => format!(" (Period/of {years} {months} {days})"),
            Made::Json(entries) => {
                let object: serde_json::Map<String, serde_json::Value> =
                    entries.iter().map(|(key, value)| (key.clone(), (*value).into())).collect();
                let text = serde_json::to_string(&object).expect("text and numbers");
                format!(" (json/parse{})", spelled(&text))
            }
        };
        out.push_str(&simple);
    }

    /// Returns false for values that contain a value which equals nothing, not even itself after it is read back.
    fn has_equal(&self) -> bool {
        match self {
            Made::Regex(_) => false,
            Made::Float(number) => !number.is_nan(),
            Made::List(items) | Made::Vector(items) | Made::Set(items) | Made::Annotated(items, _) => {
                items.iter().all(Made::has_equal)
            }
            Made::Map(entries) => entries.iter().all(|(key, value)| key.has_equal() && value.has_equal()),
            Made::Sorted(entries) => entries.iter().all(|(_, value)| value.has_equal()),
            Made::Record(x, y) => x.has_equal() && y.has_equal(),
            _ => true,
        }
    }
}

/// Builds an expression for a string from the code points of its characters.
fn spelled(text: &str) -> String {
    let numbers: Vec<String> = text.chars().map(|c| u32::from(c).to_string()).collect();
    format!(" (apply str (map char [{}]))", numbers.join(" "))
}
