//! HTML to text, with an HTML5 tokenizer: handles malformed markup in linear time, without building a tree.

use super::super::arguments::{string, take};
use super::super::options::FLAG;
use super::super::text::{ask_for_copy, pay};
use super::page::{Links, Page};
use crate::error::{Outcome, Signal};
use crate::machine::Machine;
use crate::native::{Builtin, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::map::Map;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Readable, Reader, Span, StringReader, Tokenizer};
use std::cell::RefCell;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "html/text",
        &["[s & options]"],
        "The text of an HTML page or mail: paragraphs and lines as displayed, `- ` before list items, ` | ` between \
         table cells, without scripts and styles. Text that a page hides by an attribute or inline style is left out, and \
         a note says how much. Options: `:hidden true` keeps it, `:links true` adds the address after the text of each \
         link.",
        &[
            ("(html/text \"<p>Dear&nbsp;Ann,</p><ul><li>one<li>two</ul>\")", "\"Dear Ann,\\n\\n- one\\n- two\""),
            ("(html/text \"see <a href='https://x.org/a'>this</a>\" :links true)", "\"see this (https://x.org/a)\""),
            ("(html/text \"<p style='display:none'>secret</p>Hello\")", "\"Hello\""),
        ],
        to_text,
    )
    .with_options(&TEXT),
    Builtin::new(
        "html/links",
        &["[s]"],
        "The links of an HTML page in order, each a map with `:text` and `:href`.",
        &[(
            "(html/links \"<a href='https://x.org?a=1&amp;b=2'>the <b>page</b></a>\")",
            "[{:text \"the page\", :href \"https://x.org?a=1&b=2\"}]",
        )],
        links,
    ),
];

static TEXT: OptionSet =
    OptionSet { function: "html/text", accepted: &[OptionSpec::new("links", &FLAG), OptionSpec::new("hidden", &FLAG)] };

/// Aliases, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("html->text", "html/text"),
    ("html-to-text", "html/text"),
    ("html/to-text", "html/text"),
    ("html/->text", "html/text"),
    ("html/strip", "html/text"),
    ("html/strip-tags", "html/text"),
    ("html/parse", "html/text"),
    ("html2text", "html/text"),
    ("strip-tags", "html/text"),
    ("strip-html", "html/text"),
    ("extract-links", "html/links"),
    ("html->links", "html/links"),
];

fn to_text(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let given = TEXT.read(&mut arguments[1..])?;
    let value = take(arguments, 0);
    // Nil, such as a missing body, yields the empty text.
    if value.is_nil() {
        return Ok(Value::string(""));
    }
    let mut page = Page::new(given.is_on("links"), given.is_on("hidden"));
    tokenize(machine, string(&value)?, |event| page.take(event))?;
    let (text, left_out) = page.finish();
    if left_out > 0 {
        machine.core.note(format!(
            "html/text left out {left_out} characters that the page does not display; `:hidden true` keeps them"
        ));
    }
    ask_for_copy(machine, &text, 1)?;
    Ok(Value::string(&text))
}

fn links(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    let value = take(arguments, 0);
    if value.is_nil() {
        return Ok(Value::vector(Vec::new()));
    }
    let mut links = Links::default();
    tokenize(machine, string(&value)?, |event| links.take(event))?;
    let found = links.finish();
    machine.reserve_values(4 * found.len() as u64)?;
    let mut out = Vec::with_capacity(found.len());
    for (text, href) in found {
        machine.charge(1)?;
        let mut link = Map::default();
        link.insert(Value::keyword("text"), Value::string(&text));
        link.insert(Value::keyword("href"), Value::string(&href));
        out.push(Value::Map(Arc::new(link)));
    }
    Ok(Value::vector(out))
}

/// Passes the events of the tokenizer to `take`, which returns the amount of text it holds, in bytes.
fn tokenize(machine: &mut Machine, source: &str, mut take: impl FnMut(CallbackEvent<'_>) -> usize) -> Outcome<()> {
    pay(machine, source)?;
    ask_for_copy(machine, source, 1)?;
    let mut emitter = CallbackEmitter::new(move |event: CallbackEvent<'_>, _: Span<()>| match event {
        // Comments and errors produce no text and are charged by length alone.
        CallbackEvent::Comment { .. } | CallbackEvent::Doctype { .. } | CallbackEvent::Error(_) => None,
        event => Some(take(event)),
    });
    emitter.naively_switch_states(true);
    let mut asked = 4_096;
    machine.charge(source.len() as u64 / 16)?;
    let (machine, stopped) = (RefCell::new(machine), RefCell::new(None));
    let reader = Watched { text: source.to_reader(), unwatched: 0, machine: &machine, stopped: &stopped };
    for made in Tokenizer::new_with_emitter(reader, emitter) {
        let Ok(made) = made else { break };
        let mut machine = machine.borrow_mut();
        machine.charge(1)?;
        if made > asked {
            asked = 2 * made;
            machine.reserve(asked as u64)?;
        }
    }
    stopped.into_inner().map_or(Ok(()), Err)
}

/// The number of bytes read between two checks of the time limit.
const STRETCH: usize = 64 << 10;

/// A reader that checks the time limit as it goes: megabytes may pass before the next event.
struct Watched<'a, 'm> {
    text: StringReader<'a>,
    /// Bytes read since the last check.
    unwatched: usize,
    machine: &'a RefCell<&'m mut Machine>,
    /// The signal that ended reading early.
    stopped: &'a RefCell<Option<Signal>>,
}

/// The error of reading that was ended early.
#[derive(Debug)]
struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("reading was stopped early")
    }
}

impl std::error::Error for Stopped {}

impl Watched<'_, '_> {
    fn look(&mut self) -> Result<(), Stopped> {
        if self.unwatched < STRETCH {
            return Ok(());
        }
        self.unwatched -= STRETCH;
        self.machine.borrow_mut().check_time().map_err(|signal| {
            *self.stopped.borrow_mut() = Some(signal);
            Stopped
        })
    }
}

impl Reader for Watched<'_, '_> {
    type Error = Stopped;

    fn read_byte(&mut self) -> Result<Option<u8>, Stopped> {
        self.look()?;
        self.unwatched += 1;
        let Ok(byte) = self.text.read_byte();
        Ok(byte)
    }

    fn try_read_string(&mut self, wanted: &[u8], case_sensitive: bool) -> Result<bool, Stopped> {
        self.look()?;
        self.unwatched += 1;
        let Ok(read) = self.text.try_read_string(wanted, case_sensitive);
        Ok(read)
    }

    fn read_until<'b>(&'b mut self, needle: &[u8], byte: &'b mut [u8; 4]) -> Result<Option<&'b [u8]>, Stopped> {
        self.look()?;
        let Ok(chunk) = self.text.read_until(needle, byte);
        self.unwatched += chunk.map_or(0, <[u8]>::len);
        Ok(chunk)
    }
}
