//! Checks that the grammar in `grammar/` matches the reader, and that its other formats match the grammar.

mod charset;
mod corpus;
mod decoding;
mod derive;
mod ebnf;
#[path = "../peers/mod.rs"]
mod peers;
mod recognise;
mod tokens;
mod tools;
mod written;

use lispbox::lang::internal::reader::read;
use std::path::Path;

use derive::{Deriver, Random};
use recognise::Recogniser;

/// Error codes with which the reader may reject a derivation, for reasons that the grammar documents.
const BEYOND: [&str; 6] =
    ["NestingTooDeep", "FunctionLiteral", "DuplicateKey", "InvalidNumber", "InvalidTaggedText", "ProgramTooLarge"];

/// The number of randomly derived programs.
const COUNT: u64 = 2_500;

/// The codes of [`BEYOND`] that occur for random derivations.
const MET: [&str; 2] = ["DuplicateKey", "InvalidTaggedText"];

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn grammar() -> ebnf::Grammar {
    ebnf::read(&file("lispbox.ebnf"))
}

#[test]
fn what_the_grammar_derives_is_read() {
    let grammar = grammar();
    let mut refused = 0;
    let mut length = 0;
    for seed in 0..COUNT {
        let program = Deriver::new(&grammar, seed).program(8 + seed as usize % 12);
        length += program.len();
        match read(&program) {
            Ok(_) => {}
            Err(error) if MET.contains(&error.code) => {
                // Text that the grammar specifies in full must be valid.
                let is_spelled_out = ["`#inst ", "`#time/date "].iter().any(|start| error.message.starts_with(start));
                assert!(!is_spelled_out && !error.message.ends_with("UUID"), "seed {seed}: {error}\n{program}");
                refused += 1;
            }
            Err(error) => panic!("seed {seed}: {}: {error}\n{program}", error.code),
        }
    }
    assert!(refused < COUNT / 2, "{refused} of {COUNT} are refused");
    assert!(length as u64 / COUNT > 20, "the derivations have {length} bytes together");
}

#[test]
fn what_the_forms_for_decoding_derive_is_read() {
    let strict = decoding::grammar(&grammar());
    let mut refused = 0;
    for seed in 0..COUNT {
        let program = Deriver::new(&strict, seed).spaced_program(8 + seed as usize % 12);
        match read(&program) {
            Ok(_) => {}
            Err(error) if error.code == "DuplicateKey" => refused += 1,
            Err(error) => panic!("seed {seed}: {}: {error}\n{program}", error.code),
        }
    }
    assert!(refused < COUNT / 4, "{refused} of {COUNT} are refused");
}

#[test]
fn what_the_grammar_derives_is_recognised() {
    let grammar = grammar();
    let recogniser = Recogniser::new(&grammar, "program");
    for seed in 0..300 {
        let program = Deriver::new(&grammar, seed).program(12);
        assert_eq!(recogniser.check(&program), Ok(()), "seed {seed}: {program}");
    }
}

#[test]
fn every_reason_beyond_the_grammar_is_named_in_it() {
    let text = file("lispbox.ebnf");
    for code in BEYOND {
        assert!(text.contains(code), "{code}");
    }
    let deep = "[".repeat(300) + &"]".repeat(300);
    let long = "1".repeat(10_001);
    for (program, code) in [
        (deep.as_str(), "NestingTooDeep"),
        ("#(f #(g))", "FunctionLiteral"),
        ("{:a 1 :a 2}", "DuplicateKey"),
        ("#{1 1}", "DuplicateKey"),
        (&long, "InvalidNumber"),
        ("#time/zone \"nowhere\"", "InvalidTaggedText"),
    ] {
        assert_eq!(Recogniser::new(&grammar(), "program").check(program), Ok(()));
        assert_eq!(read(program).map_err(|error| error.code), Err(code));
    }
}

#[test]
fn the_programs_of_the_project_are_derived() {
    let grammar = grammar();
    let recogniser = Recogniser::new(&grammar, "program");
    let mut wrong = Vec::new();
    let mut count = 0;
    for program in corpus::programs() {
        let is_read = read(&program.text);
        let is_derived = recogniser.check(&program.text);
        match (is_read, is_derived) {
            (Ok(_), Ok(())) => count += 1,
            (Err(error), Ok(())) if !BEYOND.contains(&error.code) => {
                wrong.push(format!("{}: is derived, but {error}:\n{}", program.place, program.text));
            }
            (Ok(_), Err(reason)) => wrong.push(format!("{}: {reason}:\n{}", program.place, program.text)),
            (Err(_), _) => {}
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1_000, "only {count} programs were found");
}

#[test]
fn broken_programs_are_neither_derived_nor_read() {
    let grammar = grammar();
    let recogniser = Recogniser::new(&grammar, "program");
    let is_program = |text: &&&str| recogniser.check(text).is_ok() || read(text).is_ok();
    let wrong: Vec<_> = corpus::BROKEN.iter().filter(is_program).collect();
    assert_eq!(wrong, Vec::<&&str>::new());
}

/// Checks derivations with pieces removed, duplicated, exchanged and inserted.
#[test]
fn the_reader_gets_through_any_soup() {
    let grammar = grammar();
    let recogniser = Recogniser::new(&grammar, "program");
    let mut derived_and_read = 0;
    for seed in 0..1_500 {
        let program = Deriver::new(&grammar, seed).program(10);
        let mut text: Vec<char> = program.chars().collect();
        let mut random = Random(seed);
        for _ in 0..=random.below(6) {
            let at = random.below(text.len() + 1);
            let end = (at + random.below(6)).min(text.len());
            match random.below(4) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece: Vec<char> = text[at..end].to_vec();
                    let to = random.below(text.len() + 1);
                    text.splice(to..to, piece);
                }
                2 => {
                    let broken = corpus::BROKEN[random.below(corpus::BROKEN.len())];
                    text.splice(at..at, broken.chars());
                }
                _ => text.insert(at, char::from_u32(random.below(0x3000) as u32).unwrap_or(' ')),
            }
        }
        let text: String = text.into_iter().collect();
        let read = read(&text);
        let derived = recogniser.check(&text);
        match (&read, &derived) {
            (Ok(_), Ok(())) => derived_and_read += 1,
            (Err(error), Ok(())) => {
                assert!(BEYOND.contains(&error.code), "seed {seed}: {}: {error}\n{text}", error.code);
            }
            _ => {}
        }
    }
    assert!(derived_and_read > 100, "{derived_and_read}");
}

/// Returns the file names of the decoding grammars, and their expected contents.
fn forms() -> [(&'static str, String); 2] {
    let strict = decoding::grammar(&grammar());
    [
        ("lispbox.gbnf", written::write(written::Form::Gbnf, decoding::NOTE, &strict)),
        ("lispbox.lark", written::write(written::Form::Lark, decoding::NOTE, &strict)),
    ]
}

#[test]
fn the_forms_for_decoding_are_up_to_date() {
    let writes = std::env::var_os("LISPBOX_WRITE_GRAMMARS").is_some();
    for (name, text) in forms() {
        if writes {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("grammar").join(name);
            std::fs::write(path, &text).expect("it can be written");
        }
        assert!(
            file(name) == text,
            "grammar/{name} is stale: run `LISPBOX_WRITE_GRAMMARS=1 cargo test --test grammar`"
        );
    }
}
