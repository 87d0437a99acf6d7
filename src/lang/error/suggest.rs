//! "Did you mean …?": guesses the intended name.

/// Maximum length of a name that is compared, in bytes.
const LONGEST: usize = 64;

/// Returns the candidate nearest to `name` by edit distance, if one is near enough; the first of equally near ones.
/// Separators and case count for little: `fetchEmails` is near `fetch-emails`.
///
/// ```
/// use lispbox::lang::internal::closest;
/// assert_eq!(closest("fetch-emials", ["count", "fetch-emails"]), Some("fetch-emails"));
/// assert_eq!(closest("xyzzy", ["count", "fetch-emails"]), None);
/// ```
pub fn closest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    // The dot of a method is no letter of its name.
    let is_method = name.starts_with('.');
    let wanted = plain(&name[usize::from(is_method)..]);
    let allowed = match wanted.chars().count() {
        0..=2 => 1,
        3..=5 => 2,
        length => (length / 3).min(4),
    };
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > LONGEST || candidate.len().abs_diff(name.len()) > allowed + 3 || candidate == name {
            continue;
        }
        let allowed = if name.contains('/') == candidate.contains('/') { allowed } else { allowed.min(1) };
        if is_method && !candidate.starts_with('.') {
            continue;
        }
        let plain_candidate = plain(&candidate[usize::from(is_method)..]);
        let distance = strsim::damerau_levenshtein(&wanted, &plain_candidate);
        // A short name must keep its first letter: `x` is not a misspelling of `y`.
        let alike = wanted.chars().count() > 3 || wanted.chars().next() == plain_candidate.chars().next();
        if distance <= allowed && alike && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Formats a suggestion as a sentence.
pub fn did_you_mean(name: &str) -> String {
    format!("Did you mean {name}?")
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}
