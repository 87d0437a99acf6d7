//! The difference between two texts, line by line.

use std::collections::HashMap;

/// Maximum number of lines of a text that are compared one by one, and maximum length of one that is shown, in
/// characters.
const LINES: usize = 1_000;
const WIDTH: usize = 4_000;

/// Number of equal lines that are shown around others.
const CONTEXT: usize = 2;

/// A line of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// `-` for a line of the earlier text, `+` for one of the later text, a blank for one of both, and `…` for lines
    /// that are left out.
    pub sign: char,
    /// The line, in which nothing is invisible.
    pub text: String,
    /// The quarantine rules that match in a line of the later text.
    pub suspicions: Vec<String>,
}

/// Returns the lines of two texts that differ, with a few equal ones around them.
pub(super) fn lines(before: &str, after: &str) -> Vec<(char, String)> {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let all = if before.len() > LINES || after.len() > LINES {
        let removed = before.iter().map(|line| ('-', *line));
        removed.chain(after.iter().map(|line| ('+', *line))).collect()
    } else {
        aligned(&before, &after)
    };
    let differs: Vec<usize> = (0..all.len()).filter(|at| all[*at].0 != ' ').collect();
    let is_near = |at: usize| {
        let next = differs.partition_point(|other| *other < at.saturating_sub(CONTEXT));
        differs.get(next).is_some_and(|other| *other <= at + CONTEXT)
    };
    let mut shown = Vec::new();
    for (at, (sign, line)) in all.iter().enumerate() {
        if is_near(at) {
            shown.push((*sign, crate::server::text::cut(line, WIDTH)));
        } else if shown.last().is_none_or(|(sign, _)| *sign != '…') {
            shown.push(('…', String::new()));
        }
    }
    shown
}

/// Aligns two texts by their longest common subsequence.
fn aligned<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(char, &'t str)> {
    // Numbers compare faster than lines.
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |line: &'t str| {
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry(line).or_insert(next)
    };
    let one: Vec<u32> = before.iter().map(|line| number(line)).collect();
    let other: Vec<u32> = after.iter().map(|line| number(line)).collect();
    let width = other.len() + 1;
    // The length of the longest common subsequence from each pair of positions on.
    let mut longest = vec![0u32; (one.len() + 1) * width];
    for i in (0..one.len()).rev() {
        for j in (0..other.len()).rev() {
            longest[i * width + j] = match one[i] == other[j] {
                true => longest[(i + 1) * width + j + 1] + 1,
                false => longest[(i + 1) * width + j].max(longest[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < one.len() || j < other.len() {
        if i < one.len() && j < other.len() && one[i] == other[j] {
            lines.push((' ', before[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == other.len() || (i < one.len() && longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            lines.push(('-', before[i]));
            i += 1;
        } else {
            lines.push(('+', after[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        lines(before, after).iter().map(|(sign, line)| format!("{sign}{line}|")).collect()
    }

    #[test]
    fn lines_that_differ_are_shown_with_their_surroundings() {
        for (before, after, difference) in [
            ("", "", ""),
            ("", "a", "+a|"),
            ("a", "", "-a|"),
            ("a", "b", "-a|+b|"),
            ("a\nb\nc", "a\nx\nc", " a|-b|+x| c|"),
            ("1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n6\n7", "…| 5| 6|+7|"),
            ("a\n1\n2\n3\n4\n5\nb", "1\n2\n3\n4\n5", "-a| 1| 2|…| 4| 5|-b|"),
        ] {
            assert_eq!(shown(before, after), difference, "{before:?} {after:?}");
        }
    }

    #[test]
    fn long_texts_are_compared_in_bounded_time() {
        let text = |word: &str| (0..5_000).map(|line| format!("{word}{line}\n")).collect::<String>();
        assert_eq!(lines(&text("a"), &text("b")).len(), 10_000);
        // With the sign of the cut.
        assert_eq!(lines(&"x".repeat(100_000), "")[0].1.chars().count(), WIDTH + 1);
    }
}
