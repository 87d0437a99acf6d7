//! Texts of programs and tools as the page shows them: every character visible, sizes, and times.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};
use serde_json::Value;

use super::is_seen;

/// Maximum size of a text in one piece, in bytes; a longer one has its own pages.
pub(in crate::server) const PIECE: usize = 64 << 10;

/// The part of a text that is shown of each value when a page has no room left, in bytes.
const LEAST: usize = 200;

/// The bytes of texts that a page may still show.
pub(in crate::server) struct Room(usize);

impl Room {
    /// Creates the room of one page.
    pub(in crate::server) fn new() -> Room {
        Room(1 << 20)
    }

    /// Takes room for a text; returns the part of it that is shown.
    pub(in crate::server) fn take<'t>(&mut self, text: &'t str) -> &'t str {
        let size = text.len().min(PIECE).min(self.0.max(LEAST));
        self.0 = self.0.saturating_sub(size);
        &text[..text.floor_char_boundary(size)]
    }
}

/// Returns a text, or its beginning and its size if it is long.
pub(in crate::server) fn beginning(text: &str) -> String {
    let most = text.floor_char_boundary(4_000);
    if most == text.len() { text.to_owned() } else { format!("{}… ({} in all)", &text[..most], size(text.len())) }
}

/// Shows a text with its line breaks. A character that cannot be seen, or that changes the direction of writing, is
/// shown as its escape, set off from the text around it.
pub(in crate::server) fn marked(text: &str) -> Markup {
    let (mut pieces, mut plain, mut escapes) = (Vec::new(), String::new(), String::new());
    for c in text.chars() {
        if c == '\n' || is_seen(c) {
            flush(&mut pieces, &mut escapes, true);
            plain.push(c);
        } else {
            flush(&mut pieces, &mut plain, false);
            match c {
                '\t' => escapes.push_str("\\t"),
                '\r' => escapes.push_str("\\r"),
                c => escapes.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            }
        }
    }
    flush(&mut pieces, &mut escapes, true);
    flush(&mut pieces, &mut plain, false);
    html! {
        @for (piece, is_escape) in &pieces {
            @if *is_escape { b.unseen { (piece) } } @else { (piece) }
        }
    }
}

/// Shows a text on one line, such as a name.
pub(in crate::server) fn marked_line(text: &str) -> Markup {
    let lines: Vec<&str> = text.split('\n').collect();
    html! {
        bdi {
            @for (at, line) in lines.iter().enumerate() {
                @if at > 0 { b.unseen { "\\n" } }
                (marked(line))
            }
        }
    }
}

fn flush(pieces: &mut Vec<(String, bool)>, piece: &mut String, is_escape: bool) {
    if !piece.is_empty() {
        pieces.push((std::mem::take(piece), is_escape));
    }
}

/// Returns a value as it is shown: a text as it is, all others as JSON.
pub(in crate::server) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}

/// Describes the type of a value, and its size if it has one.
pub(in crate::server) fn kind_of(value: &Value) -> String {
    let bytes = || size(text_of(value).len());
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "true or false".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(text) if text.is_empty() => "empty text".to_owned(),
        Value::String(_) => format!("text, {}", bytes()),
        Value::Array(items) if items.len() == 1 => format!("list of 1 item, {}", bytes()),
        Value::Array(items) => format!("list of {} items, {}", items.len(), bytes()),
        Value::Object(fields) if fields.len() == 1 => format!("object with 1 field, {}", bytes()),
        Value::Object(fields) => format!("object with {} fields, {}", fields.len(), bytes()),
    }
}

/// Returns a size in words: `1 byte`, `640 bytes`, `12.3 kB`.
pub(in crate::server) fn size(bytes: usize) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Returns a duration in words, rounded down: `6 days`, `1 minute`.
fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "less than a minute".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Shows a moment: how far it is away, with its date and time.
pub(in crate::server) fn moment(at: SystemTime) -> Markup {
    let words = match at.duration_since(SystemTime::now()) {
        Ok(left) => format!("in {}", duration(left)),
        Err(past) => format!("{} ago", duration(past.duration())),
    };
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stamp = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    html! {
        @match stamp {
            Some(stamp) => {
                time datetime=(stamp) { (words) " " span.stamp { "(" (stamp.strftime("%Y-%m-%d %H:%M")) " UTC)" } }
            }
            None => (words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_hidden_and_nothing_is_markup() {
        let text = "<script>alert(1)</script>\n\u{202e}\u{200b}a\tb\u{1b}[2J \"&\u{a0}";
        assert_eq!(
            marked(text).into_string(),
            "&lt;script&gt;alert(1)&lt;/script&gt;\n<b class=\"unseen\">\\u{202e}\\u{200b}</b>a<b \
             class=\"unseen\">\\t</b>b<b class=\"unseen\">\\u{1b}</b>[2J &quot;&amp;<b class=\"unseen\">\\u{a0}</b>"
        );
        assert_eq!(marked_line("mail\n/send").into_string(), "<bdi>mail<b class=\"unseen\">\\n</b>/send</bdi>");
    }

    #[test]
    fn a_page_has_room_for_the_beginning_of_every_value() {
        let (mut room, long) = (Room::new(), "é".repeat(PIECE));
        assert_eq!(room.take("short"), "short");
        assert_eq!(room.take(&long).len(), PIECE);
        (0..20).for_each(|_| _ = room.take(&long));
        assert_eq!(room.take(&long).len(), LEAST);
    }

    #[test]
    fn sizes_and_times_are_words() {
        assert_eq!([1, 999, 1_000, 2_500_000].map(size), ["1 byte", "999 bytes", "1.0 kB", "2.5 MB"]);
        let times = [59, 60, 7_200, 90_000].map(|seconds| duration(Duration::from_secs(seconds)));
        assert_eq!(times, ["less than a minute", "1 minute", "2 hours", "1 day"]);
        let shown = moment(SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)).into_string();
        assert!(shown.contains("(2027-01-15 08:00 UTC)"), "{shown}");
    }
}
