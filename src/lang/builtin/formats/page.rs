//! Consumers of HTML tokenizer events: the text of a page as a browser would lay it out, and its links.

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
    /// The enclosing lists, with the number of the last item of ordered ones.
    lists: Vec<Option<u64>>,
    /// Number of enclosing lists beyond those in `lists`.
    deeper: usize,
    quotes: usize,
    preformatted: usize,
    /// The marker of a list item has been written, but no text after it.
    at_mark: bool,
    /// The element whose tag is being read.
    tag: Vec<u8>,
    attribute: Attribute,
    /// The address of the enclosing link.
    address: Option<String>,
}

/// The attributes that affect the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    Address,
    Description,
    Other,
}

impl Attribute {
    fn of(tag: &[u8], name: &[u8]) -> Attribute {
        match (tag, name) {
            (b"a", b"href") => Attribute::Address,
            (b"img", b"alt") => Attribute::Description,
            _ => Attribute::Other,
        }
    }
}

impl Page {
    /// Creates an empty page.
    pub fn new(with_addresses: bool) -> Page {
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
            at_mark: false,
            tag: Vec::new(),
            attribute: Attribute::Other,
            address: None,
        }
    }

    /// Returns the text.
    pub fn finish(mut self) -> String {
        self.end_link();
        self.text
    }

    /// Processes an event; returns the length of the text in bytes.
    pub fn take(&mut self, event: CallbackEvent<'_>) -> usize {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                self.tag.clear();
                self.tag.extend_from_slice(name);
                self.attribute = Attribute::Other;
                self.open(name);
            }
            CallbackEvent::AttributeName { name } => self.attribute = Attribute::of(&self.tag, name),
            CallbackEvent::AttributeValue { value } if self.skipping.is_none() => match self.attribute {
                Attribute::Address if self.with_addresses => {
                    self.address = Some(String::from_utf8_lossy(value).trim().to_string());
                }
                Attribute::Description => self.words(&String::from_utf8_lossy(value)),
                _ => {}
            },
            CallbackEvent::EndTag { name } => self.close(name),
            CallbackEvent::String { value } if self.skipping.is_none() => {
                let value = String::from_utf8_lossy(value);
                if self.preformatted > 0 { self.lines(&value) } else { self.words(&value) }
            }
            _ => {}
        }
        self.text.len()
    }

    fn open(&mut self, name: &[u8]) {
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
        match name {
            b"br" => self.breaks += 1,
            b"td" | b"th" => {
                self.cell = true;
                self.space = true;
            }
            b"a" => self.end_link(),
            _ => self.edge(name),
        }
        match name {
            b"ul" | b"ol" if self.lists.len() < INDENTED => self.lists.push((name == b"ol").then_some(0)),
            b"ul" | b"ol" => self.deeper += 1,
            b"blockquote" => self.quotes += 1,
            b"pre" => self.preformatted += 1,
            b"tr" => self.cell = false,
            b"li" => self.item(),
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
        match name {
            b"a" => self.end_link(),
            b"ul" | b"ol" if self.deeper > 0 => self.deeper -= 1,
            b"ul" | b"ol" => drop(self.lists.pop()),
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

    /// Writes the marker of a list item.
    fn item(&mut self) {
        let depth = self.lists.len().max(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}{number}. ", "  ".repeat(depth - 1))
            }
            _ => format!("{}- ", "  ".repeat(depth - 1)),
        };
        // The marker is written even for an empty item, and stays on the same line as the text that follows.
        self.breaks = self.breaks.max(1);
        self.begin();
        self.text.push_str(&mark);
        (self.breaks, self.space, self.at_mark) = (0, false, true);
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
                for _ in 0..self.breaks.min(2) {
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
    }

    /// Appends text, collapsing white space.
    fn words(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                // Invisible characters, which mails use to pad their previews.
                '\u{200b}'..='\u{200f}' | '\u{ad}' | '\u{feff}' | '\u{34f}' => {}
                c if c.is_whitespace() => self.space = true,
                c => {
                    if self.space || self.breaks > 0 || self.cell {
                        self.begin();
                    }
                    self.at_mark = false;
                    self.text.push(c);
                }
            }
        }
    }

    /// Appends preformatted text.
    fn lines(&mut self, value: &str) {
        for c in value.chars() {
            match c {
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
                self.attribute_is_address = Attribute::of(&self.tag, name) == Attribute::Address;
                self.attribute_is_description = Attribute::of(&self.tag, name) == Attribute::Description;
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
