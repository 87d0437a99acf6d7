//! Previews: values that exceed a budget, elided structurally, so that the shape of the whole stays visible.
//!
//! The budget is divided from the top down. A collection gives each of its parts an equal share; a part that needs less
//! leaves the rest to the others, and a part that needs more is elided within its share. Maps of few keys show all of
//! them. Longer maps, sequences and sets show their first items and the number of the others; strings show their
//! beginning and their length. Everything left out is marked by `…`, outside of quotes, and all brackets and quotes are
//! closed.
//!
//! Nothing beyond the budget is printed: each level of nesting costs at most two printings of its own share.

use crate::error::{Outcome, Signal};
use crate::heap::Handle;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::list::List;
use crate::value::map::Map;
use crate::value::print::{Printer, write_quoted};
use crate::value::walk::{Cursor, Pace};
use std::borrow::Cow;
use std::sync::Arc;

/// Marks what is left out.
const MARK: &str = "…";
/// Minimum room of a value, in bytes: the length of [`MARK`].
const LEAST: usize = MARK.len();
/// Maximum nesting of collections that are shown in part.
const DEEPEST: usize = 12;
/// Maximum number of keys of a map whose keys are all shown; the keys of a larger map are data.
const FIELDS: usize = 32;
/// Maximum length of a key, in bytes.
const KEY: usize = 64;
/// Number of items at the beginning of a sequence that share its room.
const FIRST: usize = 3;
/// Minimum room of one of these items, in bytes.
const ITEM: usize = 16;
/// Minimum room of the beginning of a string, in bytes.
const BEGINNING: usize = 8;
/// Maximum number of items that are counted one by one.
const COUNTED: u64 = 100_000;
/// Maximum length of a key in a program that shows more, in bytes.
const NAMED: usize = 40;
/// Number of characters of a string that such a program shows.
const SHOWN: usize = 3_000;

/// A value that is shown in part.
pub struct Preview {
    /// The text, within the budget.
    pub text: String,
    /// A description of the part that is shown, such as `12 of 250 items`.
    pub extent: String,
    /// Programs that show more of the value, if it is `*1`.
    pub more: Vec<String>,
}

/// Returns a preview of a value whose printed form exceeds `room` bytes. Lazy parts that are not computed yet are shown
/// only if it `computes` them.
///
/// # Errors
/// Returns what realising lazy parts raises, or a halt if a limit is exceeded.
pub fn preview(machine: &mut Machine, value: &Value, room: usize, computes: bool) -> Outcome<Preview> {
    let mut writer = Writer { machine, computes, out: String::new(), depth: 0, in_cell: false, root: Root::default() };
    writer.value(value, room.max(LEAST))?;
    let Writer { out, root, .. } = writer;
    Ok(Preview { text: out, extent: root.extent(value), more: root.more(value) })
}

/// Returns printed text that exceeds a budget within about `room` bytes: long lines by their beginnings, and if that is
/// not enough, the first and the last lines, and between them the number of lines and bytes that are left out.
pub fn shortened(text: &str, room: usize) -> String {
    let whole: Vec<&str> = text.lines().collect();
    // With its line break, each fits into the room of the last lines.
    let wide = (room / 4).saturating_sub(1);
    let lines: Vec<Cow<'_, str>> = whole.iter().map(|line| beginning(line, wide)).collect();
    let size = |lines: &[Cow<'_, str>]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
    if size(&lines) <= room {
        return lines.join("\n") + "\n";
    }
    // A line that has lost its beginning could be taken for another one, so lines are kept as a whole.
    let fitting = |lines: &mut dyn Iterator<Item = &Cow<'_, str>>, room: usize| {
        let mut used = 0;
        let fits = |line: &&Cow<'_, str>| {
            used += line.len() + 1;
            used <= room
        };
        lines.take_while(fits).count()
    };
    let first = fitting(&mut lines.iter(), room * 2 / 3);
    let last = lines.len() - fitting(&mut lines[first..].iter().rev(), room / 4);
    let count = last - first;
    let plural = if count == 1 { "" } else { "s" };
    let left_out: usize = whole[first..last].iter().map(|line| line.len() + 1).sum();
    let mark = Cow::Owned(format!(
        "{MARK} [{count} line{plural}, {left_out} bytes left out: print less, or raise the limit `output`] {MARK}"
    ));
    let shown: Vec<&str> = lines[..first].iter().chain([&mark]).chain(&lines[last..]).map(|line| &**line).collect();
    shown.join("\n") + "\n"
}

/// Returns a line, or its beginning in `room` bytes and the number of bytes that are left out.
fn beginning(line: &str, room: usize) -> Cow<'_, str> {
    if line.len() <= room {
        return Cow::Borrowed(line);
    }
    let mark =
        |bytes: usize| format!("{MARK} [{bytes} more bytes of this line: print less, or raise the limit `output`]");
    let kept = &line[..line.floor_char_boundary(room.saturating_sub(mark(line.len()).len()))];
    Cow::Owned(kept.to_owned() + &mark(line.len() - kept.len()))
}

/// The part of the outermost value that is shown.
#[derive(Default)]
struct Root {
    shown: u64,
    total: Option<u64>,
    /// The first key whose value is elided, with that value.
    elided: Option<(Value, Value)>,
    is_item_elided: bool,
}

impl Root {
    fn extent(&self, value: &Value) -> String {
        let parts = match value {
            Value::Str(_) => "characters",
            Value::Map(_) => "entries",
            Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_) => "items",
            _ => return "the beginning".to_string(),
        };
        match self.total {
            Some(total) if total == self.shown => format!("all {total} {parts}, shortened"),
            Some(total) => format!("{} of {total} {parts}", self.shown),
            None => format!("the first {} {parts}", self.shown),
        }
    }

    fn more(&self, value: &Value) -> Vec<String> {
        let shown = self.shown;
        let next = match value {
            Value::Str(_) => return vec![format!("(subs *1 {shown})")],
            Value::Map(_) if let Some((key, part)) = &self.elided => at_key(key).map(|at| inside(part, at)),
            Value::Map(map) if map.len() <= FIELDS => Some("(keys *1)".to_string()),
            Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_) if self.is_item_elided => {
                Some("(first *1)".to_string())
            }
            Value::Map(_) | Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_) => {
                Some(format!("(take {} (drop {shown} *1))", shown.max(1)))
            }
            _ => None,
        };
        std::iter::once("(describe *1)".to_string()).chain(next).collect()
    }
}

/// Returns the program that looks up a key in `*1`; `None` for a key that is too long.
fn at_key(key: &Value) -> Option<String> {
    let mut printer = Printer::new(NAMED, true);
    let is_whole = key.is_scalar() && printer.print(key, &mut crate::value::walk::Free).is_ok_and(|is_whole| is_whole);
    let text = printer.into_text();
    match key {
        _ if !is_whole => None,
        Value::Keyword(_) if text.starts_with(':') => Some(format!("({text} *1)")),
        Value::Symbol(_) | Value::Annotated(_) => Some(format!("(get *1 '{text})")),
        _ => Some(format!("(get *1 {text})")),
    }
}

/// Returns the program that shows a part of a value.
fn inside(part: &Value, at: String) -> String {
    match part {
        Value::Str(text) if text.as_str().len() > SHOWN => format!("(subs {at} 0 {SHOWN})"),
        Value::List(_) | Value::Lazy(_) | Value::Vector(_) | Value::Set(_) => format!("(take 5 {at})"),
        Value::Map(map) if map.len() > FIELDS => format!("(take 5 {at})"),
        _ => at,
    }
}

/// An item of a sequence or an entry of a map.
enum Item {
    Single(Value),
    Entry(Value, Value),
}

/// The items of a collection.
enum Items {
    Sequence(Cursor),
    Entries(Arc<Map>, usize),
}

impl Items {
    fn next<P: Pace>(&mut self, pace: &mut P) -> Result<Option<Item>, P::Stop> {
        Ok(match self {
            Items::Sequence(cursor) => cursor.next(pace)?.map(Item::Single),
            Items::Entries(map, at) => {
                pace.step(1)?;
                let found = (*at..map.positions()).find_map(|index| map.entry(index).map(|entry| (index, entry)));
                *at = found.map_or(map.positions(), |(index, _)| index + 1);
                found.map(|(_, (key, value))| Item::Entry(key.clone(), value.clone()))
            }
        })
    }

    /// Returns the number of items, if it is known without a walk.
    fn count(&self) -> Option<u64> {
        match self {
            Items::Sequence(cursor) => cursor.remaining().filter(|count| *count != List::ENDLESS),
            Items::Entries(map, _) => Some(map.len() as u64),
        }
    }

    fn separator(&self) -> &'static str {
        if matches!(self, Items::Entries(..)) { ", " } else { " " }
    }
}

/// A walk that computes what it shows, or shows `…` for what is not computed yet.
pub struct Reach<'m> {
    machine: &'m mut Machine,
    computes: bool,
    /// True if it has met a part that is not computed.
    pub is_open: bool,
}

impl<'m> Reach<'m> {
    pub fn new(machine: &'m mut Machine, computes: bool) -> Reach<'m> {
        Reach { machine, computes, is_open: false }
    }
}

impl Pace for Reach<'_> {
    type Stop = Signal;

    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.machine.charge(steps)
    }

    fn force(&mut self, lazy: &Arc<Handle>) -> Outcome<Option<Value>> {
        if self.computes {
            return self.machine.force(lazy);
        }
        let known = self.machine.content(lazy);
        self.is_open |= known.is_none();
        Ok(Some(known.unwrap_or_else(|| Value::list(vec![Value::symbol(MARK)]))))
    }

    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value> {
        self.machine.content(cell)
    }
}

struct Writer<'m> {
    machine: &'m mut Machine,
    computes: bool,
    out: String,
    depth: usize,
    in_cell: bool,
    root: Root,
}

impl Writer<'_> {
    /// Writes a value in at most `room` bytes, which are at least [`LEAST`].
    fn value(&mut self, value: &Value, room: usize) -> Outcome<()> {
        match self.whole(value, room)? {
            Some(text) => {
                self.out.push_str(&text);
                Ok(())
            }
            None => self.elided(value, room),
        }
    }

    /// Prints a value in full; `None` if it exceeds the room.
    fn whole(&mut self, value: &Value, room: usize) -> Outcome<Option<String>> {
        let mut printer = Printer::new(room, true);
        let is_whole = printer.print(value, &mut Reach::new(self.machine, self.computes))?;
        Ok(is_whole.then(|| printer.into_text()))
    }

    /// Writes a value that does not fit.
    fn elided(&mut self, value: &Value, room: usize) -> Outcome<()> {
        if self.depth >= DEEPEST {
            self.stub(value, room);
            return Ok(());
        }
        self.depth += 1;
        let written = self.elided_inside(value, room);
        self.depth -= 1;
        written
    }

    fn elided_inside(&mut self, value: &Value, room: usize) -> Outcome<()> {
        let sequence = || Items::Sequence(Cursor::over(value.clone()).unwrap_or(Cursor::End));
        match value {
            Value::Str(text) => self.string(text.as_str(), room),
            Value::List(_) | Value::Lazy(_) => self.sequence(value, sequence(), ("(", ")"), room),
            Value::Vector(_) => self.sequence(value, sequence(), ("[", "]"), room),
            Value::Set(_) => self.sequence(value, sequence(), ("#{", "}"), room),
            Value::Map(map) => {
                let name = map.type_name().and_then(Value::as_symbol).filter(|name| name.as_str().len() <= KEY);
                let open = name.map_or("{".to_string(), |name| format!("#{}{{", name.as_str()));
                if map.len() > FIELDS {
                    return self.sequence(value, Items::Entries(map.clone(), 0), (&open, "}"), room);
                }
                self.fields(value, map, &open, room)
            }
            Value::Reduced(inner) => self.wrapped("#<reduced ", &inner.0, ">", room),
            Value::Cell(handle) => {
                let kind = handle.kind().trim_start_matches("an ").trim_start_matches("a ");
                match self.machine.content(handle).filter(|_| !self.in_cell) {
                    Some(content) => {
                        self.in_cell = true;
                        let written = self.wrapped(&format!("#<{kind} "), &content, ">", room);
                        self.in_cell = false;
                        written
                    }
                    None => self.wrapped(&format!("#<{kind}"), &Value::Nil, ">", room),
                }
            }
            Value::Exception(error) if error.code.len() <= KEY => {
                self.wrapped(&format!("#<exception {} ", error.code), &Value::string(&error.message), ">", room)
            }
            other => self.scalar(other, room),
        }
    }

    /// Writes the number of parts of a collection alone.
    fn stub(&mut self, value: &Value, room: usize) {
        let stub = match value {
            Value::Map(map) => format!("{{{MARK} {}}}", counted(map.len(), "entry", "entries")),
            Value::Vector(vector) => format!("[{MARK} {}]", counted(vector.len(), "item", "items")),
            Value::Set(set) => format!("#{{{MARK} {}}}", counted(set.len(), "item", "items")),
            Value::List(_) | Value::Lazy(_) => format!("({MARK})"),
            _ => MARK.to_string(),
        };
        self.out.push_str(if stub.len() <= room { &stub } else { MARK });
    }

    /// Writes the beginning of a string, and its length.
    fn string(&mut self, text: &str, room: usize) -> Outcome<()> {
        self.machine.charge(text.len() as u64 / 64)?;
        let count = text.chars().count();
        let length = format!("{MARK}({count} chars)");
        let Some(room) = room.checked_sub(length.len() + 2).filter(|room| *room >= BEGINNING) else {
            self.out.push_str(MARK);
            return Ok(());
        };
        let (mut end, mut used, mut shown) = (0, 0, 0);
        let (mut escaped, mut unescaped) = (String::new(), [0; 4]);
        for c in text.chars() {
            escaped.clear();
            write_quoted(&mut escaped, c.encode_utf8(&mut unescaped));
            used += escaped.len() - 2;
            if used > room {
                break;
            }
            end += c.len_utf8();
            shown += 1;
        }
        write_quoted(&mut self.out, &text[..end]);
        self.out.push_str(&length);
        if self.depth == 1 {
            self.root = Root { shown, total: Some(count as u64), ..Root::default() };
        }
        Ok(())
    }

    fn wrapped(&mut self, open: &str, inner: &Value, close: &str, room: usize) -> Outcome<()> {
        match room.checked_sub(open.len() + close.len()).filter(|room| *room >= LEAST) {
            Some(room) => {
                self.out.push_str(open);
                self.value(inner, room)?;
                self.out.push_str(close);
            }
            None => self.out.push_str(MARK),
        }
        Ok(())
    }

    /// Writes the beginning of a number or name, up to the first character that could open or close something.
    fn scalar(&mut self, value: &Value, room: usize) -> Outcome<()> {
        let mut printer = Printer::new(room, true);
        printer.print(value, &mut Reach::new(self.machine, self.computes))?;
        let text = printer.into_text();
        let is_plain = |c: char| c.is_alphanumeric() || ":.+-*/_!?$%&=".contains(c);
        let end = text.find(|c| !is_plain(c)).unwrap_or(text.len()).min(room - LEAST);
        self.out.push_str(&text[..text.floor_char_boundary(end)]);
        self.out.push_str(MARK);
        Ok(())
    }

    /// Writes all keys of a map, or the first ones and the number of the others.
    fn fields(&mut self, value: &Value, map: &Map, open: &str, room: usize) -> Outcome<()> {
        let is_root = self.depth == 1;
        let Some(room) = room.checked_sub(open.len() + 1) else {
            self.stub(value, room);
            return Ok(());
        };
        let mut keys = Vec::new();
        for (key, _) in map.iter() {
            keys.push(self.aside(key, KEY.min(room / 2).max(LEAST))?);
        }
        // A key is followed by a blank and a separator.
        let least = |key: &String| key.len() + 3 + LEAST;
        let rest = more(map.len() as u64).len();
        let all: usize = keys.iter().map(least).sum();
        let (shown, reserved) = if all <= room {
            (keys.len(), 0)
        } else {
            let mut used = rest;
            let shown = keys.iter().take_while(|key| {
                used += least(key);
                used <= room
            });
            (shown.count(), rest)
        };
        if shown == 0 {
            self.stub(value, room + open.len() + 1);
            return Ok(());
        }
        keys.truncate(shown);
        let mut left = room - reserved - keys.iter().map(|key| key.len() + 3).sum::<usize>();
        let mut wholes = Vec::new();
        for (_, part) in map.iter().take(shown) {
            wholes.push(self.whole(part, left / shown)?);
        }
        left -= wholes.iter().flatten().map(String::len).sum::<usize>();
        let mut sharing = wholes.iter().filter(|whole| whole.is_none()).count();
        let mut elided = None;
        self.out.push_str(open);
        for (index, (((key, part), key_text), whole)) in map.iter().zip(keys).zip(wholes).enumerate() {
            self.out.push_str(if index == 0 { "" } else { ", " });
            self.out.push_str(&key_text);
            self.out.push(' ');
            match whole {
                Some(text) => self.out.push_str(&text),
                None => {
                    let share = left / sharing;
                    let before = self.out.len();
                    match self.whole(part, share)? {
                        Some(text) => self.out.push_str(&text),
                        None => {
                            self.elided(part, share)?;
                            elided.get_or_insert_with(|| (key.clone(), part.clone()));
                        }
                    }
                    left -= self.out.len() - before;
                    sharing -= 1;
                }
            }
        }
        if shown < map.len() {
            self.out.push_str(&more((map.len() - shown) as u64));
        }
        self.out.push('}');
        if is_root {
            self.root = Root { shown: shown as u64, total: Some(map.len() as u64), elided, is_item_elided: false };
        }
        Ok(())
    }

    /// Returns what would be written for a value.
    fn aside(&mut self, value: &Value, room: usize) -> Outcome<String> {
        let before = std::mem::take(&mut self.out);
        let depth = self.depth;
        self.depth = depth.max(1);
        let written = self.value(value, room);
        self.depth = depth;
        let text = std::mem::replace(&mut self.out, before);
        written.map(|()| text)
    }

    /// Writes the first items of a collection and the number of the others.
    fn sequence(&mut self, value: &Value, mut items: Items, (open, close): (&str, &str), room: usize) -> Outcome<()> {
        let is_root = self.depth == 1;
        let total = items.count();
        let separator = items.separator();
        let reserved = open.len() + close.len() + more(total.unwrap_or(COUNTED)).len();
        let Some(mut left) = room.checked_sub(reserved).filter(|left| *left >= ITEM) else {
            self.stub(value, room);
            return Ok(());
        };
        let mut first = Vec::new();
        while first.len() < FIRST.min(left / ITEM)
            && let Some(item) = items.next(&mut Reach::new(self.machine, self.computes))?
        {
            first.push(item);
        }
        let share = (left / first.len().max(1)).saturating_sub(separator.len());
        let mut wholes = Vec::new();
        for item in &first {
            wholes.push(self.whole_item(item, share)?);
        }
        left -= wholes.iter().flatten().map(|text| text.len() + separator.len()).sum::<usize>();
        let mut sharing = wholes.iter().filter(|whole| whole.is_none()).count();
        let is_item_elided = sharing > 0;
        self.out.push_str(open);
        let mut shown = 0;
        for (item, whole) in first.iter().zip(wholes) {
            self.out.push_str(if shown == 0 { "" } else { separator });
            match whole {
                Some(text) => self.out.push_str(&text),
                None => {
                    let before = self.out.len();
                    self.item(item, (left / sharing).saturating_sub(separator.len()))?;
                    left -= (self.out.len() - before + separator.len()).min(left);
                    sharing -= 1;
                }
            }
            shown += 1;
        }
        let mut is_next = false;
        while let Some(item) = items.next(&mut Reach::new(self.machine, self.computes))? {
            let room_left = left.saturating_sub(separator.len());
            let text = self.whole_item(&item, room_left)?;
            let is_whole = text.is_some();
            if !is_whole && (left < room / 3 || left < 4 * ITEM) {
                is_next = true;
                break;
            }
            self.out.push_str(separator);
            let before = self.out.len();
            match text {
                Some(text) => self.out.push_str(&text),
                None => self.item(&item, room_left / 2)?,
            }
            left -= self.out.len() - before + separator.len();
            shown += 1;
        }
        let total = match total {
            Some(total) => Some(total),
            None => self.rest(&mut items)?.map(|rest| shown + u64::from(is_next) + rest),
        };
        match total {
            Some(total) if total == shown => {}
            Some(total) => self.out.push_str(&more(total - shown)),
            None => self.out.push_str(&format!(" {MARK}")),
        }
        self.out.push_str(close);
        if is_root {
            self.root = Root { shown, total, elided: None, is_item_elided };
        }
        Ok(())
    }

    /// Counts the items that remain, as far as they are realised; `None` if there may be others.
    fn rest(&mut self, items: &mut Items) -> Outcome<Option<u64>> {
        let mut pace = Reach::new(self.machine, false);
        for count in 0..COUNTED {
            if items.next(&mut pace)?.is_none() {
                return Ok((!pace.is_open).then_some(count));
            }
        }
        Ok(None)
    }

    fn whole_item(&mut self, item: &Item, room: usize) -> Outcome<Option<String>> {
        match item {
            Item::Single(value) => self.whole(value, room),
            Item::Entry(key, value) => {
                let Some(key) = self.whole(key, room)? else { return Ok(None) };
                let value = self.whole(value, room.saturating_sub(key.len() + 1))?;
                Ok(value.filter(|value| key.len() + 1 + value.len() <= room).map(|value| format!("{key} {value}")))
            }
        }
    }

    fn item(&mut self, item: &Item, room: usize) -> Outcome<()> {
        match item {
            Item::Single(value) => self.value(value, room.max(LEAST)),
            Item::Entry(key, value) => {
                let key = self.aside(key, KEY.min(room / 2).max(LEAST))?;
                self.out.push_str(&key);
                self.out.push(' ');
                self.value(value, room.saturating_sub(key.len() + 1).max(LEAST))
            }
        }
    }
}

fn counted(count: usize, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
}

/// Marks the number of items that are left out.
fn more(count: u64) -> String {
    format!(" {MARK} {count} more")
}
