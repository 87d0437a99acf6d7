//! What the events of an HTML text add up to: its text as a browser would lay it out, or its links.

use html5gum::emitters::callback::CallbackEvent;

/// Lists and quotations nest deeper, but are not indented further.
const INDENTED: usize = 4;

/// Elements whose content is not part of the text.
const SKIPPED: &[&[u8]] =
    &[b"script", b"style", b"title", b"template", b"svg", b"object", b"iframe", b"noembed", b"noframes", b"datalist"];

/// Elements with an empty line before and behind them.
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

/// A page as text, so far.
pub struct Page {
    text: String,
    with_addresses: bool,
    /// Line ends to write before the next text.
    breaks: usize,
    space: bool,
    /// A cell has begun in the line.
    cell: bool,
    /// What is skipped, and how many of its kind are open.
    skipping: Option<(Vec<u8>, usize)>,
    /// The lists around the text, with the number of the last item where they are numbered.
    lists: Vec<Option<u64>>,
    /// Lists beyond those.
    deeper: usize,
    quotes: usize,
    preformatted: usize,
    /// The mark of a list's item has been written, and nothing behind it.
    at_mark: bool,
    /// The element whose tag is being read.
    tag: Vec<u8>,
    attribute: Attribute,
    /// The address of the link around the text.
    address: Option<String>,
}

/// The attributes that bear on the text.
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
    /// A page that has nothing yet.
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

    /// The text.
    pub fn finish(mut self) -> String {
        self.end_link();
        self.text
    }

    /// Takes the next event in; returns how long the text is.
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
            // A picture that is never closed does not swallow the page.
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

    /// Lines end where an element of that name begins and ends.
    fn edge(&mut self, name: &[u8]) {
        if self.at_mark && name != b"li" {
            return;
        }
        // Lists in lists, and the paragraphs of an item, stay together.
        let in_list = !self.lists.is_empty() && matches!(name, b"ul" | b"ol" | b"p");
        if PARAGRAPHS.contains(&name) && !in_list {
            self.breaks = self.breaks.max(2);
        } else if in_list || LINES.contains(&name) {
            self.breaks = self.breaks.max(1);
        }
    }

    /// The mark before the item of a list.
    fn item(&mut self) {
        let depth = self.lists.len().max(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}{number}. ", "  ".repeat(depth - 1))
            }
            _ => format!("{}- ", "  ".repeat(depth - 1)),
        };
        // The mark stands even before nothing, but in the same line as what follows.
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

    /// Writes what has to stand between the text so far and what comes now.
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

    /// Text whose white space counts as one blank.
    fn words(&mut self, value: &str) {
        for c in value.chars() {
            match c {
                // Marks that nobody sees, with which mail fills up its preview.
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

    /// Text that stands as it is.
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

/// The links of a page, so far.
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
    /// Takes the next event in; returns how long the texts are.
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

    /// Text and address of each.
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
