//! The classes of exceptions, by which `catch` selects: those of Java, told by the codes of errors.

use super::Error;

/// The known classes, each with its package and the class that it extends.
const CLASSES: &[(&str, &str, &str)] = &[
    ("Throwable", "java.lang", ""),
    ("Exception", "java.lang", "Throwable"),
    ("Error", "java.lang", "Throwable"),
    ("AssertionError", "java.lang", "Error"),
    ("RuntimeException", "java.lang", "Exception"),
    ("ArithmeticException", "java.lang", "RuntimeException"),
    ("ClassCastException", "java.lang", "RuntimeException"),
    ("IllegalArgumentException", "java.lang", "RuntimeException"),
    ("NumberFormatException", "java.lang", "IllegalArgumentException"),
    ("ArityException", "clojure.lang", "IllegalArgumentException"),
    ("IllegalFormatException", "java.util", "IllegalArgumentException"),
    ("PatternSyntaxException", "java.util.regex", "IllegalArgumentException"),
    ("IllegalStateException", "java.lang", "RuntimeException"),
    ("IndexOutOfBoundsException", "java.lang", "RuntimeException"),
    ("StringIndexOutOfBoundsException", "java.lang", "IndexOutOfBoundsException"),
    ("ArrayIndexOutOfBoundsException", "java.lang", "IndexOutOfBoundsException"),
    ("NullPointerException", "java.lang", "RuntimeException"),
    ("UnsupportedOperationException", "java.lang", "RuntimeException"),
    ("NoSuchElementException", "java.util", "RuntimeException"),
    ("DateTimeException", "java.time", "RuntimeException"),
    ("DateTimeParseException", "java.time.format", "DateTimeException"),
    ("ExceptionInfo", "clojure.lang", "RuntimeException"),
];

/// The classes that an error of a code may have in Clojure, the likeliest first. Codes that are missing here, such as
/// those of tools and of other formats than Clojure's, have no counterpart.
const BY_CODE: &[(&str, &[&str])] = &[
    ("ArgumentError", &["IllegalArgumentException"]),
    ("ArithmeticError", &["ArithmeticException"]),
    ("ArityError", &["ArityException"]),
    ("CyclicDerivation", &["RuntimeException"]),
    ("DuplicateKey", &["IllegalArgumentException"]),
    ("FormatError", &["IllegalFormatException"]),
    ("IllegalArgument", &["IllegalArgumentException"]),
    ("IllegalState", &["IllegalStateException"]),
    (
        "IndexOutOfBounds",
        &["IndexOutOfBoundsException", "StringIndexOutOfBoundsException", "ArrayIndexOutOfBoundsException"],
    ),
    ("IntegerOverflow", &["ArithmeticException", "IllegalArgumentException"]),
    ("InvalidNumber", &["NumberFormatException"]),
    ("InvalidPattern", &["IllegalArgumentException"]),
    ("InvalidRegex", &["PatternSyntaxException"]),
    ("InvalidState", &["IllegalStateException"]),
    ("InvalidTime", &["DateTimeParseException"]),
    ("NoMatchingClause", &["IllegalArgumentException"]),
    ("NoMethod", &["IllegalArgumentException"]),
    ("NotAvailable", &["UnsupportedOperationException"]),
    ("NotBound", &["IllegalStateException"]),
    ("NotCallable", &["ClassCastException", "NullPointerException"]),
    ("NumberFormat", &["NumberFormatException"]),
    ("NumberFormatError", &["NumberFormatException"]),
    ("TypeError", &["ClassCastException", "IllegalArgumentException", "UnsupportedOperationException"]),
    ("UnknownOption", &["IllegalArgumentException"]),
    ("UnknownUnit", &["IllegalArgumentException"]),
    ("UnknownZone", &["DateTimeException"]),
];

/// The classes of a `TypeError` about nil.
const OF_NIL: &[&str] = &["NullPointerException", "IllegalArgumentException"];

/// True for the name of a known class, without its package.
pub fn is_class(name: &str) -> bool {
    CLASSES.iter().any(|(known, ..)| *known == name)
}

/// True if exceptions of the class `child` are also of the class `parent`.
fn extends(child: &str, parent: &str) -> bool {
    let mut class = child;
    while class != parent {
        match CLASSES.iter().find(|(known, ..)| *known == class) {
            Some((.., above)) if !above.is_empty() => class = above,
            _ => return false,
        }
    }
    true
}

/// The classes that an error may have, the likeliest first; none if it has no counterpart in Clojure.
fn classes(error: &Error) -> &[&'static str] {
    if error.code == "TypeError" && error.got_nil() {
        return OF_NIL;
    }
    match BY_CODE.iter().find(|(code, _)| *code == error.code) {
        Some((_, classes)) => classes,
        None => {
            let own = CLASSES.iter().find(|(known, ..)| *known == error.code);
            own.map_or(&[] as &[&str], |(name, ..)| std::slice::from_ref(name))
        }
    }
}

/// True if `(catch CLASS e …)` catches the error. The class is a name without its package: a class of Java, or the code
/// of an error. An error without a counterpart in Clojure is caught by every class except those whose errors the language
/// raises itself.
pub fn catches(class: &str, error: &Error) -> bool {
    if class == error.code || class == "Throwable" {
        return true;
    }
    match classes(error) {
        [] => matches!(class, "Exception" | "RuntimeException" | "ExceptionInfo") || !is_raised(class),
        own => own.iter().any(|own| extends(own, class)),
    }
}

/// True if the language raises errors of the class or code itself.
fn is_raised(class: &str) -> bool {
    is_class(class) || super::ErrorCode::ALL.iter().any(|code| code.as_str() == class)
}

/// Returns the full name of the likeliest class of an error.
pub fn full_name(error: &Error) -> String {
    let class = classes(error).first().copied().unwrap_or("Exception");
    let package = CLASSES.iter().find(|(known, ..)| *known == class).map_or("java.lang", |(_, package, _)| *package);
    format!("{package}.{class}")
}
