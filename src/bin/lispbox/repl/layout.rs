//! Layout of a printed value: a collection that does not fit into one line is broken into several, one item below the
//! other.

use lispbox::lang::internal::lexer::{Lexeme, Token, lex};

/// Lays out a printed value in lines of at most `width` characters, as far as its items permit. A text that cannot be
/// read back, such as a printed function, is returned unchanged.
pub fn lay_out(text: &str, width: usize) -> String {
    if text.chars().nth(width).is_none() {
        return text.to_owned();
    }
    let Ok(lexemes) = lex(text) else { return text.to_owned() };
    let Some(ends) = ends(&lexemes) else { return text.to_owned() };
    let mut page = Page { text, width, out: String::with_capacity(text.len() * 2), column: 0, open: Vec::new() };
    let mut at = 0;
    while at < lexemes.len() {
        at = page.item(&lexemes, &ends, at);
    }
    page.out
}

/// The index of the closing bracket for each opening bracket; `None` if they are not balanced.
fn ends(lexemes: &[Lexeme]) -> Option<Vec<usize>> {
    let mut ends = vec![0; lexemes.len()];
    let mut open = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        if lexeme.token.closer().is_some() {
            open.push(at);
        } else if lexeme.token.is_closer() {
            ends[open.pop()?] = at;
        }
    }
    open.is_empty().then_some(ends)
}

/// The output so far.
struct Page<'a> {
    text: &'a str,
    width: usize,
    out: String,
    column: usize,
    open: Vec<Open>,
}

/// A collection that does not fit into one line.
struct Open {
    /// The column of its items.
    indent: usize,
    is_map: bool,
    /// The number of items written so far.
    items: usize,
    /// True if the previous item was not a collection.
    after_atom: bool,
    /// True after a prefix, which the next item belongs to.
    glued: bool,
}

impl<'a> Page<'a> {
    /// Writes the item at index `at`; returns the index after it.
    fn item(&mut self, lexemes: &[Lexeme], ends: &[usize], at: usize) -> usize {
        let lexeme = lexemes[at];
        if lexeme.token.is_closer() {
            self.open.pop();
            self.write(self.slice(lexeme, lexeme));
            return at + 1;
        }
        let is_open = lexeme.token.closer().is_some();
        let end = if is_open { ends[at] } else { at };
        let whole = self.slice(lexeme, lexemes[end]);
        let length = whole.chars().take(self.width + 1).count();
        let before = if at == 0 { "" } else { self.between(lexemes[at - 1], lexeme) };
        self.separate(before, length, !is_open);
        if let Some(collection) = self.open.last_mut() {
            collection.glued = lexeme.token.is_prefix();
            collection.items += usize::from(!collection.glued);
            collection.after_atom = !is_open;
        }
        if !is_open || self.column + length <= self.width {
            self.write(whole);
            return end + 1;
        }
        self.write(self.slice(lexeme, lexeme));
        // Far to the right there is no room for a layout, so the items are placed below and further left.
        let indent = self.column.min(self.width / 2);
        let is_map = lexeme.token == Token::MapOpen;
        self.open.push(Open { indent, is_map, items: 0, after_atom: false, glued: false });
        at + 1
    }

    /// Writes the separator before an item of this length: white space or a line break.
    fn separate(&mut self, before: &str, length: usize, is_atom: bool) {
        let Some(open) = self.open.last() else {
            self.write(before);
            return;
        };
        if open.glued || open.items == 0 && !before.contains([' ', ',']) {
            self.write(before);
            return;
        }
        let is_value = open.is_map && open.items % 2 == 1;
        let fits = self.column + 1 + length <= self.width;
        let stays = if open.is_map { is_value } else { is_atom && open.after_atom && fits };
        if stays {
            self.write(" ");
            return;
        }
        let indent = open.indent;
        if before.contains(',') {
            self.out.push(',');
        }
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn write(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn slice(&self, from: Lexeme, to: Lexeme) -> &'a str {
        &self.text[from.span.start as usize..to.span.end as usize]
    }

    fn between(&self, one: Lexeme, other: Lexeme) -> &'a str {
        &self.text[one.span.end as usize..other.span.start as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_in_its_line() {
        assert_eq!(lay_out("{:a [1 2], :b \"x\"}", 40), "{:a [1 2], :b \"x\"}");
        assert_eq!(lay_out("#<function (a b c)>", 5), "#<function (a b c)>");
        assert_eq!(lay_out("(a [b c", 3), "(a [b c");
    }

    #[test]
    fn items_stand_under_each_other() {
        assert_eq!(
            lay_out("[{:id 1, :name \"anna\"} {:id 2, :name \"bert\"}]", 25),
            "[{:id 1, :name \"anna\"}\n {:id 2, :name \"bert\"}]"
        );
        assert_eq!(
            lay_out("{:id 1, :tags [:one :two :three], :to #{\"a\" \"b\"}}", 18),
            "{:id 1,\n :tags [:one :two\n        :three],\n :to #{\"a\" \"b\"}}"
        );
        assert_eq!(lay_out("(1 2 3 4 5 6)", 6), "(1 2 3\n 4 5 6)");
    }

    #[test]
    fn prefixes_keep_what_they_belong_to() {
        assert_eq!(lay_out("[#inst \"2026\" #'abc 'defg]", 14), "[#inst \"2026\"\n #'abc 'defg]");
    }

    #[test]
    fn deep_nesting_has_bounded_indentation() {
        let deep = format!("{}1 2{}", "[".repeat(2_000), " [3]]".repeat(2_000));
        assert!(lay_out(&deep, 40).len() < deep.len() * 40);
    }
}
