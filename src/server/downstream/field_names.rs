//! Words that occur in field names, as opposed to keys that are data.

use std::collections::HashSet;

use serde_json::Value;

use crate::lang::Tool;
use crate::lang::internal::kebab;

/// Common words of field names that are not proper names, in the singular, sorted.
#[rustfmt::skip]
const COMMON: &[&str] = &[
    "about", "abstract", "accepted", "access", "account", "action", "activated", "active", "activity", "actual",
    "added", "address", "admin", "after", "age", "agent", "alia", "all", "allowed", "amount", "answer", "api", "app",
    "approved", "approver", "archived", "area", "argument", "arrival", "article", "assigned", "assignee", "at",
    "attached", "attachment", "attempt", "attendee", "attribute", "author", "available", "avatar", "average", "balance",
    "bank", "base", "bcc", "before", "begin", "billed", "billing", "birthday", "blob", "body", "bot", "bought",
    "branch", "brand", "bucket", "budget", "build", "by", "byte", "calendar", "call", "canceled", "cancelled",
    "carrier", "category", "cc", "cell", "channel", "char", "chat", "check", "checksum", "child", "children", "city",
    "class", "client", "closed", "code", "color", "column", "comment", "commit", "company", "complete", "completed",
    "condition", "config", "confirmed", "connection", "contact", "container", "content", "context", "contract",
    "conversation", "cost", "count", "country", "created", "creator", "currency", "current", "cursor", "customer",
    "daily", "data", "date", "day", "db", "deadline", "default", "deleted", "delivered", "delivery", "delta",
    "department", "departure", "description", "destination", "detail", "device", "diff", "direction", "directory",
    "disabled", "discount", "display", "distance", "document", "domain", "done", "draft", "due", "duration", "edge",
    "edited", "email", "employee", "empty", "enabled", "encoding", "end", "ended", "entity", "entrie", "entry", "env",
    "environment", "error", "estimated", "etag", "event", "exit", "expected", "expire", "expired", "extension",
    "external", "failed", "favorite", "feature", "fee", "field", "file", "filename", "filter", "final", "first", "flag",
    "flagged", "folder", "format", "forwarded", "found", "free", "from", "full", "gender", "given", "global", "gross",
    "group", "hand", "handle", "has", "hash", "head", "header", "height", "hidden", "high", "history", "hit", "hold",
    "host", "hour", "html", "icon", "id", "identifier", "image", "in", "inbox", "index", "info", "input", "instance",
    "internal", "invoice", "ip", "is", "issue", "issued", "item", "job", "key", "keyword", "kind", "label", "lang",
    "language", "last", "lat", "latest", "latitude", "lead", "length", "level", "licence", "license", "limit", "line",
    "link", "list", "lng", "load", "local", "locale", "location", "lock", "locked", "log", "login", "logo", "lon",
    "longitude", "low", "mail", "main", "manager", "max", "maximum", "mean", "media", "median", "member", "memory",
    "message", "meta", "metadata", "method", "middle", "milestone", "mime", "min", "minimum", "minute", "mode", "model",
    "modified", "module", "month", "mtime", "name", "nested", "net", "network", "new", "next", "no", "node", "note",
    "null", "number", "object", "of", "offset", "ok", "old", "on", "online", "open", "opened", "operation", "option",
    "order", "organization", "origin", "original", "out", "outbox", "output", "owner", "package", "page", "paid",
    "parameter", "parent", "part", "participant", "password", "path", "paused", "payload", "payment", "pending",
    "people", "percent", "period", "permission", "person", "phone", "photo", "pid", "place", "plan", "platform",
    "point", "port", "position", "post", "postal", "prefix", "preview", "previou", "price", "primary", "priority",
    "private", "process", "processed", "product", "profile", "progress", "project", "promised", "propertie", "property",
    "provider", "public", "published", "purchase", "qty", "quantity", "query", "question", "queue", "range", "rank",
    "rate", "rating", "raw", "read", "ready", "reason", "received", "recipient", "record", "ref", "reference", "refund",
    "refunded", "region", "registered", "rejected", "relation", "release", "renewal", "reorder", "reply", "repo",
    "report", "reporter", "repository", "request", "requester", "required", "reserved", "reset", "resolved", "resource",
    "response", "result", "retrie", "retry", "returned", "reviewed", "reviewer", "revision", "role", "room", "root",
    "route", "row", "rule", "run", "sale", "satisfaction", "scheduled", "score", "seat", "second", "section", "seen",
    "selected", "sender", "sent", "sequence", "serie", "server", "service", "session", "set", "setting", "severity",
    "sha", "shape", "shared", "shipment", "shipped", "shipping", "short", "size", "sku", "slug", "snippet", "sold",
    "solved", "sort", "source", "span", "stage", "starred", "start", "started", "stat", "state", "statistic", "statu",
    "step", "stock", "storage", "street", "string", "subject", "subscription", "subtotal", "success", "sum", "summary",
    "supplier", "symbol", "system", "table", "tag", "target", "task", "tax", "team", "temperature", "template", "term",
    "test", "text", "thread", "thumbnail", "ticket", "tier", "time", "timeout", "timestamp", "timezone", "title", "to",
    "token", "tool", "topic", "total", "traceback", "tracking", "transaction", "trigger", "type", "unit", "unread",
    "updated", "uri", "url", "usage", "used", "user", "username", "uuid", "valid", "value", "variable", "vat",
    "verified", "version", "view", "viewed", "visible", "volume", "warehouse", "warning", "website", "week", "weight",
    "width", "word", "workspace", "written", "x", "y", "year", "z", "zip", "zone",
];

/// Maximum number of bytes of a description, and of parts of a schema, that are examined.
const DESCRIPTION: usize = 4_000;
const PARTS: usize = 2_000;

/// The words that a tool uses to describe itself: they come from the author of the tool, not from the data that it
/// returns.
#[derive(Debug, Default)]
pub(super) struct Words(HashSet<String>);

impl Words {
    /// Collects the words of the tool's name, its description, and the names of its arguments and declared result
    /// fields.
    pub(super) fn of(tool: &Tool) -> Words {
        let mut words = Words::default();
        words.add(&tool.name);
        words.add(&tool.description[..tool.description.floor_char_boundary(DESCRIPTION)]);
        let mut left = PARTS;
        let schemas = [Some(&tool.input_schema), tool.output_schema.as_ref()];
        schemas.into_iter().flatten().for_each(|schema| words.add_properties(schema, &mut left));
        words
    }

    fn add(&mut self, text: &str) {
        for word in split(text) {
            self.0.insert(word);
        }
    }

    fn add_properties(&mut self, schema: &Value, left: &mut usize) {
        if *left == 0 {
            return;
        }
        *left -= 1;
        match schema {
            Value::Object(keywords) => {
                for (keyword, value) in keywords {
                    match (keyword.as_str(), value) {
                        ("properties", Value::Object(properties)) => {
                            for (name, property) in properties.iter().take(PARTS) {
                                self.add(&name[..name.floor_char_boundary(100)]);
                                self.add_properties(property, left);
                            }
                        }
                        // Constants are data.
                        ("enum" | "const" | "default" | "examples", _) => {}
                        (_, value) => self.add_properties(value, left),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_properties(item, left)),
            _ => {}
        }
    }

    /// True if a key consists only of such words and common ones.
    pub(super) fn name(&self, key: &str) -> bool {
        let is_known = |word: String| COMMON.binary_search(&word.as_str()).is_ok() || self.0.contains(&word);
        let mut words = split(key).peekable();
        words.peek().is_some() && words.all(is_known)
    }
}

/// Splits a text into words in lower case, without a plural `s` and without trailing digits.
fn split(text: &str) -> impl Iterator<Item = String> {
    let words: Vec<String> = kebab(text)
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(|word| singular(word).to_owned())
        .collect();
    words.into_iter()
}

fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(rest) if rest.len() > 2 && !rest.ends_with('s') => rest,
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn common_words_are_sorted_and_singular() {
        let mut sorted = COMMON.to_vec();
        sorted.sort_unstable();
        assert_eq!(COMMON, sorted);
    }

    #[test]
    fn names_are_made_of_words_and_data_is_not() {
        let tool = Tool {
            name: "list_salaries".into(),
            description: "Lists what each employee earns, by department.".into(),
            input_schema: json!({"properties": {"costCentre": {"enum": ["zurich"]}}}),
            ..Tool::default()
        };
        let words = Words::of(&tool);
        for name in ["id", "createdAt", "user_name", "total-count", "items", "line2", "salaries", "costCentre", "URL"] {
            assert!(words.name(name), "{name}");
        }
        for data in ["alice", "zurich", "alice_total", "", "42", "2024-01-01", "EUR"] {
            assert!(!words.name(data), "{data}");
        }
    }
}
