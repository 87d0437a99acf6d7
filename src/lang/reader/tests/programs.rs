//! Tests of accepted and rejected programs, by complete results and complete messages.

use std::time::{Duration, Instant};

use crate::form::{Form, FormKind};
use crate::reader::{ReadError, read, text_of};
use crate::span::Span;

/// Reads a program and formats its forms.
fn forms(source: &str) -> String {
    let forms = read(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    forms.iter().map(shown).collect::<Vec<_>>().join(" ")
}

fn shown(form: &Form) -> String {
    let all = |items: &[Form]| items.iter().map(shown).collect::<Vec<_>>().join(" ");
    match &form.kind {
        FormKind::Nil => "nil".to_string(),
        FormKind::Bool(value) => value.to_string(),
        FormKind::Int(value) => value.to_string(),
        FormKind::BigInt(value) => format!("{value}N"),
        FormKind::Decimal(value) => format!("{value}M"),
        FormKind::Time(time) => format!("#{} {:?}", time.tag(), time.readable()),
        FormKind::Float(value) => format!("{value:?}"),
        FormKind::Char(value) => format!("{value:?}"),
        FormKind::Str(value) => format!("{value:?}"),
        FormKind::Keyword(name) => format!(":{name}"),
        FormKind::Symbol(name) => name.clone(),
        FormKind::Regex(pattern) => format!("/{pattern}/"),
        FormKind::List(items) => format!("({})", all(items)),
        FormKind::Vector(items) => format!("[{}]", all(items)),
        FormKind::Map(items) => format!("{{{}}}", all(items)),
        FormKind::Set(items) => format!("#{{{}}}", all(items)),
        FormKind::Tagged(tag, form) => format!("#{tag} {}", shown(form)),
    }
}

fn refused(source: &str) -> ReadError {
    match read(source) {
        Ok(forms) => panic!("{source} was read as {forms:?}"),
        Err(error) => error,
    }
}

/// Returns code, message and suggestion of the error, and the text at its position.
fn refusal(source: &str) -> String {
    let error = refused(source);
    format!("{} at {:?}: {error}", error.code, text_of(source, error.span))
}

#[test]
fn collections_and_comments() {
    assert_eq!(forms(""), "");
    assert_eq!(forms("#!/usr/bin/env lispbox\n; nothing\n#| nor #| here |# |#,"), "");
    assert_eq!(forms("(a [b, {:c #{d}}] ()) \u{a0}e"), "(a [b {:c #{d}}] ()) e");
    assert_eq!(forms("(a #_b #_#_c d) #_(x) [#_ y]"), "(a) []");
    assert_eq!(forms("(a \")\" \\) ; )\n#| ) |#)"), "(a \")\" ')')");
}

#[test]
fn names_and_keywords() {
    assert_eq!(forms("nil true false #t #f #true #false t"), "nil true false true false true false t");
    let names = "a a/b / + - -> ->> *x* <= a' .method Class. Math/PI & ... ns.name/x a# %1 =>";
    assert_eq!(forms(names), names);
    assert_eq!(forms(":a :a/b :a.b ::auto :a-b? :1 :->x :a' :/"), ":a :a/b :a.b :auto :a-b? :1 :->x :a' :/");
}

#[test]
fn numbers() {
    assert_eq!(forms("0 42 +5 -5 0x1F -0XfF 017 2r1010 36rZZ 42N -1N"), "0 42 5 -5 31 -255 15 10 1295 42N -1N");
    assert_eq!(forms("9223372036854775807 -9223372036854775808"), "9223372036854775807 -9223372036854775808");
    assert_eq!(forms("9223372036854775808 0xFFFFFFFFFFFFFFFF"), "9223372036854775808N 18446744073709551615N");
    assert_eq!(
        forms("1.5 1. -1.5e10 1e9 .5 -.5 1.e2 1E-3"),
        "1.5 1.0 -15000000000.0 1000000000.0 0.5 -0.5 100.0 0.001"
    );
    assert_eq!(forms("##Inf ##-Inf ##NaN"), "inf -inf NaN");
}

#[test]
fn strings_regexes_and_characters() {
    assert_eq!(forms(r#""a\n\t\r\"\\\b\f\0\101\u00e9\uD83D\uDE00""#), "\"a\\n\\t\\r\\\"\\\\\\u{8}\\u{c}\\0Aé😀\"");
    assert_eq!(forms("\"two\nlines\""), "\"two\\nlines\"");
    assert_eq!(forms(r##"#"\d+\"[\\]""##), r#"/\d+\"[\\]/"#);
    assert_eq!(forms(r"\a \newline \space \tab \return"), r"'a' '\n' ' ' '\t' '\r'");
    assert_eq!(forms(r"\backspace \formfeed \nul \u0041 \o101"), r"'\u{8}' '\u{c}' '\0' 'A' 'A'");
    assert_eq!(forms(r"[\( \\ \, \u \o \é \;]"), r"['(' '\\' ',' 'u' 'o' 'é' ';']");
    assert_eq!(forms(r"#\a #\Space #\( #\x41"), "'a' ' ' '(' 'A'");
}

#[test]
fn prefixes() {
    assert_eq!(forms("'x `x ~x ~@x @x"), "(quote x) (syntax-quote x) (unquote x) (unquote-splicing x) (deref x)");
    assert_eq!(forms("''(a) '#_b c #'f"), "(quote (quote (a))) (quote c) (var f)");
    assert_eq!(forms("^String x ^:a ^{:doc \"y\"} [y] #^:b (z) (def ^:private w 1)"), "x [y] (z) (def w 1)");
    assert_eq!(forms("#inst \"2024\" 1.50M"), "#inst \"2024-01-01T00:00:00.000-00:00\" 1.50M");
    let uuid = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    assert_eq!(forms(&format!("#uuid \"{}\"", uuid.to_uppercase())), format!("{uuid:?}"));
    assert_eq!(
        refusal("#time/date \"2024-02-30\""),
        "InvalidTaggedText at \"#time/date \\\"2024-02-30\\\"\": `#time/date \"2024-02-30\"`: expected text such as `2024-02-29` after `#time/date`"
    );
    assert_eq!(forms("#:a{:b 1 c 2 :_/d 3 :x/y 4} #::{:e 1}"), "{:a/b 1 a/c 2 :d 3 :x/y 4} {:e 1}");
}

#[test]
fn function_literals() {
    assert_eq!(forms("#(+ % 1)"), "(fn* [%1] (+ %1 1))");
    assert_eq!(forms("#(f %3 [%1 %&])"), "(fn* [%1 %2 %3 & %&] (f %3 [%1 %&]))");
    assert_eq!(forms("#() %"), "(fn* [] ()) %");
    assert_eq!(forms("(#(f %) #(g %2))"), "((fn* [%1] (f %1)) (fn* [%1 %2] (g %2)))");
}

#[test]
fn reader_conditionals() {
    assert_eq!(forms("#?(:clj a :cljs b :default c) #?(:default d :clj e) #?(:cljs f :default g)"), "a d g");
    assert_eq!(forms("[#?(:cljs a) #?@(:clj [1 2]) #?@(:cljs [3])]"), "[1 2]");
    assert_eq!(forms("#?(:cljs #js {:a 1} :clj #?(:bb #x 1 :default z))"), "z");
}

#[test]
fn spans_cover_prefixes_and_brackets() {
    let source = " '(a) #(b %) #:c{:d 1} ^:e [f] @g";
    let spans: Vec<&str> = read(source).expect("it reads").iter().map(|form| text_of(source, form.span)).collect();
    assert_eq!(spans, ["'(a)", "#(b %)", "#:c{:d 1}", "^:e [f]", "@g"]);
}

#[test]
fn maps_and_sets_hold_a_constant_once() {
    assert_eq!(refusal("{:a 1 :b}"), "MapLiteral at \":b\": a map needs a value for each key: `:b` has none");
    assert_eq!(
        refusal("{:a :b 2 :c 3}"),
        "MapLiteral at \"3\": a map needs a value for each key: `3` has none; perhaps the value of `:a` is missing"
    );
    assert_eq!(refusal("{:a 1 :b 2 :a 3}"), "DuplicateKey at \":a\": the key `:a` appears twice in this map");
    assert_eq!(refused("{:a 1 :b 2 :a 3}").related, [(Span::new(1, 3), "it first appears here".to_string())]);
    assert_eq!(refusal("#{1 \"a\" 1N}"), "DuplicateKey at \"1N\": the item `1N` appears twice in this set");
    assert_eq!(refusal("#:a{:b 1 :a/b 2}"), "DuplicateKey at \":a/b\": the key `:a/b` appears twice in this map");
    assert_eq!(forms("#{1 1.0 (f) (f) ##NaN ##NaN \\1 \"1\"}"), "#{1 1.0 (f) (f) NaN NaN '1' \"1\"}");
}

#[test]
fn numbers_that_are_none() {
    let suggestion = |source: &str| refused(source).suggestion.unwrap_or_default();
    assert_eq!(
        refusal("12abc"),
        "InvalidNumber at \"12abc\": `12abc` is not a number; a name cannot begin with a digit; if it is text, write `\"12abc\"`"
    );
    assert_eq!(
        refusal("-1/00"),
        "InvalidNumber at \"-1/00\": divide by zero; a ratio `a/b` needs a `b` other than 0; infinity is written `##Inf`"
    );
    assert_eq!(
        refusal("1e9999999M"),
        "InvalidNumber at \"1e9999999M\": the exponent of `1e9999999M` is too large: decimals have at most a million places"
    );
    assert_eq!(suggestion("0b11"), "binary is written `2r11`");
    assert_eq!(suggestion("1_000"), "write it without `_`: `1000`");
    assert_eq!(suggestion("08"), "a leading 0 means octal, which has no 8 or 9; in decimal write `8`");
    assert_eq!(refused("99r1").code, "InvalidNumber");
    assert_eq!(refused("##Infinity").code, "InvalidNumber");
    let digits = "9".repeat(10_001);
    assert_eq!(refused(&digits).message, "an integer of 10001 digits: at most 10000 are read");
}

#[test]
fn strings_and_characters_that_are_none() {
    assert_eq!(
        refusal(r#"(re-find "\d+" x)"#),
        "InvalidEscape at \"\\\\d\": `\\d` is not an escape in a string; \
         a backslash is written `\\\\`; for a regex write `#\"…\"`, where backslashes stay as they are"
    );
    assert_eq!(refused(r#""\ud800""#).message, r"`\ud800` is half of a surrogate pair");
    assert_eq!(refused(r#""\u12""#).message, r"`\u12` is not a Unicode escape: `\u` takes four hexadecimal digits");
    assert_eq!(refused(r#""\777""#).message, r"octal escape `\777` is beyond `\377`");
    assert_eq!(refused(r"\o+1").code, "InvalidCharacter");
    assert_eq!(refused("#(%+1)").code, "FunctionLiteral");
    assert_eq!(refused(r"\abc").message, r"`\abc` is not a character");
    assert_eq!(refused("(\\\n)").message, "a backslash before white space other than a blank is not a character");
    assert_eq!(refused(r"(\ a)").message, r"`\ a` is not a character");
    let error = refused("(a\n \"b");
    assert_eq!(error.message, "the string opened at line 2, column 2 is not closed: `\"` is missing");
    assert_eq!((error.code, error.incomplete), ("UnterminatedString", true));
    assert_eq!(
        refused("(f \"hello)\n(f \"world\")").suggestion.as_deref(),
        Some(
            "perhaps the closing quote of the string opened at line 1, column 4 is missing: it runs over the end of its line"
        )
    );
    assert!(!refused(") \"a").incomplete);
    assert!(refused("(#| a").incomplete);
}

#[test]
fn habits_of_other_languages() {
    assert_eq!(
        refusal("{\"a\": 1}"),
        "InvalidKeyword at \":\": `:` is incomplete: the name of the keyword is missing; \
         a map is written `{:key value}` or `{\"key\" value}`, without a colon between the two"
    );
    assert_eq!(
        refusal("{a: 1}"),
        "InvalidSymbol at \"a:\": `a:` ends with a colon, which a name cannot; a keyword begins with it: `:a`"
    );
    let quotes = "strings are written in double quotes: `\"2024-01-01\"`";
    assert_eq!(refused("(f '2024-01-01')").suggestion.as_deref(), Some(quotes));
    assert_eq!(
        refusal("(f 'hello ')"),
        "PrefixWithoutForm at \"'\": nothing follows `'`, which must precede a form; \
         strings are written in double quotes: `\"hello \"`"
    );
    assert_eq!(
        refusal("(f “a”)"),
        "UnexpectedCharacter at \"“\": unexpected character `“` (U+201C); strings are written in plain double quotes: `\"text\"`"
    );
    let comment = "does not begin a comment; comments begin with `;`";
    assert_eq!(refusal("# a"), format!("CommentSyntax at \"#\": `#` {comment}"));
    assert_eq!(refusal("// a"), format!("CommentSyntax at \"//\": `//` {comment}"));
    assert_eq!(
        refusal("```clojure\n(f)\n```"),
        "MarkdownFence at \"```\": a Markdown fence (three backquotes) is not part of a program; \
         send the program alone, without the fence lines around it"
    );
    assert_eq!(
        refusal("(^ x 2)"),
        "InvalidMetadata at \"^ x 2\": metadata cannot be attached to `2`; \
         `^` attaches metadata to the form after it; for powers write `(Math/pow x y)`"
    );
}

#[test]
fn syntax_that_is_refused() {
    assert_eq!(
        refusal("(f #foo x)"),
        "UnknownTag at \"#foo\": the tag `#foo` is not known here; remove the tag; `#inst`, `#uuid`, `#time/date` and the like are known"
    );
    assert_eq!(refusal("#=(f)"), "UnsupportedSyntax at \"#=\": `#=` is not supported: reading never evaluates");
    assert_eq!(
        refusal("#(f #(g))"),
        "FunctionLiteral at \"#(\": a `#(…)` cannot be nested in another `#(…)`; write the inner one as `(fn [x] …)`"
    );
    assert_eq!(refused("#(f %21)").message, "`%21` is not an argument of `#(…)`");
    assert_eq!(refusal("(a ~@)"), "PrefixWithoutForm at \"~@\": nothing follows `~@`, which must precede a form");
    assert_eq!(refusal("^:a"), "PrefixWithoutForm at \"^\": nothing follows the metadata after `^`");
    assert_eq!(refusal("#_"), "PrefixWithoutForm at \"#_\": nothing follows `#_`, which must precede a form");
    assert_eq!(refused("#?(:clj)").message, "a reader conditional needs a form for each feature");
    assert_eq!(refused("x\u{200b}").message, "unexpected invisible character U+200B");
    for invalid in ["a::b", "/a", "a/", ":a:", ":::a", ":a/"] {
        assert!(matches!(refused(invalid).code, "InvalidSymbol" | "InvalidKeyword"), "{invalid}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
    assert!(read(&nested(256)).is_ok());
    assert_eq!(
        refused(&nested(257)).to_string(),
        "forms are nested more than 256 deep; give the inner parts names with `def`, `let` or `defn`"
    );
    assert!(read(&format!("{}x", "'".repeat(256))).is_ok());
    assert_eq!(refused(&format!("{}x", "'".repeat(257))).code, "NestingTooDeep");
    assert_eq!(refused(&format!("{}x", "^".repeat(257))).code, "NestingTooDeep");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test may look at the clock")]
fn hostile_programs_take_linear_time() {
    let begin = Instant::now();
    for piece in ["(", "[", "~@", "#_", "^"] {
        assert_eq!(refused(&piece.repeat(1_000_000)).code, "NestingTooDeep", "{piece}");
    }
    for piece in [")", "(]", ")(", "[(])"] {
        assert_eq!(refused(&piece.repeat(1_000_000)).code, "UnbalancedBrackets", "{piece}");
    }
    let spent = begin.elapsed();
    assert!(spent < Duration::from_secs(9), "{spent:?}");
}

#[test]
fn a_long_flat_program_is_read() {
    let source = "(f {:a 1} \"b\" #(+ % 2.5))\n".repeat(10_000_000 / 26);
    assert_eq!(read(&source).map(|forms| forms.len()), Ok(10_000_000 / 26));
}

#[test]
fn any_text_is_read_or_refused_at_a_place_in_it() {
    let pieces: Vec<&str> =
        "( ( [ { ) ) ] } #( #{ #?( #?@( #_ #' ' ` ~ ~@ @ ^ \" \\ #\\ #\" #| |# ; a b/c :k : 12a 1.5 1/2 0x \
         ##Inf #t #inst #x #: #:a % %& é “ 😀 ``` \\u \\ud800 N M e - . / // nil :clj :default # ? ="
            .split(' ')
            .collect();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..50_000 {
        let mut source = String::new();
        for _ in 0..random(30) {
            source.push_str(pieces[random(pieces.len())]);
            source.push_str(["", " ", "\n"][random(3)]);
        }
        if let Err(error) = read(&source) {
            let places = error.related.iter().map(|(span, _)| *span).chain([error.span]);
            let outside = |span: &Span| source.get(span.start as usize..span.end as usize).is_none();
            assert_eq!(places.filter(outside).count(), 0, "{source:?}: {error:?}");
        }
    }
}
