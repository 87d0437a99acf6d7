//! Damaged snapshots are rejected with a message that describes the damage, or decoded as a different session that can
//! be encoded and decoded again. No snapshot makes the decoder fail in any other way.

use crate::common;

use common::{decoded, engine};
use lispbox::lang::Engine;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Returns the stored snapshots, with their names.
fn texts() -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/v1");
    let mut texts = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file").to_string_lossy().into_owned();
        texts.push((name, std::fs::read_to_string(&path).expect("a text")));
    }
    texts.sort();
    texts
}

/// Returns a description of how a damaged snapshot was handled incorrectly; `None` if it was handled correctly.
fn ill_received(engine: &Arc<Engine>, text: &str) -> Option<String> {
    let mut session = match decoded(text) {
        Ok(session) => session,
        Err(error) => {
            let message = error.to_string();
            return (!message.contains("snapshot")).then_some(message);
        }
    };
    let written = match session.encode() {
        Ok(written) => written,
        Err(error) => return Some(format!("it is read and cannot be written: {error}")),
    };
    let mut other = engine.session();
    if let Err(error) = other.decode(&written) {
        return Some(format!("what it is written as cannot be read: {error}"));
    }
    let again = other.encode();
    (again.as_ref() != Ok(&written)).then(|| format!("it is written as\n{written}\nand then as\n{again:?}"))
}

/// Decodes each text; panics with all texts that were handled incorrectly.
fn receive(texts: impl IntoIterator<Item = (String, String)>) {
    let engine = engine();
    let mut wrong = Vec::new();
    for (what, text) in texts {
        if let Some(problem) = ill_received(&engine, &text) {
            wrong.push(format!("{what}: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{} texts:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn members_that_are_equal_are_refused_in_sorted_collections() {
    for members in ["(sorted-set nil 1 1)", "(sorted-set (builtin core/>) 2 2 1)", "(sorted-map nil 1 2 1 3)"] {
        let text = format!("(lispbox-session 4)\n(define sorted {members})\n(counts 1 0)\n(history nil nil nil nil)\n");
        let refused = engine().session().decode(&text).expect_err(members);
        assert!(refused.to_string().starts_with("the snapshot is damaged at line 2"), "{refused}");
    }
}

#[test]
fn views_of_what_is_not_there_are_refused() {
    let read = |view: &str| {
        let text = format!("(lispbox-session 4)\n(define seen {view})\n(counts 1 0)\n(history nil nil nil nil)\n");
        engine().session().decode(&text)
    };
    for view in ["(view items [1 2] 1 2)", "(view keys (map 1 2 3 4) 1)", "(view items \"aé\" 1 3)"] {
        assert_eq!(read(view).map_err(|error| error.to_string()), Ok(()), "{view}");
    }
    for view in [
        "(view items [1 2] 0 3)",
        "(view items [1 2] 1 1)",
        "(view items [1 2] 2 1)",
        "(view items [1 2] -1 2)",
        "(view items [1 2] 1)",
        "(view items [1 2])",
        "(view keys [1 2] 0 2)",
        "(view other [1 2] 0 2)",
        "(view reversed (map 1 2) 1)",
        "(view items (map 1 2) 2)",
        "(view items (map 1 2) 0)",
        "(view items (map 1 2) 0 1)",
        "(view items 5 0 1)",
        "(view items \"aé\" 2 3)",
        "(view items \"aé\" 0 2)",
        "(view reversed \"aé\" 0 3)",
    ] {
        let refused = read(view).expect_err(view);
        assert!(refused.to_string().starts_with("the snapshot is damaged at line 2"), "{view}: {refused}");
    }
}

#[test]
fn a_text_that_is_cut_is_refused() {
    for (name, text) in texts() {
        let between_rows = text.trim_end().match_indices('\n').map(|(at, _)| at + 1);
        for end in (0..text.trim_end().len()).step_by(23).chain(between_rows) {
            if !text.is_char_boundary(end) {
                continue;
            }
            let error = decoded(&text[..end]).err();
            assert!(error.is_some_and(|error| error.to_string().contains("snapshot")), "{name} at {end}");
        }
    }
}

#[test]
fn a_byte_that_is_another_is_noticed_or_means_another_session() {
    const OTHERS: &[u8] = b"()[]{}\"\\ ;#^@'`~09-:/.aN\n";
    receive(texts().into_iter().flat_map(|(name, text)| {
        let places: Vec<usize> = (0..text.len()).step_by(5).filter(|at| text.as_bytes()[*at].is_ascii()).collect();
        places.into_iter().map(move |at| {
            let other = char::from(OTHERS[at / 5 % OTHERS.len()]);
            let mut damaged = text.clone();
            damaged.replace_range(at..=at, &other.to_string());
            (format!("{name}: {other:?} at {at}"), damaged)
        })
    }));
}

#[test]
fn rows_may_stand_in_any_order_and_missing_ones_are_noticed() {
    receive(texts().into_iter().flat_map(|(name, text)| {
        let rows: Vec<String> = text.lines().map(str::to_string).collect();
        (0..rows.len()).flat_map(move |at| {
            let (mut swapped, mut missing, mut twice) = (rows.clone(), rows.clone(), rows.clone());
            swapped.swap(at, (at * 7 + 1) % rows.len());
            missing.remove(at);
            twice.insert(rows.len() - at, rows[at].clone());
            [("swapped", swapped), ("missing", missing), ("twice", twice)]
                .map(|(what, rows)| (format!("{name}: row {} {what}", at + 1), rows.join("\n")))
        })
    }));
}

#[test]
fn another_version_is_refused_by_its_number() {
    for version in ["0", "6", "99999999999"] {
        let text = format!("(lispbox-session {version})\n(history nil nil nil nil)\n");
        let error = engine().session().decode(&text).expect_err("no such version");
        assert!(error.to_string().contains("version"), "{version}: {error}");
        assert!(error.to_string().contains(version), "{version}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn several_damages_at_once_are_received_as_well(
        which in any::<prop::sample::Index>(),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..30_usize), 1..4),
    ) {
        let texts = texts();
        let (_, text) = which.get(&texts);
        let mut characters: Vec<char> = text.chars().collect();
        for (from, to, length) in places {
            // Overwrites part of the text with a piece from another place.
            let from = from.index(characters.len());
            let piece: Vec<char> = characters[from..].iter().copied().take(length).collect();
            let to = to.index(characters.len());
            let end = (to + length / 2).min(characters.len());
            characters.splice(to..end, piece);
        }
        let damaged: String = characters.into_iter().collect();
        prop_assert_eq!(ill_received(&engine(), &damaged), None, "{}", damaged);
    }
}
