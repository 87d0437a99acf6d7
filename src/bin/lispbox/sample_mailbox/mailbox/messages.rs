//! Generates a thousand messages over eleven weeks, the same at every start.

use serde_json::{Value, json};

use super::chance::Chance;
use super::senders::{COLLEAGUES, Kind, SENDERS, Sender};

/// The number of messages.
const COUNT: u64 = 1000;
/// The number of days that they cover, up to 2026-11-20.
const DAYS: u64 = 80;

/// One message.
pub struct Message {
    /// The unique id.
    pub id: String,
    /// The id of the thread.
    pub thread: String,
    /// The time of arrival, in UTC.
    pub date: String,
    /// The labels; `inbox` is the first.
    pub labels: Vec<String>,
    /// True if the message is unread.
    pub unread: bool,
    sender: &'static Sender,
    recipients: Vec<Value>,
    subject: String,
    body: String,
    attachments: Vec<Value>,
    size: u64,
}

impl Message {
    /// The complete message.
    pub fn whole(&self) -> Value {
        json!({
            "id": self.id,
            "thread_id": self.thread,
            "sender": {"name": self.sender.name, "email": self.sender.email},
            "recipients": self.recipients,
            "subject": self.subject,
            "body": self.body,
            "labels": self.labels,
            "unread": self.unread,
            "size": self.size,
            "date": self.date,
            "attachments": self.attachments,
        })
    }

    /// The fields that a search returns.
    pub fn summary(&self) -> Value {
        json!({
            "id": self.id,
            "thread_id": self.thread,
            "sender": {"name": self.sender.name, "email": self.sender.email},
            "subject": self.subject,
            "date": self.date,
            "unread": self.unread,
            "snippet": self.body.chars().take(80).collect::<String>(),
        })
    }

    /// The text of one field, in lower case.
    pub fn searchable(&self, place: &str) -> String {
        let sender = format!("{} {}", self.sender.name, self.sender.email);
        let text = match place {
            "subject" => self.subject.clone(),
            "body" => self.body.clone(),
            "sender" => sender,
            _ => format!("{sender} {} {}", self.subject, self.body),
        };
        text.to_lowercase()
    }
}

/// Generates all messages, newest first.
pub fn generate() -> Vec<Message> {
    let mut chance = Chance::new(0x6c69_7370_626f_7821);
    let mut messages: Vec<Message> = Vec::with_capacity(COUNT as usize);
    // The oldest is generated first, so that a reply can refer to an earlier message.
    for index in 0..COUNT {
        let minute = index * DAYS * 24 * 60 / COUNT + chance.below(90);
        let age = COUNT - 1 - index;
        let message = write(&mut chance, &messages, index, minute, age);
        messages.push(message);
    }
    messages.sort_by(|one, other| other.date.cmp(&one.date).then(other.id.cmp(&one.id)));
    messages
}

fn write(chance: &mut Chance, before: &[Message], index: u64, minute: u64, age: u64) -> Message {
    let sender = sender(chance);
    let kind = sender.kind;
    let date = date(minute);
    let recent = &before[before.len().saturating_sub(60)..];
    let answered = recent.iter().rev().find(|other| other.sender.kind == kind);
    let (thread, subject) = match answered.filter(|_| kind.is_conversation() && chance.below(100) < 45) {
        Some(other) => (other.thread.clone(), format!("Re: {}", other.subject.trim_start_matches("Re: "))),
        None => {
            let template = chance.of(kind.subjects());
            (format!("thr-{:04}", index + 1), fill(chance, template))
        }
    };
    let body = body(chance, sender);
    let attachments = attachments(chance, kind);
    let attached: u64 = attachments.iter().filter_map(|one| one["size"].as_u64()).sum();
    // Old messages have mostly been read; automated messages less often.
    let left_unread = if age < 60 { 70 } else { kind.left_unread() };
    let unread = chance.below(100) < left_unread;
    let mut labels = vec!["inbox".to_owned(), kind.label().to_owned()];
    if chance.below(100) < 8 {
        labels.push("starred".to_owned());
    }
    let size = body.len() as u64 + attached + 900 + chance.below(700);
    Message {
        id: format!("msg-{:04}", index + 1),
        thread,
        date,
        labels,
        unread,
        sender,
        recipients: recipients(chance),
        subject,
        body,
        attachments,
        size,
    }
}

/// Generates a body: a greeting, some coherent sentences and a signature.
fn body(chance: &mut Chance, sender: &Sender) -> String {
    let sentences = sender.kind.sentences();
    let start = chance.below(sentences.len() as u64) as usize;
    let count = 5 + chance.below(4) as usize;
    let chosen: Vec<String> =
        (0..count).map(|step| fill(chance, sentences[(start + step) % sentences.len()])).collect();
    let (first, rest) = chosen.split_at(count / 2);
    let greeting = sender.kind.greeting();
    format!("{greeting}\n\n{}\n\n{}\n\n{}\n{}", first.join(" "), rest.join(" "), sender.kind.closing(), sender.name)
}

fn recipients(chance: &mut Chance) -> Vec<Value> {
    let mut recipients = vec![json!({"name": "Robin Hale", "email": "robin@northwind.example"})];
    for _ in 0..chance.below(3) {
        let (name, email) = chance.of(COLLEAGUES);
        let other = json!({"name": name, "email": email});
        if !recipients.contains(&other) {
            recipients.push(other);
        }
    }
    recipients
}

fn attachments(chance: &mut Chance, kind: Kind) -> Vec<Value> {
    if chance.below(100) >= kind.attaches() {
        return Vec::new();
    }
    let (name, mime_type) = kind.attachment();
    let name = fill(chance, name);
    vec![json!({"name": name, "mime_type": mime_type, "size": 18_000 + chance.below(420_000)})]
}

/// Fills numbers and names into a template.
fn fill(chance: &mut Chance, template: &str) -> String {
    const PROJECTS: [&str; 6] = ["atlas", "billing", "checkout", "search", "mobile", "gateway"];
    const PLACES: [&str; 5] = ["Lisbon", "Oslo", "Toronto", "Berlin", "Nairobi"];
    const DAYS: [&str; 5] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"];
    let mut text = template.to_owned();
    while let Some((before, rest)) = text.split_once('<') {
        let Some((name, after)) = rest.split_once('>') else { break };
        let put = match name {
            "project" => chance.of(&PROJECTS).to_owned(),
            "place" => chance.of(&PLACES).to_owned(),
            "day" => chance.of(&DAYS).to_owned(),
            "money" => format!("{}.{:02}", 40 + chance.below(4800), chance.below(100)),
            "percent" => (1 + chance.below(97)).to_string(),
            "build" => (4000 + chance.below(2500)).to_string(),
            _ => (2 + chance.below(60)).to_string(),
        };
        text = format!("{before}{put}{after}");
    }
    text
}

/// The time `minutes` minutes after 2026-09-01T06:00:00Z.
fn date(minutes: u64) -> String {
    let minutes = minutes + 6 * 60;
    let (day, hour, minute) = (minutes / (24 * 60), minutes / 60 % 24, minutes % 60);
    let (month, day) = match day {
        0..30 => (9, day + 1),
        30..61 => (10, day - 29),
        _ => (11, day - 60),
    };
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:00Z")
}

/// Chooses a sender by weight.
fn sender(chance: &mut Chance) -> &'static Sender {
    let all: u64 = SENDERS.iter().map(|sender| sender.weight).sum();
    let mut left = chance.below(all);
    for sender in SENDERS {
        match left.checked_sub(sender.weight) {
            Some(rest) => left = rest,
            None => return sender,
        }
    }
    &SENDERS[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mailbox_is_always_the_same_and_of_the_usual_size() {
        let messages = generate();
        let whole = |messages: &[Message]| messages.iter().map(Message::whole).collect::<Vec<_>>();
        assert_eq!(whole(&messages), whole(&generate()));
        assert_eq!(messages.len(), 1000);
        assert!(messages.iter().all(|message| (350..1300).contains(&message.body.len())));
        assert!(messages.iter().all(|message| !message.body.contains('<') && !message.subject.contains('<')));
        let newest = messages.first().map(|message| message.date.as_str()).unwrap_or_default();
        let oldest = messages.last().map(|message| message.date.as_str()).unwrap_or_default();
        assert!(oldest.starts_with("2026-09-01") && newest.starts_with("2026-11-2"), "{oldest} {newest}");
    }

    #[test]
    fn some_senders_write_more_than_ten_of_the_latest_hundred() {
        let messages = generate();
        let latest = &messages[..100];
        let often = SENDERS
            .iter()
            .filter(|sender| latest.iter().filter(|message| message.sender.email == sender.email).count() > 10);
        assert!((2..6).contains(&often.count()));
    }
}
