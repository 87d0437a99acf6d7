//! Folding of long results: shows the first screen and keeps the rest for `:more`.

/// The size of a screen.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Characters per line.
    pub columns: usize,
    /// The number of lines.
    pub rows: usize,
}

/// The position at which a text is folded, and the number of hidden lines.
#[derive(Debug, PartialEq, Eq)]
pub struct Fold {
    /// The end of the part that is shown, as a byte offset.
    pub shown: usize,
    /// The start of the rest, as a byte offset.
    pub rest: usize,
    /// The number of lines of the rest on the screen.
    pub more: usize,
}

/// Rows reserved for the prompts before and after a result.
const MARGIN: usize = 4;

/// Minimum number of rows used for a result, however small the screen is.
const LEAST: usize = 6;

/// Folds a text that does not fit on the screen; `None` if it fits.
pub fn fold(text: &str, screen: Screen) -> Option<Fold> {
    let columns = screen.columns.max(20);
    let room = screen.rows.saturating_sub(MARGIN).max(LEAST);
    let rows = |line: &str| line.chars().count().div_ceil(columns).max(1);
    let total: usize = text.lines().map(rows).sum();
    // Hiding one or two lines would save at most one line.
    if total <= room + 2 {
        return None;
    }
    let mut used = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let takes = rows(line.trim_end_matches('\n'));
        if used + takes > room {
            if used >= room.div_ceil(2) {
                break;
            }
            // A line that begins in the first half of the screen and does not fit is cut.
            let cut = line.char_indices().nth((room - used) * columns).map_or(line.len(), |(cut, _)| cut);
            return Some(Fold { shown: at + cut, rest: at + cut, more: total - room });
        }
        used += takes;
        at += line.len();
    }
    Some(Fold { shown: text[..at].trim_end_matches('\n').len(), rest: at, more: total - used })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { columns: 20, rows: 10 };

    #[test]
    fn what_fits_is_not_folded() {
        assert_eq!(fold("a", SCREEN), None);
        assert_eq!(fold(&"a\n".repeat(8), SCREEN), None);
    }

    #[test]
    fn lines_are_kept_whole_where_they_can_be() {
        assert_eq!(fold(&"ab\n".repeat(20), SCREEN), Some(Fold { shown: 17, rest: 18, more: 14 }));
        assert_eq!(fold(&"é".repeat(400), SCREEN), Some(Fold { shown: 240, rest: 240, more: 14 }));
    }
}
