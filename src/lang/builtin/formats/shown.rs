//! The displayed parts of an HTML page: the open elements, and the attributes and inline styles that hide them.

/// Maximum number of open elements that are told apart; elements that nest deeper are displayed as their parents are.
const DEEPEST: usize = 512;

/// Elements without content and without an end tag.
const VOID: &[&[u8]] = &[
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param", b"source",
    b"track", b"wbr",
];

/// Elements whose beginning ends a paragraph that has no end tag.
const END_PARAGRAPHS: &[&[u8]] = &[
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"center",
    b"details",
    b"div",
    b"dl",
    b"fieldset",
    b"figure",
    b"footer",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"hr",
    b"main",
    b"nav",
    b"ol",
    b"p",
    b"pre",
    b"section",
    b"table",
    b"ul",
];

/// The attributes of an element that decide whether it is displayed.
#[derive(Default)]
pub struct Marks {
    hidden: bool,
    visible: Option<bool>,
    sized: Option<bool>,
}

impl Marks {
    /// Notes an attribute by its name, for those without a value.
    pub fn name(&mut self, name: &[u8]) {
        self.hidden |= name == b"hidden";
    }

    /// Notes an attribute with its value.
    pub fn value(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"aria-hidden" => self.hidden |= value.eq_ignore_ascii_case(b"true"),
            b"style" => self.style(&String::from_utf8_lossy(value)),
            _ => {}
        }
    }

    /// Notes the declarations of an inline style.
    fn style(&mut self, style: &str) {
        let style = style.to_ascii_lowercase();
        let (mut clipped, mut empty, mut placed, mut away) = (false, false, false, false);
        for declaration in style.split(';') {
            let Some((property, value)) = declaration.split_once(':') else { continue };
            let value = value.trim().trim_end_matches("!important").trim();
            let length = length(value);
            match property.trim() {
                "display" => self.hidden |= value == "none",
                "visibility" => self.visible = Some(!matches!(value, "hidden" | "collapse")),
                "opacity" => self.hidden |= length.is_some_and(|amount| amount <= 0.01),
                // A text of one pixel is as good as none.
                "font-size" => self.sized = length.map(|amount| amount > 1.0 || value.ends_with("em") && amount > 0.05),
                "font" if value.starts_with("0/") || value.starts_with("0px") => self.sized = Some(false),
                "overflow" | "overflow-x" | "overflow-y" => clipped |= matches!(value, "hidden" | "clip"),
                "height" | "max-height" | "width" | "max-width" => {
                    empty |= length.is_some_and(|amount| amount == 0.0 || amount <= 1.0 && value.ends_with("px"));
                }
                "position" => placed |= matches!(value, "absolute" | "fixed"),
                "left" | "right" | "top" | "bottom" => away |= length.is_some_and(|amount| amount <= -500.0),
                "text-indent" | "margin-left" => self.hidden |= length.is_some_and(|amount| amount <= -500.0),
                "color" => self.hidden |= value == "transparent",
                "clip" => self.hidden |= value.starts_with("rect(0") || value.starts_with("rect(1px"),
                "clip-path" => self.hidden |= matches!(value, "inset(50%)" | "inset(100%)" | "circle(0)"),
                "transform" => self.hidden |= value.starts_with("scale(0)"),
                _ => {}
            }
        }
        self.hidden |= clipped && empty || placed && away;
    }
}

/// Returns the number at the beginning of a length in CSS.
fn length(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(value.len());
    value[..end].parse().ok()
}

/// The open elements of a page, and whether they are displayed.
#[derive(Default)]
pub struct Shown {
    /// Fingerprints of the names of the open elements, the innermost last.
    open: Vec<u32>,
    /// Open elements beyond [`DEEPEST`].
    deeper: usize,
    /// The number of elements around the outermost one that is hidden with everything inside it.
    hidden: Option<usize>,
    /// The open elements that set their visibility, which elements inside may set again.
    visible: Vec<(usize, bool)>,
    /// The open elements that set a size of text, which elements inside may set again.
    sized: Vec<(usize, bool)>,
}

impl Shown {
    /// True if text at this place is displayed.
    pub fn is_shown(&self) -> bool {
        let last = |set: &[(usize, bool)]| set.last().is_none_or(|(_, is)| *is);
        self.hidden.is_none() && last(&self.visible) && last(&self.sized)
    }

    /// Ends the elements that the beginning of another one ends, as list items do.
    pub fn before(&mut self, name: &[u8]) {
        let (ended, within): (&[u32], &[u32]) = match name {
            b"li" => (&[LI], &[UL, OL]),
            b"dt" | b"dd" => (&[DT, DD], &[DL]),
            b"option" | b"optgroup" => (&[OPTION], &[SELECT]),
            b"td" | b"th" => (&[TD, TH], &[TR, TABLE]),
            b"tr" => (&[TR], &[TABLE, TBODY, THEAD, TFOOT]),
            b"tbody" | b"thead" | b"tfoot" => (&[TBODY, THEAD, TFOOT], &[TABLE]),
            name if END_PARAGRAPHS.contains(&name) => (&[P], &[TD, TH, LI, DIV, TABLE, BUTTON]),
            _ => return,
        };
        self.end(ended, within);
    }

    /// Begins an element; returns whether it has a place on the page, though perhaps not its text.
    pub fn begin(&mut self, name: &[u8], marks: &Marks) -> bool {
        let around = self.open.len();
        if VOID.contains(&name) || around >= DEEPEST {
            self.deeper += usize::from(!VOID.contains(&name));
            return self.hidden.is_none() && !marks.hidden && marks.visible != Some(false);
        }
        self.open.push(fingerprint(name));
        if marks.hidden && self.hidden.is_none() {
            self.hidden = Some(around);
        }
        self.visible.extend(marks.visible.map(|is| (around, is)));
        self.sized.extend(marks.sized.map(|is| (around, is)));
        self.hidden.is_none()
    }

    /// Ends an element, and those inside it that are open; returns whether it had a place on the page.
    pub fn finish(&mut self, name: &[u8]) -> bool {
        if self.deeper > 0 {
            self.deeper -= 1;
            return self.hidden.is_none();
        }
        // An end tag does not end the cell around it, and that of a cell not the table around it.
        let within: &[u32] = match name {
            b"table" | b"body" | b"html" => &[],
            b"td" | b"th" | b"tr" | b"tbody" | b"thead" | b"tfoot" => &[TABLE],
            _ => &[TD, TH, TABLE],
        };
        self.end(&[fingerprint(name)], within)
    }

    /// Ends the innermost element with one of the names, unless one of the elements `within` is found first; returns
    /// whether it had a place on the page.
    fn end(&mut self, names: &[u32], within: &[u32]) -> bool {
        let found = self.open.iter().rposition(|open| names.contains(open) || within.contains(open));
        if let Some(at) = found.filter(|at| names.contains(&self.open[*at])) {
            self.leave(at + 1);
            let had_place = self.hidden.is_none();
            self.leave(at);
            return had_place;
        }
        self.hidden.is_none()
    }

    /// Ends all but that many open elements.
    fn leave(&mut self, open: usize) {
        self.open.truncate(open);
        self.hidden = self.hidden.filter(|hidden| *hidden < open);
        for set in [&mut self.visible, &mut self.sized] {
            while set.last().is_some_and(|(around, _)| *around >= open) {
                set.pop();
            }
        }
    }
}

/// Returns a number for the name of an element (FNV-1a).
const fn fingerprint(name: &[u8]) -> u32 {
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

const P: u32 = fingerprint(b"p");
const LI: u32 = fingerprint(b"li");
const UL: u32 = fingerprint(b"ul");
const OL: u32 = fingerprint(b"ol");
const DT: u32 = fingerprint(b"dt");
const DD: u32 = fingerprint(b"dd");
const DL: u32 = fingerprint(b"dl");
const OPTION: u32 = fingerprint(b"option");
const SELECT: u32 = fingerprint(b"select");
const TD: u32 = fingerprint(b"td");
const TH: u32 = fingerprint(b"th");
const TR: u32 = fingerprint(b"tr");
const TABLE: u32 = fingerprint(b"table");
const TBODY: u32 = fingerprint(b"tbody");
const THEAD: u32 = fingerprint(b"thead");
const TFOOT: u32 = fingerprint(b"tfoot");
const DIV: u32 = fingerprint(b"div");
const BUTTON: u32 = fingerprint(b"button");
