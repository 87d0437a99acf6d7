//! Long results: the first screen of them, and the rest for who asks.

/// How a text stands on a screen.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// Where what is shown at first ends and the rest begins, and how many lines the rest takes. None if
/// all of it fits.
#[derive(Debug, PartialEq, Eq)]
pub struct Fold {
    /// Behind the last byte that is shown.
    pub shown: usize,
    /// The first byte of the rest.
    pub rest: usize,
    /// Lines of the rest, as they stand on the screen.
    pub more: usize,
}

/// Rows that are left for what stands around a result: the prompts before and behind it.
const MARGIN: usize = 4;

/// A screen smaller than this is none to fold for.
const LEAST: usize = 6;

/// Folds a text that does not fit on a screen.
pub fn fold(text: &str, screen: Screen) -> Option<Fold> {
    let columns = screen.columns.max(20);
    let room = screen.rows.saturating_sub(MARGIN).max(LEAST);
    let rows = |line: &str| line.chars().count().div_ceil(columns).max(1);
    let total: usize = text.lines().map(rows).sum();
    // Two lines are not worth hiding behind one.
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
            // A line that is a screen of its own is cut.
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
