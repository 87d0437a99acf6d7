//! Our two tools as a client sees them. Every client spends tokens on these texts in every conversation, so what a model
//! is given of both (names, descriptions, schemas) stays within 220 tokens, whatever servers are configured. Titles,
//! icons, annotations and `_meta` are for the client.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{Icon, MetaObject, ProtocolVersion, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::lang::internal::{advice, foreign_text, outline};
use crate::lang::{Catalogue, Limits, Server};
use crate::server::text::cut;

use super::card;

/// Maximum cost of the list of servers, in tokens as [`cost`] estimates them.
const NAMES_COST: usize = 36;
/// Maximum length of a name; a longer one is truncated.
const NAME_KEPT: usize = 32;

/// The icon of both tools: a pair of parentheses.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20fill='none'%20stroke='%2355a'%20stroke-width='3'%20stroke-linecap='round'%3E%3Cpath%20d='M9%203q-6%209%200%2018M15%203q6%209%200%2018'/%3E%3C/svg%3E";

/// Returns both tools, for these servers and for a client that speaks this revision of MCP; `None` is the latest. A
/// revision is sent only the fields that it has: titles and `_meta` from 2025-06-18 on, icons from 2025-11-25 on.
pub(in crate::server) fn both(servers: &[&str], revision: Option<&ProtocolVersion>) -> Vec<Tool> {
    let names = named(servers);
    let mut eval = tool(
        "lisp_eval",
        format!(
            "Clojure-style Lisp; tools are functions: (server/tool {{:arg 1}}), all items: (all-pages server/tool {{}}). \
             For 2+ calls, loops, filtering, aggregation; call a tool directly for one whole result. Definitions \
             persist; replies end with [defined; calls]. (dir) (doc time/parse) \
             (apropos \"x\") (describe v).{names}"
        ),
        json!({
            "type": "object",
            "properties": {
                "program": {"type": "string"},
                "session": {"type": "string"},
                "data": {"description": "JSON, bound to `data`"},
                "limits": {"type": "object"},
                "run": {"description": "from a reply", "type": "string"}
            }
        }),
    );
    let mut env = tool(
        "lisp_env",
        "Tool signatures; query: docs, search".to_owned(),
        json!({"type": "object", "properties": {"session": {"type": "string"}, "query": {"type": "string"}}}),
    )
    .with_annotations(ToolAnnotations::new().read_only(true));
    // Revisions are dates, so they compare as text.
    let has = |first: &ProtocolVersion| revision.is_none_or(|revision| revision.as_str() >= first.as_str());
    if has(&ProtocolVersion::V_2025_06_18) {
        // Clients that find tools by search give this one to the model at once.
        let always = json!({"anthropic/alwaysLoad": true}).as_object().cloned().unwrap_or_default();
        eval = eval.with_title("Run a Lisp program").with_meta(MetaObject(always));
        env = env.with_title("Tools for Lisp programs");
    }
    let mut both = vec![eval, env];
    if has(&ProtocolVersion::V_2025_11_25) {
        let icon = Icon::new(ICON).with_mime_type("image/svg+xml").with_sizes(vec!["any".to_owned()]);
        both = both.into_iter().map(|tool| tool.with_icons(vec![icon.clone()])).collect();
    }
    both
}

/// Returns the tool by which the prompt of a client decides on waiting calls, for clients without a better way.
pub(in crate::server) fn approve() -> Tool {
    let text = json!({"type": "string"});
    let schema = json!({
        "type": "object",
        "properties": {"run": text, "calls": {"type": "array", "items": text}}
    });
    tool("lisp_approve", "Asks the user to approve waiting calls, the lines of the reply, verbatim".to_owned(), schema)
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).idempotent(false))
}

/// Returns the tools of the card: the one with which a model has it shown, and the one with which the card sends a decision,
/// which clients keep from models.
pub(in crate::server) fn card() -> [Tool; 2] {
    let meta = |meta: Value| MetaObject(meta.as_object().cloned().unwrap_or_default());
    let text = json!({"type": "string"});
    let schema = json!({"type": "object", "properties": {"run": text}});
    let shown = tool("lisp_approve", "Shows the user the waiting calls of a run, to decide".to_owned(), schema)
        .with_title("Ask for approval")
        .with_annotations(ToolAnnotations::new().read_only(true))
        // Hosts of earlier revisions look for the second field.
        .with_meta(meta(
            json!({"ui": {"resourceUri": card::URI, "visibility": ["model"]}, "ui/resourceUri": card::URI}),
        ));
    let schema = json!({"type": "object", "properties": {"secret": text, "form": {"type": "object"}}});
    let decided = tool("lisp_decide", "Takes the decision of the user from the card".to_owned(), schema)
        .with_annotations(ToolAnnotations::new().read_only(false).destructive(true).idempotent(false))
        .with_meta(meta(json!({"ui": {"visibility": ["app"]}})));
    [shown, decided]
}

fn tool(name: &'static str, description: String, schema: Value) -> Tool {
    let Value::Object(schema) = schema else { unreachable!("the schemas above are objects") };
    Tool::new(name, Cow::Owned(description), Arc::new(schema))
}

/// Returns ` Servers: a, b +3 more`: as many names as the budget allows.
fn named(servers: &[&str]) -> String {
    match listed(servers, NAMES_COST, cost) {
        list if list.is_empty() => list,
        list => format!(" Servers: {list}"),
    }
}

/// Returns `a, b +3 more`: as many names as cost at most `most`, each by itself and one for the separator.
fn listed(names: &[&str], most: usize, cost: fn(&str) -> usize) -> String {
    let mut list = String::new();
    let mut spent = 0;
    for (index, name) in names.iter().enumerate() {
        let name = cut(&foreign_text::name(name), NAME_KEPT);
        spent += cost(&name) + 1;
        if spent > most {
            let gap = if index == 0 { "" } else { " " };
            return format!("{list}{gap}+{} more", names.len() - index);
        }
        list.push_str(if index == 0 { "" } else { ", " });
        list.push_str(&name);
    }
    list
}

/// Returns an upper bound of the number of tokens in a text, close for names of the usual kind: words of letters cost
/// one for each four letters, digits one for each three, anything else one for each byte.
fn cost(text: &str) -> usize {
    let mut cost = 0;
    let mut run = 0;
    for c in text.chars() {
        if c.is_ascii_lowercase() {
            cost += usize::from(run % 4 == 0);
            run += 1;
        } else {
            cost += c.len_utf8();
            run = 0;
        }
    }
    cost
}

/// Maximum length of the instructions, in bytes: clients cut longer ones.
const INSTRUCTIONS: usize = 2_000;
/// Maximum number of servers described to a connecting client, and maximum length of a line, in characters.
const TOLD: usize = 40;
const LINE_KEPT: usize = 120;

/// Maximum length of the names of servers whose tools are not known, in bytes.
const UNLISTED: usize = 260;

/// The first sentence of the instructions.
const INTRODUCTION: &str = "lispbox runs Clojure-style programs (lisp_eval) in which the tools of the servers below are functions: one \
                            program makes many calls and returns only the answer.\n";

/// The line before the signatures of the tools.
const HEADER: &str = "Tools, by server ((dir) lists them again, (doc name/tool) describes one in full). Dates: \
                      (time/parse s \"dd.MM.yyyy\"), (time/between a b :days)\n";

/// The line before the servers, if no tool is known.
const UNKNOWN: &str = "Servers ((dir) lists their tools, (dir 'name) those of one):\n";

/// The text if there are no servers.
const NO_SERVERS: &str = "lispbox runs Clojure-style programs (lisp_eval). No servers are configured, so programs have no \
                          tools: the user adds some with `lispbox config import`.";

/// Returns the instructions for a connecting client: what lispbox is, and what `(dir)` prints of the tools that are known
/// so far and can be quoted, as far as there is room, so that a model can call them without listing them first, and the
/// names of the other servers and of those in `cut`, which have further tools, with limits that are lower than usual. If no
/// tool is known, the servers, one line each.
pub(in crate::server) fn instructions(
    servers: &[Server],
    known: &Catalogue,
    cut: &[String],
    limits: &Limits,
) -> String {
    if servers.is_empty() {
        return NO_SERVERS.to_owned();
    }
    let is_known = |server: &Server| known.tools.iter().any(|tool| tool.server == server.name);
    let (known_ones, others): (Vec<Server>, Vec<Server>) = servers.iter().cloned().partition(is_known);
    let told = if known_ones.is_empty() {
        format!("{INTRODUCTION}{UNKNOWN}{}", described(servers))
    } else {
        let names: Vec<&str> = others.iter().map(|server| server.name.as_str()).collect();
        let others = match listed(&names, UNLISTED, str::len) {
            list if list.is_empty() => list,
            list => format!("Not listed yet, (dir 'name) does: {list}\n"),
        };
        let cut: Vec<&str> = cut.iter().map(String::as_str).filter(|name| !names.contains(name)).collect();
        let cut = match listed(&cut, UNLISTED, str::len) {
            list if list.is_empty() => list,
            list => format!("With further tools, (dir 'name) lists them: {list}\n"),
        };
        let advice = advice(known, limits);
        let room = INSTRUCTIONS - INTRODUCTION.len() - HEADER.len() - others.len() - cut.len() - advice.len();
        format!("{INTRODUCTION}{HEADER}{}{advice}{cut}{others}", outline(&known_ones, known, room))
    };
    told.trim_end().to_owned()
}

/// Returns the part of instructions that is sent: a warning or a redaction may have made them longer.
pub(in crate::server) fn within(told: &str) -> &str {
    &told[..told.floor_char_boundary(INSTRUCTIONS)]
}

/// Returns the servers with their descriptions, one line each.
fn described(servers: &[Server]) -> String {
    let line = |server: &Server| match foreign_text::line(&server.description) {
        description if description.is_empty() => foreign_text::name(&server.name).into_owned(),
        description => format!("{}: {description}", foreign_text::name(&server.name)),
    };
    let more = |count| format!("and {count} more: (apropos \"word\") searches the tools of all");
    let room = INSTRUCTIONS - INTRODUCTION.len() - UNKNOWN.len() - more(servers.len()).len();
    let mut out = String::new();
    for (told, server) in servers.iter().enumerate() {
        let line = cut(&line(server), LINE_KEPT);
        if told == TOLD || out.len() + line.len() > room {
            return out + &more(servers.len() - told);
        }
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(servers: &[&str]) -> String {
        both(servers, None)[0].description.clone().expect("described").into_owned()
    }

    #[test]
    fn ten_servers_are_all_named() {
        let ten = [
            "gmail",
            "google-calendar",
            "slack",
            "github",
            "filesystem",
            "postgres",
            "web-search",
            "linear",
            "notion",
            "stripe",
        ];
        let text = description(&ten);
        assert!(text.ends_with(&format!(" Servers: {}", ten.join(", "))), "{text}");
        assert!(!description(&[]).contains("Servers"));
    }

    #[test]
    fn long_lists_are_cut() {
        let many: Vec<String> = (0..500).map(|index| format!("サーバー{index}")).collect();
        let text = description(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(text.ends_with(" more"), "{text}");
        let text = description(&["x".repeat(90).as_str()]);
        assert!(text.ends_with("xxx…"), "{text}");
    }

    #[test]
    fn instructions_have_one_line_per_server() {
        let server = |name: &str, description: &str| Server { name: name.into(), description: description.into() };
        let instructions = |servers: &[Server]| instructions(servers, &Catalogue::default(), &[], &Limits::default());
        assert_eq!(instructions(&[]), NO_SERVERS);
        let two = instructions(&[server("a", ""), server("b", "mail")]);
        assert_eq!(two, format!("{INTRODUCTION}{UNKNOWN}a\nb: mail"));
        assert!(NO_SERVERS.starts_with("lispbox runs ") && two.starts_with("lispbox runs "));
        let many = instructions(&vec![server("a", &"x".repeat(500)); 200]);
        assert_eq!(many.lines().count(), 16);
        assert!(
            many.len() <= INSTRUCTIONS
                && many.ends_with("\nand 187 more: (apropos \"word\") searches the tools of all"),
            "{many}"
        );
        let short = instructions(&vec![server("a", "mail"); 41]);
        assert!(short.ends_with("\nand 1 more: (apropos \"word\") searches the tools of all"), "{short}");
        let wide = instructions(&vec![server("サーバー", &"\u{1F4E7}\n\u{7}".repeat(500)); 200]);
        assert!(wide.len() <= INSTRUCTIONS && !wide.contains('\u{7}'), "{wide}");
    }
}
