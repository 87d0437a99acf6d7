//! The schemes by which the next page is asked for.

use super::names::{Arguments, Meaning, number};
use super::reply::{self, Mark, Page};
use super::walk::{Walk, option_path};
use crate::error::{Error, Outcome};
use crate::foreign_text;
use crate::machine::Machine;
use crate::value::Value;
use crate::value::map::{Map, record_key};
use crate::value::names::canonical;
use percent_encoding::percent_decode_str;

/// The way in which a page leads to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// The reply has a cursor, which is the argument of the next call.
    Cursor,
    /// The reply has an address, whose query has the arguments of the next call.
    Link,
    /// The pages are numbered.
    Page,
    /// The argument is the number of items to skip.
    Offset,
    /// The argument is the identifier of the last item.
    LastItem,
}

impl Scheme {
    const ALL: [Scheme; 5] = [Scheme::Cursor, Scheme::Link, Scheme::Page, Scheme::Offset, Scheme::LastItem];

    pub fn name(self) -> &'static str {
        match self {
            Scheme::Cursor => "cursor",
            Scheme::Link => "link",
            Scheme::Page => "page",
            Scheme::Offset => "offset",
            Scheme::LastItem => "last-item",
        }
    }

    pub fn named(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }
}

/// The decision after a page.
pub enum Decision {
    /// It was the last one.
    End,
    /// Another call; the state is ready for it.
    Next,
    /// There are more items, but they cannot be fetched.
    Stuck(Box<Error>),
}

/// The parts that a decision depends on.
struct Seen<'a> {
    arguments: &'a Arguments<'a>,
    page: &'a Page,
    reply: &'a Value,
    /// The flag of the reply that says whether there are more pages.
    more: Option<bool>,
}

impl Walk {
    /// Decides what follows a page, and prepares the next call.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn decide(
        &mut self,
        machine: &mut Machine,
        arguments: &Arguments<'_>,
        page: &Page,
        reply: &Value,
    ) -> Outcome<Decision> {
        machine.charge(1)?;
        let more = match option_path(&self.options, "more") {
            Some(path) => Some(Page::at(reply, &path).is_some_and(Value::is_truthy)),
            None => page.says_more(),
        };
        let seen = Seen { arguments, page, reply, more };
        if self.scheme.is_none() {
            match self.choose(&seen) {
                Some((scheme, argument)) => {
                    self.begin(&seen, scheme, &argument);
                    self.scheme = Some((scheme, argument));
                }
                None => return Ok(self.only_page(machine, &seen)),
            }
        }
        let Some((scheme, argument)) = self.scheme.clone() else { return Ok(Decision::End) };
        let decision = match scheme {
            Scheme::Cursor => self.by_cursor(machine, &seen, &argument)?,
            Scheme::Link => self.by_link(&seen),
            Scheme::Page | Scheme::Offset => self.by_number(machine, &seen, scheme, &argument),
            Scheme::LastItem => self.by_last_item(&seen, &argument),
        };
        if self.pages == 2
            && !page.items.is_empty()
            && let Some(asked) = arguments.asked_size().filter(|asked| *asked > self.size)
        {
            let size = self.size;
            self.note(
                machine,
                format!("asked for {asked} items a page, got {size}; all pages were counted by what came"),
            );
        }
        if matches!(decision, Decision::End) {
            self.compare_with_total(machine, &seen);
        }
        Ok(decision)
    }

    /// Chooses the scheme by the options of the program, else by the first reply and the names of the arguments.
    fn choose(&self, seen: &Seen<'_>) -> Option<(Scheme, Value)> {
        let Seen { arguments, page, reply, more } = seen;
        let option = |name: &str| self.options.get(&Value::keyword(name)).filter(|value| !value.is_nil());
        let named = |key: &Value| match key.as_text().and_then(|text| arguments.named(text)) {
            Some(name) if arguments.are_declared() => record_key(name),
            _ => key.clone(),
        };
        for (name, scheme) in [("cursor-in", Scheme::Cursor), ("page-in", Scheme::Page), ("offset-in", Scheme::Offset)]
        {
            if let Some(key) = option(name) {
                return Some((scheme, named(key)));
            }
        }
        if let Some(path) = option_path(&self.options, "cursor-out") {
            let key = path.last().and_then(Value::as_text).unwrap_or_default();
            return self.cursor_argument(arguments, key).map(|argument| (Scheme::Cursor, argument));
        }
        if *more == Some(false) || (page.leads_on() == Some(false) && *more != Some(true)) {
            return None;
        }
        if let Some(mark) = page.next_cursor().filter(|mark| !mark.is_end())
            && let Some(argument) = self.cursor_argument(arguments, mark.key())
        {
            return Some((Scheme::Cursor, argument));
        }
        if let Some(mark) = page.next_link()
            && !self.linked(arguments, mark).is_empty()
        {
            return Some((Scheme::Link, Value::Nil));
        }
        let argument = |meaning: Meaning| arguments.meaning(meaning).map(|name| self.key_of(arguments, name));
        let (by_page, by_offset) = (argument(Meaning::Page), argument(Meaning::Offset));
        let is_given = |meaning| arguments.meaning(meaning).is_some_and(|name| arguments.given(name).is_some());
        let has_offset = page.next_offset().is_some() || page.own_offset().is_some();
        let has_page = page.own_page().is_some() || page.total_pages().is_some() || page.next_page().is_some();
        let prefers_offset = (is_given(Meaning::Offset) && !is_given(Meaning::Page)) || (has_offset && !has_page);
        let page_first = by_page.map(|argument| (Scheme::Page, argument));
        let offset_first = by_offset.map(|argument| (Scheme::Offset, argument));
        let numbered = if prefers_offset { offset_first.or(page_first) } else { page_first.or(offset_first) };
        if numbered.is_some() {
            return numbered;
        }
        if *more == Some(true)
            && last_identifier(page).is_some()
            && let Some(argument) = argument(Meaning::LastItem)
        {
            return Some((Scheme::LastItem, argument));
        }
        // A function may take any argument: those that belong to the marks of the reply are tried.
        if arguments.are_declared() || !matches!(reply, Value::Map(_)) {
            return None;
        }
        if has_offset {
            Some((Scheme::Offset, Value::keyword("offset")))
        } else {
            has_page.then(|| (Scheme::Page, Value::keyword("page")))
        }
    }

    /// Returns the argument that takes the cursor under that key of a reply.
    fn cursor_argument(&self, arguments: &Arguments<'_>, key: &str) -> Option<Value> {
        let stem = stem(key);
        let known = arguments.named(key).or_else(|| arguments.named(&stem));
        match known.or_else(|| arguments.meaning(Meaning::Cursor)) {
            Some(name) => Some(self.key_of(arguments, name)),
            None if arguments.are_declared() || stem.is_empty() => None,
            None => Some(Value::keyword(if canonical(key) == "endcursor" { "after" } else { &stem })),
        }
    }

    /// Returns the key of an argument: as the program gives it, else as it is declared.
    fn key_of(&self, arguments: &Arguments<'_>, name: &str) -> Value {
        let is_it = |key: &&Value| key.as_text() == Some(name);
        match self.given.iter().map(|(key, _)| key).find(is_it) {
            Some(key) if !arguments.are_declared() => key.clone(),
            _ => record_key(name),
        }
    }

    /// Sets the position of the first page.
    fn begin(&mut self, seen: &Seen<'_>, scheme: Scheme, argument: &Value) {
        let Seen { arguments, page, .. } = seen;
        let name = argument.as_text().unwrap_or_default();
        let given = arguments.given(name);
        if let (Scheme::Cursor, Some(cursor)) = (scheme, given) {
            self.seen.insert(cursor.clone());
        }
        let schema = arguments.default(name);
        let start = given.and_then(number).or(schema);
        self.position = match scheme {
            Scheme::Page => start.or(arguments.minimum(name)).or(page.own_page()).unwrap_or(1),
            Scheme::Offset => start.or(page.own_offset()).or(arguments.minimum(name)).unwrap_or(0),
            _ => 0,
        };
        self.first_position = self.position;
    }

    /// Decides without a scheme: the reply is the only page, or its continuation is unknown.
    fn only_page(&self, machine: &mut Machine, seen: &Seen<'_>) -> Decision {
        let Seen { arguments, page, more, .. } = seen;
        let count = page.items.len() as i64;
        let evidence = match more {
            Some(false) => None,
            Some(true) => Some("says that there are more".to_owned()),
            None if page.leads_on() == Some(true) => Some("leads to a next page".to_owned()),
            None if page.leads_on() == Some(false) => None,
            None => match (page.total_pages(), page.total()) {
                (Some(pages), _) if pages > 1 => Some(format!("is one of {pages} pages")),
                (_, Some(total)) if total > count => Some(format!("has {count} of {total} items")),
                _ => None,
            },
        };
        if let Some(evidence) = evidence {
            return self.stuck(seen, &evidence);
        }
        if !matches!(seen.reply, Value::Map(_)) && count > 0 && arguments.meaning(Meaning::Cursor).is_some() {
            let text = "its arguments take a cursor, but the reply is a list without one: taken as all items";
            self.note(machine, text.to_owned());
        }
        self.compare_with_total(machine, seen);
        Decision::End
    }

    fn by_cursor(&mut self, machine: &mut Machine, seen: &Seen<'_>, argument: &Value) -> Outcome<Decision> {
        let Seen { arguments, page, reply, more } = seen;
        let mark = page.next_cursor();
        let cursor = match option_path(&self.options, "cursor-out") {
            Some(path) => Page::at(reply, &path).cloned(),
            None => mark.filter(|mark| !mark.is_end()).map(|mark| mark.value.clone()),
        };
        let cursor = cursor.filter(|cursor| cursor.is_truthy() && cursor.as_str() != Some(""));
        let Some(cursor) = cursor.filter(|_| *more != Some(false)) else {
            return Ok(match more {
                Some(true) => self.stuck(seen, "says that there are more, but has no cursor"),
                _ => Decision::End,
            });
        };
        if page.items.is_empty() && mark.is_some_and(Mark::is_always_there) && *more != Some(true) {
            return Ok(Decision::End);
        }
        let key = machine.key(cursor.clone())?;
        let is_constant = mark.is_some_and(Mark::is_constant);
        if !self.seen.insert(key) && !is_constant {
            let shown = crate::error::describe(&cursor);
            let page = self.pages;
            return Ok(circle(format!(
                "the cursor {shown} came a second time, on page {page}: the pages go in circles"
            )));
        }
        let is_number = argument.as_text().is_some_and(|name| arguments.takes_numbers(name));
        let cursor = if is_number { number(&cursor).map_or(cursor, Value::Int) } else { cursor };
        self.follows = Map::from_iter([(argument.clone(), cursor)]);
        Ok(Decision::Next)
    }

    fn by_link(&mut self, seen: &Seen<'_>) -> Decision {
        let Some(mark) = seen.page.next_link().filter(|_| seen.more != Some(false)) else {
            return match seen.more {
                Some(true) => self.stuck(seen, "says that there are more, but has no link"),
                _ => Decision::End,
            };
        };
        if !self.seen.insert(mark.value.clone()) {
            return circle(format!("the link to the next page came a second time, on page {}", self.pages));
        }
        let follows = self.linked(seen.arguments, mark);
        if follows.is_empty() {
            return self.stuck(seen, "leads to a next page by a link that names none of the arguments");
        }
        self.follows = follows.into_iter().collect();
        Decision::Next
    }

    /// Returns the arguments in the query of a link: those that are for paging, or that the program does not give.
    fn linked(&self, arguments: &Arguments<'_>, mark: &Mark) -> Vec<(Value, Value)> {
        let link = mark.value.as_str().map(address).unwrap_or_default();
        let query = link.split_once('?').map_or("", |(_, query)| query.split('#').next().unwrap_or_default());
        let mut out = Vec::new();
        let mut leads_on = false;
        for (key, value) in query.split('&').filter_map(|part| part.split_once('=')) {
            let (key, value) = (decoded(key), decoded(value));
            let name = match arguments.named(&key) {
                Some(name) => name.to_owned(),
                None if arguments.are_declared() => continue,
                None => key,
            };
            let is_paging = [Meaning::Cursor, Meaning::Page, Meaning::Offset, Meaning::LastItem]
                .into_iter()
                .any(|meaning| meaning.is_name(&canonical(&name)));
            if !is_paging && arguments.given(&name).is_some() {
                continue;
            }
            leads_on |= is_paging;
            let is_number = match arguments.are_declared() {
                true => arguments.takes_numbers(&name),
                false => [Meaning::Page, Meaning::Offset, Meaning::Limit].iter().any(|m| m.is_name(&canonical(&name))),
            };
            let text = Value::string(&value);
            let value = if is_number { number(&text).map_or(text, Value::Int) } else { text };
            out.push((self.key_of(arguments, &name), value));
        }
        if leads_on { out } else { Vec::new() }
    }

    fn by_number(&mut self, machine: &mut Machine, seen: &Seen<'_>, scheme: Scheme, argument: &Value) -> Decision {
        let page = seen.page;
        if !self.goes_on(machine, seen, scheme) {
            return Decision::End;
        }
        let (mark, next) = match scheme {
            Scheme::Page => (page.next_page(), self.position.saturating_add(1)),
            _ => (page.next_offset(), self.position.saturating_add(page.items.len() as i64)),
        };
        let next = mark.filter(|mark| !mark.is_end()).and_then(|mark| number(&mark.value)).unwrap_or(next);
        if next <= self.position {
            let (key, position) = (argument.as_text().unwrap_or_default(), self.position);
            return circle(format!("the reply to `{key}` {position} leads back to {next}: the pages go in circles"));
        }
        self.position = next;
        self.follows = Map::from_iter([(argument.clone(), Value::Int(next))]);
        Decision::Next
    }

    /// Returns whether another page is asked for, of pages with numbers.
    fn goes_on(&self, machine: &mut Machine, seen: &Seen<'_>, scheme: Scheme) -> bool {
        let Seen { arguments, page, more, .. } = seen;
        let count = page.items.len() as i64;
        if let Some(more) = more.or_else(|| page.leads_on()) {
            if more && count == 0 {
                self.note(machine, "a page without items says that there are more: taken as the end".to_owned());
            }
            return more && count > 0;
        }
        if count == 0 {
            return false;
        }
        if let (Scheme::Page, Some(pages)) = (scheme, page.total_pages()) {
            return self.position - self.lowest(arguments) + 1 < pages;
        }
        if let Some(total) = page.total().filter(|total| *total > 0) {
            return self.before(arguments, count) + self.got < total;
        }
        if self.pages > 1 {
            return count >= self.size;
        }
        // A page that is shorter than the program asks for may be as long as the server allows.
        match (arguments.asked_size(), page.own_size()) {
            (Some(asked), Some(own)) if own < asked => count >= own,
            (Some(_), _) => true,
            (None, own) => {
                let usual = arguments.meaning(Meaning::Limit).and_then(|name| arguments.default(name));
                usual.or(own).is_none_or(|usual| count >= usual)
            }
        }
    }

    /// Returns the lowest number of a page or item.
    fn lowest(&self, arguments: &Arguments<'_>) -> i64 {
        let name = self.scheme.as_ref().and_then(|(_, argument)| argument.as_text()).unwrap_or_default();
        let is_given = arguments.given(name).is_some();
        let declared = arguments.default(name).or_else(|| arguments.minimum(name));
        let lowest = declared.unwrap_or(if is_given { 1 } else { self.first_position });
        lowest.min(self.first_position).clamp(0, 1)
    }

    /// Returns the number of items before the first page that was asked for.
    fn before(&self, arguments: &Arguments<'_>, count: i64) -> i64 {
        let size = if self.pages > 1 { self.size } else { count };
        match &self.scheme {
            Some((Scheme::Page, _)) => (self.first_position - self.lowest(arguments)).saturating_mul(size),
            Some((Scheme::Offset, argument)) => {
                let first = argument.as_text().and_then(|name| arguments.minimum(name)).unwrap_or(0).clamp(0, 1);
                self.first_position - first
            }
            _ => 0,
        }
    }

    fn by_last_item(&mut self, seen: &Seen<'_>, argument: &Value) -> Decision {
        if seen.more != Some(true) {
            return Decision::End;
        }
        let Some(last) = last_identifier(seen.page) else {
            return self.stuck(seen, "says that there are more, but has no last item with an `:id`");
        };
        self.follows = Map::from_iter([(argument.clone(), last)]);
        Decision::Next
    }

    /// Adds a note if the replies state another number of items than came.
    fn compare_with_total(&self, machine: &mut Machine, seen: &Seen<'_>) {
        let Some((_, argument)) = &self.scheme else { return };
        let is_part = argument.as_text().is_some_and(|name| seen.arguments.given(name).is_some());
        let Some(total) = seen.page.total().filter(|total| *total > 0 && !is_part) else { return };
        if total != self.got {
            let got = self.got;
            self.note(machine, format!("its reply says that there are {total} items; {got} came"));
        }
    }

    fn note(&self, machine: &mut Machine, text: String) {
        let name = self.name();
        machine.core.note(format!("{name}: {text}"));
    }

    /// The decision for a reply that cannot be continued, with what was recognised.
    fn stuck(&self, seen: &Seen<'_>, evidence: &str) -> Decision {
        let names = seen.arguments.names();
        let names: Vec<String> = names.iter().map(|name| format!("`{}`", foreign_text::argument(name))).collect();
        let arguments = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let (name, keys) = (self.name(), reply::keys(seen.reply));
        let by = match &self.scheme {
            Some((Scheme::Link, _)) => "; the pages were read by links".to_owned(),
            Some((scheme, argument)) => {
                let argument = foreign_text::argument(argument.as_text().unwrap_or_default());
                format!("; the pages were read by {} with `{argument}`", scheme.name())
            }
            None => String::new(),
        };
        let message = format!(
            "the reply of {name} {evidence}, and how to ask for them is not evident: its arguments are {arguments}, the \
             reply is {keys}{by}"
        );
        let error = Error::new("PagingError", message).suggest(
            "name them, as in (all-pages f {} {:cursor-in :after :cursor-out [:meta :next]}) or {:page-in :p}, or write \
             the loop with `iteration`",
        );
        Decision::Stuck(Box::new(error))
    }
}

/// Returns the identifier of the last item.
fn last_identifier(page: &Page) -> Option<Value> {
    let last = page.items.last()?;
    ["id", "_id", "uid", "key"].iter().find_map(|name| reply::field(last, name)).filter(|id| !id.is_nil()).cloned()
}

/// The end of pages that lead back to an earlier one.
fn circle(message: String) -> Decision {
    let error = Error::new("PagingError", message).suggest("take the items before it, as in (take 100 …)");
    Decision::Stuck(Box::new(error))
}

/// Returns the name of a cursor without the word `next`: `cursor` for `nextCursor` and `next_cursor`.
fn stem(key: &str) -> String {
    let Some(rest) = key.strip_prefix("next").or_else(|| key.strip_prefix("Next")) else { return key.to_owned() };
    let rest = rest.trim_start_matches(['_', '-']);
    let mut letters = rest.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// Returns the address of the next page in a text that may be a `Link` header.
fn address(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let is_next = |part: &&str| part.contains("rel=\"next\"") || part.contains("rel=next");
    let part = text.split(',').find(is_next).unwrap_or_default();
    part.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map_or("", |(address, _)| address)
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}
