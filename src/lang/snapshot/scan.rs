//! Splits the text of a snapshot into the nodes of a tape, as long as it is text that `encode` writes: lists, vectors and
//! tokens between blanks. The code of functions becomes forms, and rare scalars are read by the reader.

use super::code::Code;
use super::tape::{Kind, Node, Tape};
use crate::form::{Form, FormKind};
use crate::lexer::{Lexeme, Token};
use crate::reader::{self, Reading};
use crate::span::Span;
use crate::value::names::LONGEST_NAME;
use memchr::memchr2;

/// Maximum nesting depth of the forms of a snapshot. Expanded code nests more deeply than programs may, with up to two
/// brackets per level.
pub(super) const CODE_NESTING: usize = 2_100;

/// The ASCII characters of a name, as the lexer has them.
const IN_NAME: [bool; 128] = {
    let mut table = [false; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_graphic();
        byte += 1;
    }
    let others = b",;\"^@`~()[]{}\\";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = false;
        at += 1;
    }
    table
};

/// Splits a text; returns `None` if it is damaged, or not as `encode` writes it. All its tokens are valid otherwise.
pub(super) fn scan(text: &str) -> Option<Tape<'_>> {
    u32::try_from(text.len()).ok()?;
    let tape = Tape::new(text, 8 + text.len() / 8);
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0, tape, open: Vec::with_capacity(8), code: None };
    scanner.run()?;
    Some(scanner.tape)
}

struct Scanner<'s> {
    bytes: &'s [u8],
    /// The offset of the next byte.
    at: usize,
    tape: Tape<'s>,
    /// The indices of the open lists and vectors.
    open: Vec<usize>,
    /// The code of functions that begins before the next byte and ends after it.
    code: Option<Code>,
}

impl Scanner<'_> {
    fn run(&mut self) -> Option<()> {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'(' if self.is_code() => self.code()?,
                byte => self.step(*byte)?,
            }
        }
        self.open.is_empty().then_some(())
    }

    /// Scans the code of functions. Code that `encode` writes rarely, such as metadata, is read by the reader.
    fn code(&mut self) -> Option<()> {
        let start = self.at;
        let form = match self.code_of_tokens() {
            Some(form) => form,
            None => {
                self.code = None;
                self.at = start;
                let (form, end) = self.read_form()?;
                self.at = end;
                form
            }
        };
        self.tape.add_code(form);
        Some(())
    }

    fn code_of_tokens(&mut self) -> Option<Form> {
        self.code = Some(Code::default());
        loop {
            self.step(*self.bytes.get(self.at)?)?;
            if self.code.as_ref()?.is_complete() {
                return self.code.take()?.into_form();
            }
        }
    }

    /// Scans a blank, a bracket or a token.
    #[inline]
    fn step(&mut self, byte: u8) -> Option<()> {
        match byte {
            b' ' | b'\n' | b'\t' | b'\r' | b',' => self.at += 1,
            b'(' => self.open(Kind::List, Token::ListOpen)?,
            // Only rows stand at the top.
            _ if self.open.is_empty() => return None,
            b'[' => self.open(Kind::Vector, Token::VectorOpen)?,
            b')' => self.close(Kind::List, Token::ListClose)?,
            b']' => self.close(Kind::Vector, Token::VectorClose)?,
            b'{' => self.open_in_code(Token::MapOpen)?,
            b'}' => self.close_in_code(Token::MapClose)?,
            b'"' => self.string()?,
            b':' => self.keyword()?,
            b'0'..=b'9' => self.number(self.at)?,
            b'-' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_digit) => self.number(self.at + 1)?,
            b'+' | b'-' | b'.' if self.is_rare_number() => self.rare(Token::Number)?,
            b'\\' => self.form()?,
            b'#' => match self.bytes.get(self.at + 1)? {
                b'"' | b'#' => self.form()?,
                b'{' => self.open_in_code(Token::SetOpen)?,
                byte if byte.is_ascii_alphabetic() => self.tagged()?,
                _ => return None,
            },
            b'\'' => return None,
            byte if byte.is_ascii() => self.name()?,
            _ => self.form()?,
        }
        Some(())
    }

    /// Returns whether the code of functions begins here.
    fn is_code(&self) -> bool {
        let head = b"(functions";
        self.bytes[self.at..].starts_with(head)
            && self.bytes.get(self.at + head.len()).is_some_and(|byte| byte.is_ascii() && !IN_NAME[usize::from(*byte)])
            && !self.open.is_empty()
    }

    /// Returns the number of brackets that may still be opened.
    fn nesting(&self) -> usize {
        CODE_NESTING - self.open.len() - self.code.as_ref().map_or(0, Code::depth)
    }

    fn open(&mut self, kind: Kind, token: Token) -> Option<()> {
        if self.code.is_some() {
            return self.open_in_code(token);
        }
        if self.nesting() == 0 {
            return None;
        }
        self.open.push(self.tape.nodes.len());
        self.tape.nodes.push(Node { kind, start: self.at as u32, end: 0 });
        self.at += 1;
        Some(())
    }

    fn close(&mut self, kind: Kind, token: Token) -> Option<()> {
        if self.code.is_some() {
            return self.close_in_code(token);
        }
        let opened = self.open.pop()?;
        let end = self.tape.nodes.len() as u32;
        let node = &mut self.tape.nodes[opened];
        node.end = end;
        self.at += 1;
        (node.kind == kind).then_some(())
    }

    fn open_in_code(&mut self, token: Token) -> Option<()> {
        let has_room = self.nesting() > 0;
        let code = self.code.as_mut().filter(|_| has_room)?;
        let end = self.at + if token == Token::SetOpen { 2 } else { 1 };
        code.open(Lexeme { token, span: Span::new(self.at, end) });
        self.at = end;
        Some(())
    }

    fn close_in_code(&mut self, token: Token) -> Option<()> {
        let span = Span::new(self.at, self.at + 1);
        self.code.as_mut()?.close(self.tape.text, Lexeme { token, span })?;
        self.at += 1;
        Some(())
    }

    /// Adds the token from here to `end`.
    fn token(&mut self, kind: Kind, end: usize) {
        let node = Node { kind, start: self.at as u32, end: end as u32 };
        match &mut self.code {
            Some(code) => code.add_token(self.tape.text, node),
            None => self.tape.nodes.push(node),
        }
        self.at = end;
    }

    /// Adds a form that ends at `end`.
    fn add_form(&mut self, form: Form, end: usize) {
        match &mut self.code {
            Some(code) => code.add(form),
            None => self.tape.add_form(form),
        }
        self.at = end;
    }

    /// Returns the end of the name, keyword or number that contains the offset.
    fn end_of(&self, mut at: usize) -> Option<usize> {
        while let Some(byte) = self.bytes.get(at) {
            match IN_NAME.get(usize::from(*byte)) {
                Some(true) => at += 1,
                Some(false) => break,
                // The lexer knows the other characters.
                None => return None,
            }
        }
        Some(at)
    }

    /// Reads the form here by the reader; returns it with its end.
    fn read_form(&self) -> Option<(Form, usize)> {
        let reading = Reading { nesting: self.nesting(), ..Reading::default() };
        reader::read_at(self.tape.text, self.at, &reading).ok()?
    }

    /// Adds the scalar here, which the reader reads.
    fn form(&mut self) -> Option<()> {
        let (form, end) = self.read_form()?;
        if matches!(form.kind, FormKind::List(_) | FormKind::Vector(_)) {
            return None;
        }
        self.add_form(form, end);
        Some(())
    }

    /// Reads a tagged string without escapes: `#time/date "2024-02-29"`.
    fn tagged(&mut self) -> Option<()> {
        let start = self.at;
        let string = self.end_of(start).filter(|end| self.bytes[*end..].starts_with(b" \"")).map(|end| end + 1);
        let plain = string.and_then(|string| {
            let end = string + 1 + memchr2(b'"', b'\\', &self.bytes[string + 1..])?;
            (self.bytes[end] == b'"').then_some((string, end + 1))
        });
        let Some((string, end)) = plain else { return self.form() };
        let text = self.tape.text;
        let form = Form::new(FormKind::Str(text[string + 1..end - 1].to_owned()), Span::new(string, end));
        let form = reader::known_tag(&text[start + 1..string - 1], &form, Span::new(start, end))?.ok()?;
        self.add_form(form, end);
        Some(())
    }

    /// Reads a token that ends where a name would end, by the reader.
    fn rare(&mut self, token: Token) -> Option<()> {
        match self.end_of(self.at) {
            Some(end) => self.literal(token, end),
            None => self.form(),
        }
    }

    /// Reads the token from here to `end` by the reader.
    fn literal(&mut self, token: Token, end: usize) -> Option<()> {
        let lexeme = Lexeme { token, span: Span::new(self.at, end) };
        let form = reader::literal(self.tape.text, lexeme)?.ok()?;
        self.add_form(form, end);
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let mut end = self.at + 1;
        let mut is_plain = true;
        loop {
            end += memchr2(b'"', b'\\', self.bytes.get(end..)?)?;
            if self.bytes[end] == b'"' {
                break;
            }
            is_plain = false;
            end += 2;
        }
        match is_plain {
            true => self.token(Kind::Str, end + 1),
            false => self.literal(Token::String, end + 1)?,
        }
        Some(())
    }

    fn keyword(&mut self) -> Option<()> {
        let Some(end) = self.end_of(self.at) else { return self.form() };
        let name = &self.bytes[self.at + 1..end];
        if name.is_empty() || name.len() > LONGEST_NAME || name.iter().any(|byte| matches!(byte, b':' | b'/')) {
            return self.literal(Token::Keyword, end);
        }
        self.token(Kind::Keyword, end);
        Some(())
    }

    /// Scans a number whose digits begin at an offset.
    fn number(&mut self, digits: usize) -> Option<()> {
        let Some(end) = self.end_of(digits) else { return self.form() };
        let digits = &self.bytes[digits..end];
        let whole = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let has_leading_zero = digits[0] == b'0' && whole > 1;
        if whole == digits.len() && whole < 19 && !has_leading_zero {
            self.token(Kind::Int, end);
        } else if is_fraction(&digits[whole..]) {
            self.token(Kind::Float, end);
        } else {
            return self.literal(Token::Number, end);
        }
        Some(())
    }

    /// Returns whether a number begins here with `+`, or with a point.
    fn is_rare_number(&self) -> bool {
        let sign = usize::from(self.bytes[self.at] != b'.');
        let point = usize::from(self.bytes.get(self.at + sign) == Some(&b'.'));
        self.bytes.get(self.at + sign + point).is_some_and(u8::is_ascii_digit)
    }

    fn name(&mut self) -> Option<()> {
        let Some(end) = self.end_of(self.at) else { return self.form() };
        let name = &self.bytes[self.at..end];
        let kind = match name {
            // A character of no name.
            b"" => return None,
            // The code of functions after a blank.
            b"functions" if self.code.is_none() => return None,
            b"nil" => Kind::Nil,
            b"true" => Kind::True,
            b"false" => Kind::False,
            _ if name.len() > LONGEST_NAME || name.iter().any(|byte| matches!(byte, b':' | b'/')) => {
                return self.literal(Token::Name, end);
            }
            _ => Kind::Symbol,
        };
        self.token(kind, end);
        Some(())
    }
}

/// Returns whether this is a point with digits after it.
fn is_fraction(text: &[u8]) -> bool {
    matches!(text, [b'.', places @ ..] if !places.is_empty() && places.iter().all(u8::is_ascii_digit))
}

#[cfg(test)]
mod tests {
    use super::super::tape::Part;
    use super::*;
    use crate::snapshot::forms;
    use proptest::prelude::*;

    /// Returns the form that a part stands for.
    fn form_of(part: Part<'_>) -> Form {
        let items = || part.items().map(form_of).collect();
        let token = part.token().unwrap_or_default();
        let kind = match part.kind() {
            Kind::List => FormKind::List(items()),
            Kind::Vector => FormKind::Vector(items()),
            Kind::Nil => FormKind::Nil,
            Kind::True => FormKind::Bool(true),
            Kind::False => FormKind::Bool(false),
            Kind::Int => FormKind::Int(part.integer().unwrap()),
            Kind::Float => FormKind::Float(token.parse().unwrap()),
            Kind::Str => FormKind::Str(part.string().unwrap().to_owned()),
            Kind::Keyword => FormKind::Keyword(part.keyword().unwrap().to_owned()),
            Kind::Symbol => FormKind::Symbol(part.symbol().unwrap().to_owned()),
            Kind::Form => return part.form().unwrap().clone(),
            Kind::Code => return part.code().unwrap().borrow().clone().unwrap(),
        };
        Form::new(kind, Span::new(part.start() as usize, part.start() as usize))
    }

    /// Collects the offsets at which forms begin.
    fn starts(form: &Form, out: &mut Vec<u32>) {
        out.push(form.span.start);
        form.children().iter().for_each(|child| starts(child, out));
    }

    /// Returns whether a text is scanned; what is scanned is what the reader reads.
    fn is_scanned(text: &str) -> bool {
        let Some(tape) = scan(text) else { return false };
        let scanned: Vec<Form> = tape.rows().map(form_of).collect();
        let read = forms(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        // NaN equals nothing.
        assert_eq!(format!("{:?}", kinds(&scanned)), format!("{:?}", kinds(&read)), "{text}");
        let places = |forms: &[Form]| {
            let mut out = Vec::new();
            forms.iter().for_each(|form| starts(form, &mut out));
            out
        };
        assert_eq!(places(&scanned), places(&read), "{text}");
        true
    }

    /// Returns forms as text, without their places.
    fn kinds(forms: &[Form]) -> Vec<String> {
        let shown = |form: &Form| format!("{:?}", form.kind);
        forms
            .iter()
            .flat_map(|form| match &form.kind {
                FormKind::List(items) => [vec!["(".to_owned()], kinds(items), vec![")".to_owned()]].concat(),
                FormKind::Vector(items) => [vec!["[".to_owned()], kinds(items), vec!["]".to_owned()]].concat(),
                FormKind::Map(items) => [vec!["{".to_owned()], kinds(items), vec!["}".to_owned()]].concat(),
                FormKind::Set(items) => [vec!["#{".to_owned()], kinds(items), vec!["}".to_owned()]].concat(),
                _ => vec![shown(form)],
            })
            .collect()
    }

    #[test]
    fn what_is_written_is_scanned() {
        for text in [
            "(lispbox-session 5)\n(define a [1 -2 0 1.5 -0.25 nil true false \"a\" :a b])\n",
            "(x (record :a 1 \"b c\" -) (ref 3) (quote a/b) :a/b \"\\\"\\u00e9\\n\" \"\" é :größe \"é\")",
            "(x 1e9 1.5E-3 007 +5 .5 1. -.5 1N 1.50M 123456789012345678901 999999999999999999 1+ 2/3 .x ..5 + -)",
            "(x ##Inf ##NaN \\a \\newline \\( \\\" \\é #\"a\\\"(\" #time/date \"2024-02-29\" #keyword \"a b\" #symbol \"1\" #t)",
            "(object 1 (functions \"p\" ([f (fn* ([x] {:a #{'x} \"(\" \\)} ^{:b 1} y ; a comment)\n 1))]) ([f \"a/b\"]) [x]))",
            "",
        ] {
            assert!(is_scanned(text), "{text}");
        }
    }

    /// Returns the spans of a form and of those within it.
    fn spans(form: &Form) -> Vec<Span> {
        [vec![form.span], form.children().iter().flat_map(spans).collect()].concat()
    }

    /// Asserts that the code of functions has the same forms at the same places as the reader reads.
    fn assert_code(text: &str) {
        let text = format!("(x (functions {text}))");
        let (Some(tape), Ok(read)) = (scan(&text), forms(&text)) else { return };
        let scanned = tape.rows().map(form_of).next().unwrap();
        let (scanned, read) = (&scanned.children()[1], &read[0].children()[1]);
        assert_eq!(format!("{:?}", scanned.kind), format!("{:?}", read.kind), "{text}");
        assert_eq!(spans(scanned), spans(read), "{text}");
    }

    #[test]
    fn code_is_what_the_reader_reads() {
        for code in [
            "\"p\" ([f (fn* f ([x & y] {:a #{x 1 \"b\"}, :é \\a} (quote ()) [] {} #{}))]) ([+ \"core/+\"]) [x y]",
            "functions (functions functions) [nil true false -1 1.5 1e9 1N a/b :a/b #\"r\" #inst \"2024-02-29\" #t]",
            "^{:a 1} x ^long y 'z @a #(inc %) #_b #?(:clj 1 :cljs 2) ; comment\n",
        ] {
            assert!(is_scanned(&format!("(x (functions {code}))")), "{code}");
            assert_code(code);
        }
        for code in ["{:a}", "{:a 1 :a 2}", "#{1 1}", "{", "}", "[)", "{]", "#{)", "(functions"] {
            assert!(!is_scanned(&format!("(x (functions {code}))")), "{code}");
        }
        assert!(!is_scanned("(x {:a 1} #{1})"));
        let deep = CODE_NESTING - 2;
        for (levels, fits) in [(deep, true), (deep + 1, false)] {
            assert_eq!(scan(&format!("(x (functions {}{}))", "(".repeat(levels), ")".repeat(levels))).is_some(), fits);
        }
    }

    #[test]
    fn other_text_is_left_to_the_reader() {
        for text in [
            "x",
            "; a comment\n(x)",
            "\u{feff}(x)",
            "(x ; a comment\n)",
            "(x #_y z)",
            "(x 'y)",
            "(x {:a 1})",
            "(x #{1})",
            "(x ^a b)",
            "(x `a)",
            "(x ~a)",
            "(x @a)",
            "(x #(a))",
            "(x #'a)",
            "(x #?(:clj 1))",
            "(x #| |# y)",
            "(x",
            "(x]",
            "x)",
            ")",
            "(x \"a)",
            "(x \"\\",
            "(x \"\\q\")",
            "(x 1a)",
            "(x :)",
            "(x a:)",
            "(x ::a:)",
            "(x 0b1)",
            "(x #time/date \"x\")",
            "(x #unknown 1)",
            "(x \\ab)",
            "(x \u{a0})",
            "(x “a”)",
            "(x \u{0})",
            "(functions)",
            "(x ( functions))",
            "(x (functions)",
            "(x (functions 1a))",
        ] {
            assert!(!is_scanned(text), "{text}");
        }
        let name = "a".repeat(LONGEST_NAME + 1);
        let (deep, closed) = ("(".repeat(CODE_NESTING + 1), ")".repeat(CODE_NESTING + 1));
        for text in [format!("(x {name})"), format!("(x :{name})"), format!("{deep}{closed}")] {
            assert!(!is_scanned(&text));
        }
        assert!(scan(&format!("{}{}", &deep[1..], &closed[1..])).is_some());
    }

    /// Pieces of text that make tokens, and parts of tokens.
    const PIECES: &[&str] = &[
        "(",
        "(",
        ")",
        ")",
        "[",
        "]",
        " ",
        " ",
        " ",
        "\n",
        ",",
        "\"",
        "\"a b\"",
        "\\n",
        "\\",
        ":",
        ":a",
        "a",
        "nil",
        "true",
        "false",
        "quote",
        "functions",
        "(functions ",
        "ref",
        "1",
        "0",
        "-",
        "+",
        ".",
        "e",
        "E5",
        "N",
        "M",
        "/",
        "#",
        "##",
        "Inf",
        "#\"",
        "#t",
        "#_",
        "#keyword ",
        "#inst ",
        "'",
        "{",
        "}",
        "#{",
        "^",
        "~",
        "`",
        ";",
        "é",
        "\u{200c}",
        "\u{a0}",
        "😀",
        "\u{1}",
        "x20",
        "r",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]

        #[test]
        fn what_is_scanned_is_what_the_reader_reads(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12)) {
            is_scanned(&format!("(x {})", pieces.concat()));
            is_scanned(&pieces.concat());
            assert_code(&pieces.concat());
            is_scanned(&format!("(x (functions {}))", pieces.concat()));
        }

        #[test]
        fn numbers_are_those_of_the_reader(number in "[+-]?[0-9]{0,20}[.]?[0-9]{0,3}([eE][+-]?[0-9]{1,3})?[NM]?") {
            is_scanned(&format!("(x {number})"));
        }
    }
}
