//! Inputs that are identical on every machine: mails and lines of words.

use serde_json::json;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// File of 100,000 mails: the JSON text of `{"mails": […]}`, because rhai parses only JSON objects.
pub const MAILS: &str = "mails.json";
/// File of 200,000 lines of words.
pub const LINES: &str = "lines.txt";

/// A folder with the inputs, removed when this is dropped.
pub struct Inputs(PathBuf);

impl Inputs {
    /// Writes the inputs, and the programs of CPython.
    ///
    /// # Errors
    /// Returns an error if the folder for temporary files is not writable.
    pub fn write() -> io::Result<Inputs> {
        let folder = std::env::temp_dir().join(format!("lispbox-peers-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let inputs = Inputs(folder);
        let python = [
            ("harness.py", include_str!("../programs/harness.py")),
            ("parse.py", include_str!("../programs/parse.py")),
            ("w1.py", include_str!("../programs/w1.py")),
            ("w2.py", include_str!("../programs/w2.py")),
            ("w3.py", include_str!("../programs/w3.py")),
            ("w4.py", include_str!("../programs/w4.py")),
            ("w6.py", include_str!("../programs/w6.py")),
        ];
        for (name, text) in python {
            std::fs::write(inputs.folder().join(name), text)?;
        }
        std::fs::write(inputs.folder().join(MAILS), mails(100_000, 500))?;
        std::fs::write(inputs.folder().join(LINES), lines(200_000))?;
        Ok(inputs)
    }

    /// The path of the folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }
}

impl Drop for Inputs {
    fn drop(&mut self) {
        // A failure is ignored: the system cleans up temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// SplitMix64, a generator with the same numbers on every machine.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number below `bound`; small numbers are far more frequent than large ones.
    fn skewed(&mut self, bound: u64) -> u64 {
        let least = self.below(bound).min(self.below(bound));
        least.min(self.below(bound)).min(self.below(bound))
    }
}

/// Five thousand words of one to three syllables in a fixed order; short words occur several times.
fn vocabulary() -> Vec<String> {
    const SYLLABLES: [&str; 20] = [
        "ka", "lo", "mi", "ne", "ru", "sa", "to", "vi", "wen", "dor", "ba", "che", "fi", "gu", "hal", "jo", "pe",
        "qui", "tra", "zu",
    ];
    let mut numbers = Numbers(7);
    let mut words = Vec::new();
    while words.len() < 5_000 {
        let mut word = String::new();
        for _ in 0..1 + numbers.below(3) {
            word.push_str(SYLLABLES[numbers.below(20) as usize]);
        }
        words.push(word);
    }
    words
}

fn sentence(numbers: &mut Numbers, words: &[String], length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(&words[numbers.skewed(words.len() as u64) as usize]);
    }
    text
}

/// The JSON text of `count` mails of `senders` senders.
pub fn mails(count: usize, senders: usize) -> String {
    const LABELS: [&str; 12] = [
        "inbox", "work", "family", "travel", "receipts", "lists", "urgent", "later", "school", "house", "news", "team",
    ];
    let words = vocabulary();
    let mut numbers = Numbers(2_026);
    let mut text = String::from("{\"mails\": [");
    for index in 0..count {
        let sender = numbers.skewed(senders as u64);
        let (day, hour, minute) = (1 + numbers.below(28), numbers.below(24), numbers.below(60));
        let labels: Vec<&str> = (0..3).map(|_| LABELS[numbers.below(12) as usize]).collect();
        let mail = json!({
            "id": format!("m{index:06}"),
            "sender": format!("sender{sender:04}@example.org"),
            "subject": sentence(&mut numbers, &words, 36),
            "labels": labels,
            "size": 500 + numbers.below(60_000),
            "unread": numbers.below(10) < 4,
            "ts": format!("2026-10-{day:02}T{hour:02}:{minute:02}:00Z"),
        });
        let separator = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{separator}{mail}");
    }
    text.push_str("]}");
    text
}

/// The text of `count` lines of words.
pub fn lines(count: usize) -> String {
    let words = vocabulary();
    let mut numbers = Numbers(1_913);
    let mut text = String::new();
    for _ in 0..count {
        text.push_str(&sentence(&mut numbers, &words, 52));
        text.push('\n');
    }
    text
}
