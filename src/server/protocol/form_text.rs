//! The text of a form about a call.
//!
//! A form's message is plain text, but clients show it as they like: VS Code renders it as Markdown, in which an HTML
//! comment in two arguments would hide the ones between, a link would show another address, and signs would vanish. In a
//! block of code each sign stands for itself. Clients do not wrap the lines of such a block, so they are wrapped here.

use crate::server::approvals::Question;

/// The line that begins and ends a block of code.
const FENCE: &str = "```";

/// Maximum length of a line, in characters, and the mark before what was wrapped. No line of a question begins with it.
const WIDTH: usize = 100;
const WRAPPED: &str = "↳ ";

/// Returns a question as the message of a form.
pub(super) fn form_text(question: &Question) -> String {
    // Each line begins with words, a bracket, a quote or blanks, so that none ends the block.
    let mut text = format!("{FENCE}\n");
    for line in question.to_string().lines() {
        let mut rest = line;
        while let Some((at, _)) = rest.char_indices().nth(WIDTH) {
            text.push_str(&rest[..at]);
            text.push('\n');
            text.push_str(WRAPPED);
            rest = &rest[at..];
        }
        text.push_str(rest);
        text.push('\n');
    }
    text + FENCE
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(tool: &str, arguments: Value) -> Question {
        let asked = crate::lang::Question {
            id: crate::lang::CallId::default(),
            server: "mail".into(),
            tool: tool.into(),
            arguments: arguments.to_string(),
            reason: "`policy.ask` has it".to_owned(),
            is_guarded: false,
        };
        Question::of(&asked, &"a".repeat(64))
    }

    #[test]
    fn a_question_is_one_block_of_code_whatever_is_in_it() {
        let hostile = json!({
            "to": "ann <!--", "cc": "eve", "text": "--> [ann](https://eve.example)\n```\n# Approved\n```", "```": "```",
            "items": ["```", ["\n```"]]
        });
        let text = form_text(&question("```\n```", hostile));
        let is_fence = |line: &&str| line.trim_start_matches(' ').starts_with("```");
        assert_eq!(text.lines().filter(is_fence).collect::<Vec<_>>(), ["```", "```"], "{text}");
        assert!(
            text.starts_with("```\nA program wants to call mail/```\\u{a}``` with\n{\n") && text.ends_with("\n```")
        );
        assert!(text.contains("\n  \"to\": \"ann <!--\",\n  \"cc\": \"eve\",\n"), "{text}");
    }

    #[test]
    fn no_line_is_longer_than_a_client_shows_and_nothing_is_left_out() {
        let long = format!("{}\"to\": \"ann\"", "é".repeat(250));
        let question = question("send", json!({ "text": long }));
        let text = form_text(&question);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH + WRAPPED.chars().count()), "{text}");
        let whole = text.replace(&format!("\n{WRAPPED}"), "");
        assert_eq!(whole, format!("```\n{question}\n```"));
    }
}
