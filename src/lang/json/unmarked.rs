//! Marked text as plain JSON.

/// Converts text with marks for data that JSON lacks to plain JSON: lists and sets become arrays, maps whose keys are no
/// names become arrays of their keys and values, and all other marked data becomes its text.
pub fn unmarked(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '#']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        // Behind the mark of a time is the kind of the time, and a blank.
        let is_time = rest.starts_with("#t\"");
        if rest.starts_with('#') {
            rest = rest.get(2..).unwrap_or_default();
        }
        if !rest.starts_with('"') {
            continue;
        }
        let end = end_of_string(rest);
        let (string, behind) = rest.split_at(end);
        match string.split_once(' ').filter(|_| is_time) {
            Some((_, time)) => {
                plain.push('"');
                plain.push_str(time);
            }
            None => plain.push_str(string),
        }
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

/// Returns the length of the string with which a text begins, with both quotes.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_removed_and_texts_are_kept() {
        for (marked, plain) in [
            (r##"{"a#b":"#d\"1\" [","n":#d"19.90"}"##, r##"{"a#b":"#d\"1\" [","n":"19.90"}"##),
            (r##"[#s[1,#k"ann"],#l[],#m["a",1],#c"\""]"##, r##"[[1,"ann"],[],["a",1],"\""]"##),
            (r##"{"at":#t"date 2026-01-02"}"##, r##"{"at":"2026-01-02"}"##),
            ("[]", "[]"),
        ] {
            assert_eq!(unmarked(marked), plain);
            assert!(serde_json::from_str::<serde_json::Value>(&unmarked(marked)).is_ok());
        }
    }
}
