//! A search index over the words in names, arguments and descriptions.
//!
//! A query need not match in full: a model asks to `send an email to someone`. Rare words weigh more than frequent
//! ones, names more than arguments and those more than descriptions, whole words more than parts. If no indexed word
//! resembles a query word, words within a small edit distance match instead.

use crate::host::Tool;
use crate::value::map::kebab;
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Weights of a word by the field that contains it.
const IN_NAME: f64 = 4.0;
const IN_ARGUMENT: f64 = 2.0;
const IN_PLACE: f64 = 1.5;
const IN_DESCRIPTION: f64 = 1.0;

/// Maximum length of the indexed part of a description, in bytes.
const DESCRIPTION: usize = 1_000;

/// Maximum number of indexed arguments per thing, and maximum length of the indexed part of a name, in bytes.
const ARGUMENTS: usize = 100;
const NAME: usize = 100;

/// Maximum number of distinct words of a query that are considered.
const WORDS: usize = 12;

/// Results that score less than this fraction of the best score are dropped.
pub(crate) const FAR: f64 = 0.35;

/// An item to index.
pub struct Indexed<'a> {
    /// The server or namespace that contains it.
    pub place: &'a str,
    /// Its name within that place.
    pub name: &'a str,
    /// The names of its arguments.
    pub arguments: Vec<&'a str>,
    /// Its description.
    pub description: &'a str,
}

/// An inverted index from words to things.
pub struct Index {
    words: Vec<Word>,
    /// The lower-case name of each thing and the number of words in it.
    names: Vec<(String, usize)>,
}

/// A word with its stem, and its weight for each thing that contains it.
struct Word {
    text: String,
    stem: String,
    things: Vec<(u32, f64)>,
}

/// The result of a search.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// The ordinals of the best matches with their scores, best first. A score is at most about 4, or 8 if the query is
    /// the exact name.
    pub best: Vec<(usize, f64)>,
    /// The number of further matches.
    pub more: usize,
}

impl Index {
    /// Builds an index; a thing is identified by its ordinal in the iteration.
    pub fn new<'a>(things: impl Iterator<Item = Indexed<'a>>) -> Index {
        let mut words: IndexMap<String, Vec<(u32, f64)>> = IndexMap::new();
        let mut names = Vec::new();
        for (ordinal, thing) in things.enumerate() {
            let ordinal = ordinal as u32;
            let mut add = |text: &str, counts: f64| {
                let mut added = 0;
                for word in split(text) {
                    added += 1;
                    let places = match words.get_mut(word) {
                        Some(places) => places,
                        None => words.entry(word.to_string()).or_default(),
                    };
                    match places.last_mut() {
                        Some((last, most)) if *last == ordinal => *most = most.max(counts),
                        _ => places.push((ordinal, counts)),
                    }
                }
                added
            };
            let short = |name: &str| kebab(&name[..name.floor_char_boundary(NAME)]);
            let length = add(&short(thing.name), IN_NAME);
            add(&short(thing.place), IN_PLACE);
            thing.arguments.iter().take(ARGUMENTS).for_each(|argument| {
                add(&short(argument), IN_ARGUMENT);
            });
            let description = &thing.description[..thing.description.floor_char_boundary(DESCRIPTION)];
            add(&description.to_lowercase(), IN_DESCRIPTION);
            names.push((thing.name[..thing.name.floor_char_boundary(NAME)].to_lowercase(), length));
        }
        let word = |(text, things): (String, _)| Word { stem: stem(&text), text, things };
        Index { words: words.into_iter().map(word).collect(), names }
    }

    /// Builds an index of tools.
    pub fn of_tools(tools: &[Arc<Tool>]) -> Index {
        Index::new(tools.iter().map(|tool| Indexed {
            place: &tool.server,
            name: &tool.name,
            arguments: tool.parameters().into_iter().map(|(name, _)| name).collect(),
            description: &tool.description,
        }))
    }

    /// Returns the number of indexed things.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// True if the index is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the `most` best matches of a query.
    ///
    /// ```
    /// use lispbox::lang::{Index, Indexed};
    /// let thing = |name, description| Indexed { place: "mail", name, arguments: Vec::new(), description };
    /// let index = Index::new([thing("search_emails", "Finds mail."), thing("send_email", "Writes one.")].into_iter());
    /// assert_eq!(index.search("serach emial", 1).best[0].0, 0);
    /// assert_eq!(index.search("send an email to someone", 1).best[0].0, 1);
    /// ```
    pub fn search(&self, query: &str, most: usize) -> Hits {
        let whole = query.trim().to_lowercase();
        let spelt = kebab(query.trim());
        let mut wanted: Vec<&str> = Vec::new();
        for word in split(&spelt) {
            if !wanted.contains(&word) && wanted.len() < WORDS {
                wanted.push(word);
            }
        }
        let mut scores: HashMap<usize, f64> = HashMap::new();
        let (mut possible, mut known) = (0.0, 0);
        for word in &wanted {
            let (fits, rarity) = self.fits(word);
            if !fits.is_empty() {
                possible += rarity;
                known += 1;
            }
            for (thing, counts) in fits {
                *scores.entry(thing).or_default() += counts * rarity;
            }
        }
        // Query words that occur nowhere are assumed to have the average weight of the others, so that a thing that has
        // only the known words does not get the full score.
        possible *= wanted.len() as f64 / f64::from(known.max(1));
        for score in scores.values_mut() {
            *score /= possible;
        }
        for (thing, (name, _)) in self.names.iter().enumerate() {
            if *name == whole {
                *scores.entry(thing).or_default() += IN_NAME;
            } else if wanted.is_empty() && !whole.is_empty() && name.contains(&whole) {
                scores.insert(thing, IN_NAME / 2.0);
            }
        }
        // Of two names that contain the query words, the one with fewer other words ranks higher.
        let length = |thing: usize| 1.0 + 0.02 * self.names[thing].1 as f64;
        let mut best: Vec<(usize, f64)> =
            scores.into_iter().map(|(thing, score)| (thing, score / length(thing))).collect();
        best.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let least = best.first().map_or(0.0, |(_, score)| score * FAR);
        let near = best.iter().take_while(|(_, score)| *score >= least).count();
        best.truncate(near.min(most));
        Hits { more: near - best.len(), best }
    }

    /// Returns the weight of a query word for each matching thing, and the rarity of the word.
    fn fits(&self, wanted: &str) -> (HashMap<usize, f64>, f64) {
        let root = stem(wanted);
        let mut fits = HashMap::new();
        let mut add = |word: &Word, alike: f64| {
            for (thing, counts) in &word.things {
                let most = fits.entry(*thing as usize).or_insert(0.0_f64);
                *most = most.max(counts * alike);
            }
        };
        let mut is_known = false;
        for word in &self.words {
            if let Some(alike) = alike(word, wanted, &root) {
                is_known = true;
                add(word, alike);
            }
        }
        if !is_known {
            for word in &self.words {
                if let Some(slips) = slips(&word.text, wanted) {
                    add(word, 0.7 / slips as f64);
                }
            }
        }
        let all = self.len() as f64;
        let rarity = ((all + 1.0) / (fits.len() as f64 + 0.5)).ln().max(0.05);
        (fits, rarity)
    }
}

/// Splits a lower-case text into words.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the similarity of an indexed word and a query word: 1 for equal words, `None` if they do not match.
fn alike(word: &Word, wanted: &str, root: &str) -> Option<f64> {
    if word.text == wanted {
        Some(1.0)
    } else if word.stem == root {
        Some(0.9)
    } else if wanted.len() >= 3 && word.text.starts_with(wanted) {
        Some(0.6)
    } else if (wanted.len() >= 4 && word.text.contains(wanted))
        || (word.text.len() >= 4 && wanted.starts_with(&word.text))
    {
        Some(0.4)
    } else {
        None
    }
}

/// Returns the edit distance of two words; `None` if it exceeds what their length allows.
fn slips(word: &str, wanted: &str) -> Option<usize> {
    let allowed = match wanted.chars().count() {
        0..=3 => return None,
        4..=7 => 1,
        _ => 2,
    };
    let near = word.len() > 3 && word.len().abs_diff(wanted.len()) <= 4 * allowed;
    near.then(|| strsim::osa_distance(word, wanted)).filter(|slips| *slips <= allowed)
}

/// Strips English inflectional endings: `replies`, `replied` and `reply` have the same stem.
fn stem(word: &str) -> String {
    let long = |rest: &&str| rest.len() >= 3;
    let plural = word.strip_suffix('s').filter(|rest| !rest.ends_with('s')).filter(long).unwrap_or(word);
    let rest = plural.strip_suffix("ing").or_else(|| plural.strip_suffix("ed")).filter(long).unwrap_or(plural);
    let rest = rest.strip_suffix('e').filter(long).unwrap_or(rest);
    match rest.strip_suffix('y').filter(|rest| rest.len() >= 2) {
        Some(rest) => format!("{rest}i"),
        None => rest.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &[(&str, &str, &[&str], &str)] = &[
        ("gmail", "send_email", &["to", "subject"], "Sends an email to a list of people"),
        ("gmail", "search_emails", &["query"], "Finds messages in the mailbox"),
        ("gmail", "delete_email", &["id"], "Moves a message to the trash"),
        ("calendar", "create-event", &["attendees"], "Adds a meeting and sends an email to those invited"),
        ("files", "listDirectory", &["path"], "Lists the files in a folder to look at"),
        ("files", "move", &["from", "to"], "Renames a file"),
    ];

    fn found(query: &str) -> Vec<&'static str> {
        let things = TOOLS.iter().map(|(place, name, arguments, description)| Indexed {
            place,
            name,
            arguments: arguments.to_vec(),
            description,
        });
        let hits = Index::new(things).search(query, 10);
        hits.best.iter().map(|(thing, _)| TOOLS[*thing].1).collect()
    }

    #[test]
    fn names_come_before_arguments_and_those_before_descriptions() {
        assert_eq!(found("email"), ["send_email", "delete_email", "search_emails"]);
        assert_eq!(found("query"), ["search_emails"]);
        assert_eq!(found("meeting"), ["create-event"]);
        assert_eq!(found("calendar"), ["create-event"]);
        assert_eq!(found("attendees meeting")[0], "create-event");
    }

    #[test]
    fn not_all_words_need_be_there_and_rare_ones_count_more() {
        assert_eq!(found("send an email to someone")[0], "send_email");
        assert_eq!(found("please list what is in a directory")[0], "listDirectory");
        assert_eq!(found("trash")[0], "delete_email");
    }

    #[test]
    fn spelling_and_grammar_are_passed_over() {
        assert_eq!(found("serach emial")[0], "search_emails");
        assert_eq!(found("deleting emails")[0], "delete_email");
        assert_eq!(found("renaming")[0], "move");
        assert_eq!(found("search-emails"), found("searchEmails"));
        assert_eq!(found("search_emails")[0], "search_emails");
        assert!(found("xylophone").is_empty());
        assert!(found("").is_empty() && found("!?").is_empty());
    }

    #[test]
    fn words_that_grammar_made_of_one_have_one_stem() {
        for words in [["reply", "replies"], ["create", "created"], ["search", "searches"], ["invoice", "invoices"]] {
            assert_eq!(stem(words[0]), stem(words[1]));
        }
        assert_eq!((stem("address").as_str(), stem("us").as_str()), ("address", "us"));
    }
}
