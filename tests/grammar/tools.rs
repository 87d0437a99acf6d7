//! Tests the grammars with the tools that use them: decoders (llguidance, which takes Lark and GBNF), the parser
//! `lark`, and the tokenizer of editors (vscode-textmate).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lispbox::lang::internal::reader::read;
use serde_json::{Value, json};

use crate::corpus;
use crate::peers::{folder, installed, peer};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Sends lines of JSON to a command, and returns the lines of JSON with which it answers.
fn answers(command: &mut Command, lines: Vec<Value>) -> Vec<Value> {
    let mut peer = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut input = peer.stdin.take().expect("it was piped");
    // Both scripts read all of their input before they answer.
    for line in lines {
        writeln!(input, "{line}").expect("it reads");
    }
    drop(input);
    let output = peer.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?} failed");
    let text = String::from_utf8(output.stdout).expect("it writes text");
    text.lines().map(|line| serde_json::from_str(line).expect("it writes JSON")).collect()
}

/// Returns true if the program is readable, or is rejected for the one reason that a decoder cannot detect.
fn is_read(program: &str) -> bool {
    match read(program) {
        Ok(_) => true,
        Err(error) => error.code == "DuplicateKey",
    }
}

#[test]
fn decoders_take_the_grammars_and_let_through_what_is_read() {
    let Some(python) = installed("venv/bin/python") else { return };
    let imports = Command::new(&python).args(["-c", "import lark, llguidance"]).stderr(Stdio::null()).status();
    let are_there = imports.is_ok_and(|status| status.success());
    if peer("the Python packages `lark` and `llguidance`", are_there.then(PathBuf::new)).is_none() {
        return;
    }
    let mut programs: Vec<String> = corpus::programs()
        .into_iter()
        .map(|program| program.text)
        .filter(|text| read(text).is_ok() && !text.trim().is_empty())
        .collect();
    programs.sort();
    programs.dedup();
    let well_formed = programs.len();
    programs.extend(corpus::BROKEN.iter().map(|text| text.to_string()));
    let cases = programs.iter().enumerate().map(|(nth, program)| {
        let is_small = program.len() < 120 && (nth % 9 == 0 || nth >= well_formed);
        json!({"program": program, "lark": is_small})
    });
    let script = project("tests/peers/decoding.py");
    let lines = answers(
        Command::new(python).arg(script).arg(project("grammar/lispbox.lark")).arg(project("grammar/lispbox.gbnf")),
        cases.collect(),
    );
    let mut wrong = Vec::new();
    let mut derived = 0;
    let mut decoded = 0;
    for line in &lines {
        if let Some(program) = line["decoded"].as_str() {
            decoded += 1;
            if !is_read(program) {
                wrong.push(format!("{} let through: {program}", line["tool"]));
            }
            continue;
        }
        let program = line["program"].as_str().expect("a program");
        let tools = line["answers"].as_object().expect("answers");
        let all: Vec<bool> = tools.values().map(|answer| answer == true).collect();
        if all.iter().any(|answer| *answer != all[0]) {
            wrong.push(format!("the tools disagree, {tools:?}: {program}"));
        }
        derived += usize::from(all[0]);
        if all[0] && !is_read(program) {
            wrong.push(format!("is derived: {program}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(decoded > 50, "only {decoded} programs were decoded");
    assert!(derived * 100 > well_formed * 95, "only {derived} of {well_formed} programs are derived");
}

/// The tokens of a program as an editor highlights them: text and innermost scope.
const COLOURED: &[(&str, &str)] = &[
    (
        "(defn ^:private area [r] (* 2 -1.5M r)) ; circle",
        "( punctuation.section.list.begin|defn keyword.control.definition|^:private  storage.modifier.metadata|area \
         entity.name.function|[ punctuation.section.vector.begin|r variable.other|] punctuation.section.vector.end|( \
         punctuation.section.list.begin|* entity.name.function.call|2 constant.numeric|-1.5M constant.numeric|r \
         variable.other|) punctuation.section.list.end|) punctuation.section.list.end|; circle \
         comment.line.semicolon",
    ),
    (
        "\"a\\n\\q\ntwo\"",
        "\" punctuation.definition.string.begin|a string.quoted.double|\\n constant.character.escape|\\q \
         invalid.illegal.escape|two string.quoted.double|\" punctuation.definition.string.end",
    ),
    (
        "#\"\\d+\"",
        "#\" punctuation.definition.regexp.begin|\\d constant.character.escape|+ \
      keyword.operator.quantifier.regexp|\" punctuation.definition.regexp.end",
    ),
    (
        "\\a \\newline \\( x",
        "\\a constant.character|\\newline constant.character|\\( constant.character|x variable.other",
    ),
    (
        ":k ::a/b",
        ": punctuation.definition.keyword|k constant.keyword|:: punctuation.definition.keyword|a/b constant.keyword",
    ),
    (
        "nil true #f nilly",
        "nil constant.language.nil|true constant.language.boolean|#f constant.language.boolean|nilly variable.other",
    ),
    (
        "0x1F 16rFF 7N 1e-3 .5 1a 08x ##Inf",
        "0x1F constant.numeric|16rFF constant.numeric|7N constant.numeric|1e-3 constant.numeric|.5 \
         constant.numeric|1a invalid.illegal.number|08x invalid.illegal.number|##Inf constant.numeric.symbolic",
    ),
    (
        "(define (f x) `(~@x ~y 'z))",
        "( punctuation.section.list.begin|define keyword.control.definition|( punctuation.section.list.begin|f \
         entity.name.function|x variable.other|) punctuation.section.list.end|` keyword.operator.quote|( \
         punctuation.section.list.begin|~@ keyword.operator.quote|x variable.other|~ keyword.operator.quote|y \
         variable.other|' keyword.operator.quote|z variable.other|) punctuation.section.list.end|) \
         punctuation.section.list.end",
    ),
    (
        "#| a #| b |# c |# #_gone #inst \"2024\"",
        "#| comment.block| a  comment.block|#| comment.block| b  comment.block||# comment.block| c  \
         comment.block||# comment.block|#_ punctuation.definition.comment.discard|gone variable.other|#inst \
         storage.type.tag|\" punctuation.definition.string.begin|2024 string.quoted.double|\" \
         punctuation.definition.string.end",
    ),
    (
        "#(+ % %2) (when x' a#) {:a 1})",
        "#( punctuation.section.function.begin|+ entity.name.function.call|% variable.parameter|%2 \
         variable.parameter|) punctuation.section.function.end|( punctuation.section.list.begin|when \
         keyword.control|x' variable.other|a# variable.other|) punctuation.section.list.end|{ \
         punctuation.section.map.begin|: punctuation.definition.keyword|a constant.keyword|1 constant.numeric|} \
         punctuation.section.map.end|) invalid.illegal.bracket",
    ),
];

#[test]
fn editors_colour_programs() {
    if installed("node_modules/vscode-textmate").is_none() || installed("node_modules/vscode-oniguruma").is_none() {
        return;
    }
    let lines = answers(
        Command::new("node")
            .arg(project("tests/peers/textmate.js"))
            .arg(folder())
            .arg(project("grammar/lispbox.tmLanguage.json")),
        COLOURED.iter().map(|(program, _)| json!(program)).collect(),
    );
    assert_eq!(lines.len(), COLOURED.len());
    for (line, (program, expected)) in lines.iter().zip(COLOURED) {
        let tokens = line.as_array().expect("tokens").iter();
        let shown: Vec<String> = tokens
            .map(|token| format!("{} {}", token[0].as_str().unwrap_or("?"), token[1].as_str().unwrap_or("?")))
            .collect();
        assert_eq!(shown.join("|"), *expected, "{program}");
    }
}
