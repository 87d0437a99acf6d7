//! A search for tools, as clients offer it that defer the definitions of tools: the model sees a search tool alone, and
//! gets the definitions of the tools that a search finds.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The number of definitions that a search returns at most.
const FOUND: usize = 5;

/// The parameters of BM25: how soon the repetition of a word stops to count, and how much the length of a text counts.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;

/// Returns the definition of the search tool, which is all that the model sees at first.
pub fn definition() -> Value {
    json!({
        "name": "tool_search",
        "description": "Searches the available tools, which are not listed here, and loads the definitions of at most \
                        five that match best. Search before you call a tool that you have not loaded.",
        "inputSchema": {
            "type": "object",
            "properties": {"query": {"type": "string", "description": "Words that describe what the tool has to do"}},
            "required": ["query"],
        },
    })
}

/// The definitions of tools with the words of each.
pub struct Catalogue {
    tools: Vec<(Value, BTreeMap<String, f64>)>,
}

impl Catalogue {
    /// Indexes definitions by the words of their names and descriptions, and of those of their arguments.
    pub fn new(tools: Vec<Value>) -> Catalogue {
        let indexed = tools.into_iter().map(|tool| {
            let mut counts = BTreeMap::new();
            let mut add = |text: &str| words(text).for_each(|word| *counts.entry(word).or_default() += 1.0);
            add(tool["name"].as_str().unwrap_or_default());
            add(tool["description"].as_str().unwrap_or_default());
            for (name, argument) in tool["inputSchema"]["properties"].as_object().into_iter().flatten() {
                add(name);
                add(argument["description"].as_str().unwrap_or_default());
            }
            (tool, counts)
        });
        Catalogue { tools: indexed.collect() }
    }

    /// Returns the definitions that match a query best, by BM25.
    pub fn find(&self, query: &str) -> Vec<&Value> {
        let count = self.tools.len() as f64;
        let length = |counts: &BTreeMap<String, f64>| counts.values().sum::<f64>();
        let mean = self.tools.iter().map(|(_, counts)| length(counts)).sum::<f64>() / count;
        let mut scores = vec![0.0; self.tools.len()];
        for word in words(query) {
            let with = self.tools.iter().filter(|(_, counts)| counts.contains_key(&word)).count() as f64;
            let weight = (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
            for (score, (_, counts)) in scores.iter_mut().zip(&self.tools) {
                let times = counts.get(&word).copied().unwrap_or_default();
                let size = 1.0 - LENGTH + LENGTH * length(counts) / mean;
                *score += weight * times * (SATURATION + 1.0) / (times + SATURATION * size);
            }
        }
        let mut found: Vec<(f64, &Value)> = scores
            .into_iter()
            .zip(&self.tools)
            .filter(|(score, _)| *score > 0.0)
            .map(|(score, (tool, _))| (score, tool))
            .collect();
        found.sort_by(|one, other| other.0.total_cmp(&one.0));
        found.into_iter().take(FOUND).map(|(_, tool)| tool).collect()
    }
}

/// Returns the words of a text in lower case, without the `s` of a plural.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.to_lowercase().trim_end_matches('s').to_string())
}
