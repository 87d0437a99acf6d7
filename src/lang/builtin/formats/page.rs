//! Consumers of HTML tokenizer events: the text of a page as a browser would lay it out, and its links.

use super::shown::{Marks, Shown};
use html5gum::emitters::callback::CallbackEvent;

/// Maximum depth of indentation; lists and quotations that nest deeper are not indented further.
const INDENTED: usize = 4;

/// Elements whose content is not part of the text.
const SKIPPED: &[&[u8]] =
    &[b"script", b"style", b"title", b"template", b"svg", b"object", b"iframe", b"noembed", b"noframes", b"datalist"];

/// Elements with an empty line before and after them.
const PARAGRAPHS: &[&[u8]] = &[
    b"p",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"blockquote",
    b"ul",
    b"ol",
    b"dl",
    b"table",
    b"pre",
    b"hr",
    b"figure",
    b"section",
    b"article",
];

/// Elements that begin and end a line.
const LINES: &[&[u8]] = &[
    b"div",
    b"li",
    b"tr",
    b"dt",
    b"dd",
    b"header",
    b"footer",
    b"aside",
    b"main",
    b"nav",
    b"address",
    b"form",
    b"fieldset",
    b"details",
    b"summary",
    b"center",
    b"body",
    b"html",
    b"head",
    b"caption",
    b"figcaption",
    b"thead",
    b"tbody",
    b"tfoot",
    b"option",
];

/// The text of a page under construction.
pub struct Page {
    text: String,
    with_addresses: bool,
    /// Pending line ends, to be written before the next text.
    breaks: usize,
    space: bool,
    /// A table cell has begun on the current line.
    cell: bool,
    /// The element being skipped, and the number of nested elements of that name that are open.
    skipping: Option<(Vec<u8>, usize)>,
    /// The enclosing lists.
    lists: Vec<List>,
    /// Number of enclosing lists beyond those in `lists`.
    deeper: usize,
    quotes: usize,
    preformatted: usize,
    /// A `pre` has begun: a line end that follows is no part of it.
    at_pre: bool,
    /// The marker of a list item has been written, but no text after it.
    at_mark: bool,
    /// A joiner between the last character and the next one.
    joiner: Option<char>,
    tag: Tag,
    /// The address of the enclosing link.
    address: Option<String>,
    with_hidden: bool,
    shown: Shown,
    /// The number of characters that were left out because they are not displayed.
    left_out: usize,
}

/// Stands for the number of an item until it is known.
const WAITING: char = '\u{1}';

/// A list.
#[derive(Default)]
struct List {
    /// The number of the next item; `None` for a list without numbers.
    number: Option<i64>,
    step: i64,
    /// The items of a reversed list whose first number is not known before its end: the place of each marker in the text,
    /// and the number that it sets.
    waiting: Option<Vec<(usize, Option<i64>)>>,
}

/// A start tag that is being read.
#[derive(Default)]
struct Tag {
    name: Vec<u8>,
    attribute: Vec<u8>,
    marks: Marks,
    address: Option<String>,
    description: Option<String>,
    /// The `start` of a list or the `value` of an item.
    number: Option<i64>,
    reversed: bool,
}

impl Tag {
    /// Begins to read another tag.
    fn begin(&mut self, name: &[u8]) {
        let (mut own, attribute) = (std::mem::take(&mut self.name), std::mem::take(&mut self.attribute));
        own.clear();
        own.extend_from_slice(name);
        *self = Tag { name: own, attribute, ..Tag::default() };
    }

    fn attribute(&mut self, name: &[u8]) {
        self.attribute.clear();
        self.attribute.extend_from_slice(name);
        self.marks.name(name);
        self.reversed |= name == b"reversed";
    }

    fn value(&mut self, value: &[u8]) {
        let text = || String::from_utf8_lossy(value).trim().to_string();
        match (&*self.name, &*self.attribute) {
            (b"a", b"href") => self.address = Some(text()),
            (b"img", b"alt") => self.description = Some(String::from_utf8_lossy(value).into_owned()),
            (b"ol", b"start") | (b"li", b"value") => self.number = text().parse().ok(),
            (_, name) => self.marks.value(name, value),
        }
    }
}

impl Page {
    /// Creates an empty page.
    pub fn new(with_addresses: bool, with_hidden: bool) -> Page {
        Page {
            text: String::new(),
            with_addresses,
            breaks: 0,
            space: false,
            cell: false,
            skipping: None,
            lists: Vec::new(),
            deeper: 0,
            quotes: 0,
            preformatted: 0,
            at_pre: false,
            at_mark: false,
            joiner: None,
            tag: Tag::default(),
            address: None,
            with_hidden,
            shown: Shown::default(),
            left_out: 0,
        }
    }

    /// Returns the text, and the number of characters that were left out because they are not displayed.
    pub fn finish(mut self) -> (String, usize) {
        self.end_link();
        while !self.lists.is_empty() {
            self.end_list();
        }
        (self.text, self.left_out)
    }

    /// Processes an event; returns the length of the text in bytes.
    pub fn take(&mut self, event: CallbackEvent<'_>) -> usize {
        match event {
            CallbackEvent::OpenStartTag { name } => self.tag.begin(name),
            CallbackEvent::AttributeName { name } => self.tag.attribute(name),
            CallbackEvent::AttributeValue { value } => self.tag.value(value),
            CallbackEvent::CloseStartTag { .. } => {
                let tag = std::mem::take(&mut self.tag);
                self.open(&tag);
                self.tag = tag;
            }
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } if self.skipping.is_none() => {
                let value = String::from_utf8_lossy(value);
                if !self.is_shown() {
                    self.left_out += visible(&value);
                } else if self.preformatted > 0 {
                    self.lines(&value);
                } else {
                    self.words(&value);
                }
            }
            _ => {}
        }
        self.text.len()
    }

    fn is_shown(&self) -> bool {
        self.with_hidden || self.shown.is_shown()
    }

    fn open(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some((skipped, count)) = &mut self.skipping {
            // An element such as `svg` that is never closed must not swallow the rest of the page.
            let escapes = skipped != b"object" && matches!(name, b"body" | b"div" | b"p" | b"table");
            if skipped == name {
                *count += 1;
            }
            if !escapes {
                return;
            }
            self.skipping = None;
        }
        if SKIPPED.contains(&name) {
            self.skipping = Some((name.to_vec(), 1));
            return;
        }
        self.shown.before(name);
        if !self.shown.begin(name, &tag.marks) && !self.with_hidden {
            self.left_out += tag.description.as_deref().map_or(0, visible);
            return;
        }
        match name {
            b"br" => self.breaks += 1,
            b"td" | b"th" => {
                self.cell = true;
                self.space = true;
            }
            b"a" => {
                self.end_link();
                self.address = tag.address.clone().filter(|_| self.with_addresses);
            }
            _ => self.edge(name),
        }
        match name {
            b"ul" | b"ol" if self.lists.len() < INDENTED => self.lists.push(List::of(tag)),
            b"ul" | b"ol" => self.deeper += 1,
            b"blockquote" => self.quotes += 1,
            b"pre" => {
                self.preformatted += 1;
                self.at_pre = true;
            }
            b"tr" => self.cell = false,
            b"li" if self.is_shown() => self.item(tag.number),
            b"img" if self.is_shown() => self.words(tag.description.as_deref().unwrap_or_default()),
            _ => {}
        }
    }

    fn close(&mut self, name: &[u8]) {
        if let Some((skipped, count)) = &mut self.skipping {
            if skipped == name {
                *count -= 1;
                if *count == 0 {
                    self.skipping = None;
                }
            }
            return;
        }
        if !self.shown.finish(name) && !self.with_hidden {
            return;
        }
        match name {
            b"a" => self.end_link(),
            b"ul" | b"ol" if self.deeper > 0 => self.deeper -= 1,
            b"ul" | b"ol" => self.end_list(),
            b"pre" => self.preformatted = self.preformatted.saturating_sub(1),
            _ => {}
        }
        self.edge(name);
        if name == b"blockquote" {
            self.quotes = self.quotes.saturating_sub(1);
        }
    }

    /// Requests line ends where an element of that name begins or ends.
    fn edge(&mut self, name: &[u8]) {
        if self.at_mark && name != b"li" {
            return;
        }
        // Nested lists and the paragraphs of an item are not separated by empty lines.
        let in_list = !self.lists.is_empty() && matches!(name, b"ul" | b"ol" | b"p");
        if PARAGRAPHS.contains(&name) && !in_list {
            self.breaks = self.breaks.max(2);
        } else if in_list || LINES.contains(&name) {
            self.breaks = self.breaks.max(1);
        }
    }

    /// Writes the marker of a list item, which may set its number.
    fn item(&mut self, set: Option<i64>) {
        let indent = "  ".repeat(self.lists.len().max(1) - 1);
        let mark = match self.lists.last_mut() {
            Some(List { waiting: Some(_), .. }) => format!("{indent}{WAITING} "),
            Some(List { number: Some(number), step, .. }) => {
                let own = set.unwrap_or(*number);
                *number = own.saturating_add(*step);
                format!("{indent}{own}. ")
            }
            _ => format!("{indent}- "),
        };
        // The marker is written even for an empty item, and stays on the same line as the text that follows.
        self.breaks = self.breaks.max(1);
        self.begin();
        self.text.push_str(&mark);
        if let Some(List { waiting: Some(waiting), .. }) = self.lists.last_mut() {
            waiting.push((self.text.len() - 2, set));
        }
        (self.breaks, self.space, self.at_mark) = (0, false, true);
    }

    /// Ends a list, and numbers the items of a reversed one, whose first number is the number of its items.
    fn end_list(&mut self) {
        let Some(waiting) = self.lists.pop().and_then(|list| list.waiting) else { return };
        let Some((first, _)) = waiting.first() else { return };
        let rest = self.text.split_off(*first);
        let mut number = waiting.len() as i64;
        for (at, (place, set)) in waiting.iter().enumerate() {
            let end = waiting.get(at + 1).map_or(rest.len(), |(next, _)| next - first);
            number = set.unwrap_or(number);
            self.text.push_str(&format!("{number}."));
            self.text.push_str(&rest[place - first + 1..end]);
            number = number.saturating_sub(1);
        }
    }

    fn end_link(&mut self) {
        if let Some(address) = self.address.take()
            && !address.is_empty()
            && !self.text.ends_with(&address)
        {
            self.space = true;
            self.begin();
            self.text.push('(');
            self.text.push_str(&address);
            self.text.push(')');
        }
    }

    /// Writes the pending separator between the text so far and the text that follows.
    fn begin(&mut self) {
        let at_start = self.text.is_empty();
        if self.breaks > 0 {
            self.text.truncate(self.text.trim_end_matches(' ').len());
            if !at_start {
                let most = if self.preformatted > 0 { usize::MAX } else { 2 };
                for _ in 0..self.breaks.min(most) {
                    self.text.push('\n');
                }
            }
            for _ in 0..self.quotes.min(INDENTED) {
                self.text.push_str("> ");
            }
        } else if self.cell && !at_start && !self.text.ends_with('\n') {
            self.text.push_str(" | ");
        } else if self.space && !at_start && !self.text.ends_with(['\n', ' ']) {
            self.text.push(' ');
        }
        (self.breaks, self.space, self.cell, self.at_mark) = (0, false, false, false);
        self.joiner = None;
    }

    /// Appends text, collapsing white space.
    fn words(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                // Invisible characters, which mails use to pad their previews.
                '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{ad}' | '\u{feff}' | '\u{34f}' => {}
                // Joiners stay between two visible characters.
                '\u{200c}' | '\u{200d}' => self.joiner = Some(c),
                c if c.is_whitespace() => self.space = true,
                c => {
                    if self.space || self.breaks > 0 || self.cell || self.text.is_empty() {
                        self.begin();
                    }
                    self.text.extend(self.joiner.take());
                    self.at_mark = false;
                    self.text.push(c);
                }
            }
        }
    }

    /// Appends preformatted text.
    fn lines(&mut self, value: &str) {
        for c in value.chars() {
            let is_first = std::mem::take(&mut self.at_pre);
            match c {
                '\n' if is_first => {}
                '\n' => self.breaks += 1,
                '\r' => {}
                c => {
                    if self.breaks > 0 {
                        self.begin();
                    }
                    self.at_mark = false;
                    self.text.push(c);
                }
            }
        }
    }
}

impl List {
    fn of(tag: &Tag) -> List {
        if tag.name != b"ol" {
            return List::default();
        }
        let waits = tag.reversed && tag.number.is_none();
        List {
            number: Some(tag.number.unwrap_or(1)),
            step: if tag.reversed { -1 } else { 1 },
            waiting: waits.then(Vec::new),
        }
    }
}

/// Returns the number of characters of a text that are not white space.
fn visible(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// The links of a page, collected so far.
#[derive(Default)]
pub struct Links {
    found: Vec<(String, String)>,
    open: Option<(String, String)>,
    in_link_tag: bool,
    tag: Vec<u8>,
    attribute_is_address: bool,
    attribute_is_description: bool,
    length: usize,
}

impl Links {
    /// Processes an event; returns an estimate of the memory held, in bytes.
    pub fn take(&mut self, event: CallbackEvent<'_>) -> usize {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.in_link_tag = name == b"a";
                if self.in_link_tag {
                    self.end();
                } else if PARAGRAPHS.contains(&name) || LINES.contains(&name) || name == b"br" {
                    self.add(" ");
                }
            }
            CallbackEvent::AttributeName { name } => {
                self.attribute_is_address = self.in_link_tag && name == b"href";
                self.attribute_is_description = self.tag == b"img" && name == b"alt";
            }
            CallbackEvent::AttributeValue { value } if self.in_link_tag && self.attribute_is_address => {
                let address = String::from_utf8_lossy(value).trim().to_string();
                self.length += address.len() + 64;
                self.open = Some((String::new(), address));
            }
            CallbackEvent::AttributeValue { value } if self.attribute_is_description => {
                self.add(&String::from_utf8_lossy(value));
            }
            CallbackEvent::String { value } => self.add(&String::from_utf8_lossy(value)),
            CallbackEvent::EndTag { name: b"a" } => self.end(),
            _ => {}
        }
        self.length
    }

    /// Returns the text and address of each link.
    pub fn finish(mut self) -> Vec<(String, String)> {
        self.end();
        self.found
    }

    fn add(&mut self, value: &str) {
        let Some((text, _)) = &mut self.open else { return };
        self.length += value.len();
        for c in value.chars() {
            match c {
                c if c.is_whitespace() => {
                    if !text.is_empty() && !text.ends_with(' ') {
                        text.push(' ');
                    }
                }
                c => text.push(c),
            }
        }
    }

    fn end(&mut self) {
        if let Some((mut text, address)) = self.open.take() {
            text.truncate(text.trim_end().len());
            self.found.push((text, address));
        }
    }
}
