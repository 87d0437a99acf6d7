//! Records from JSON, whose keys can be looked up in other spellings.

use super::{Choices, LONGEST, Steps, printed_seq};
use std::fmt::{Display, Formatter, Result};

const NAMES: &[&str] =
    &["a_b", "a-b", "aB", "AB", "ab", "A_B", "imageURL", "image_url", "x", "first name", "FirstName"];

/// Numbers of additional keys, for records that are small, at the threshold, or large.
const FURTHER: &[usize] = &[0, 0, 29, 31, 33, 60];

/// A keyword or a string.
#[derive(Clone, PartialEq)]
struct Key {
    is_keyword: bool,
    text: String,
}

impl Key {
    /// Converts a name in JSON to a key.
    fn of_json(name: &str) -> Key {
        Key { is_keyword: !name.contains(' '), text: name.to_string() }
    }

    fn any(choices: &mut impl Choices) -> Key {
        let text = choices.one_of(NAMES);
        Key { is_keyword: choices.pick(2) == 0 && !text.contains(' '), text: text.to_string() }
    }

    /// Normalizes how the words of the name are joined: `aB` and `A_B` become `a-b`, `AB` becomes `ab`.
    fn name(&self) -> String {
        let letters: Vec<char> = self.text.chars().collect();
        let mut name = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| letters[before]);
            let is_next_small = letters.get(at + 1).is_some_and(|next| next.is_ascii_lowercase());
            let begins_word = letter.is_ascii_uppercase()
                && before.is_some_and(|before| {
                    before.is_ascii_lowercase()
                        || before.is_ascii_digit()
                        || (before.is_ascii_uppercase() && is_next_small)
                });
            if begins_word {
                name.push('-');
            }
            name.push(if *letter == '_' { '-' } else { letter.to_ascii_lowercase() });
        }
        name
    }
}

impl Display for Key {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        if self.is_keyword { write!(out, ":{}", self.text) } else { write!(out, "{:?}", self.text) }
    }
}

#[derive(Clone, Default)]
struct Record(Vec<(Key, i64)>);

impl Record {
    fn exact(&self, key: &Key) -> Option<usize> {
        self.0.iter().position(|(known, _)| known == key)
    }

    /// Finds the key itself, the same text of the other type, or else the only key with another spelling.
    fn place(&self, key: &Key) -> Option<usize> {
        let other = Key { is_keyword: !key.is_keyword, text: key.text.clone() };
        self.exact(key).or_else(|| self.exact(&other)).or_else(|| {
            let name = key.name();
            let mut alike = self.0.iter().enumerate().filter(|(_, (known, _))| known.name() == name);
            let (at, _) = alike.next()?;
            alike.next().is_none().then_some(at)
        })
    }

    fn get(&self, key: &Key) -> Option<i64> {
        self.place(key).map(|at| self.0[at].1)
    }

    fn put(&mut self, key: &Key, value: i64) {
        match self.place(key) {
            Some(at) => self.0[at].1 = value,
            None => self.0.push((key.clone(), value)),
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(at) = self.place(key) {
            self.0.remove(at);
        }
    }
}

pub(super) fn steps(choices: &mut impl Choices, steps: &mut Steps) {
    let mut names: Vec<String> = Vec::new();
    for _ in 0..choices.pick(6) {
        let name = choices.one_of(NAMES).to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let further = choices.one_of(FURTHER);
    names.extend((0..further).map(|number| format!("k{number}")));
    let object: Vec<String> = names.iter().enumerate().map(|(at, name)| format!("\\\"{name}\\\":{at}")).collect();
    let mut model = Record(names.iter().enumerate().map(|(at, name)| (Key::of_json(name), at as i64)).collect());
    steps.bind(format!("(json/parse \"{{{}}}\")", object.join(",")));
    show(choices, &model, steps);
    for _ in 0..choices.pick(LONGEST + 1) {
        let (key, last) = (Key::any(choices), steps.last());
        let expression = match choices.pick(7) {
            0 => {
                model.put(&key, 7);
                format!("(assoc {last} {key} 7)")
            }
            1 => {
                model.remove(&key);
                format!("(dissoc {last} {key})")
            }
            2 => {
                let value = model.get(&key).map_or(1, |value| value + 1);
                model.put(&key, value);
                format!("(update {last} {key} (fnil inc 0))")
            }
            3 => {
                let other = Key::any(choices);
                model.put(&key, 8);
                model.put(&other, 9);
                format!("(into {last} [[{key} 8] [{other} 9]])")
            }
            4 => {
                let sum = model.get(&key).map_or(5, |value| value + 5);
                model.put(&key, sum);
                format!("(merge-with + {last} {{{key} 5}})")
            }
            5 => {
                // Adds enough keys to turn a small record into a large one.
                (0..40).for_each(|number| model.put(&Key::of_json(&format!("n{number}")), number));
                format!("(reduce (fn [r n] (assoc r (keyword (str \"n\" n)) n)) {last} (range 40))")
            }
            _ => format!("(walk/postwalk identity {last})"),
        };
        steps.bind(expression);
        show(choices, &model, steps);
    }
}

fn show(choices: &mut impl Choices, model: &Record, steps: &mut Steps) {
    let last = steps.last();
    let (first, others) = model.0.split_at(model.0.len().min(6));
    steps.show(
        format!("[(take 6 {last}) (count {last})]"),
        format!(
            "[{} {}]",
            match printed_seq(first.iter().map(|(key, value)| format!("[{key} {value}]"))).as_str() {
                "nil" => "()",
                entries => entries,
            },
            first.len() + others.len(),
        ),
    );
    for _ in 0..2 {
        let key = Key::any(choices);
        let found = model.get(&key);
        steps.show(
            format!("[(get {last} {key}) (contains? {last} {key}) (first (find {last} {key}))]"),
            format!(
                "[{} {} {}]",
                found.map_or("nil".to_string(), |value| value.to_string()),
                found.is_some(),
                model.place(&key).map_or("nil".to_string(), |at| model.0[at].0.to_string()),
            ),
        );
    }
    // Equality compares exact spellings, whichever operand is the record.
    let (old, new) = (Key::any(choices), Key::any(choices));
    let differs = model.exact(&old).is_some() && old != new;
    steps.show(
        format!(
            "(let [p (into {{}} {last}) q (if (contains? p {old}) (assoc (dissoc p {old}) {new} (p {old})) p)] \
             [(= {last} p) (= p {last}) (= (hash {last}) (hash p)) (= {last} q) (= q {last}) (contains? #{{q}} {last})])"
        ),
        format!("[true true true {0} {0} {0}]", !differs),
    );
}
