//! Checks the layers of the code: no file imports from a higher layer. Between crates, the compiler enforces the order;
//! this test enforces it within the language, within the policy, and within the package that contains the server.
//!
//! It also bounds the number of fields of structs: those that belong together by meaning or by lifetime form a type.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The layers of one crate.
struct House {
    /// The root folder of its sources.
    root: &'static str,
    /// Subfolders of the root that belong to other crates.
    without: &'static [&'static str],
    /// Its rooms (top-level modules), from the lowest layer to the highest. A room may import from its own layer and
    /// from lower ones. The room of a feature has parts at several layers, each named by its path.
    layers: &'static [&'static [&'static str]],
    /// Maximum size, in files, of an import cycle in each room. The files of a cycle cannot be understood, tested or
    /// moved separately.
    cycles: &'static [(&'static str, usize)],
    /// Minimum numbers of files and of imports; fewer indicate that the sources were not parsed correctly.
    least: (usize, usize),
}

/// The layers of `src/lang/lib.rs`.
const LANGUAGE: House = House {
    root: "src/lang",
    without: &[],
    layers: &[
        &["span"],
        &[
            "error",
            "foreign_text",
            "form",
            "heap",
            "host",
            "index",
            "machine",
            "meter",
            "native",
            "node",
            "operators",
            "registry",
            "value",
        ],
        &["absent", "lexer", "reader"],
        &["convert", "expand", "json", "resolve", "runs"],
        &["eval"],
        &["builtin", "plan", "prelude", "snapshot"],
        &[
            "effects",
            "embed",
            "engine",
            "environment",
            "evaluation",
            "failure",
            "foreign",
            "planned",
            "preview",
            "reply",
            "session",
        ],
    ],
    // `embed` adds methods to `Engine` and `Session`, which hold its functions and reports.
    cycles: &[
        ("value", 50),
        ("builtin", 36),
        ("expand", 20),
        ("reader", 9),
        ("eval", 8),
        ("embed", 6),
        ("engine", 6),
        ("session", 6),
        ("evaluation", 6),
    ],
    least: (200, 1_000),
};

/// The layers of `src/policy/lib.rs`.
const POLICY: House = House {
    root: "src/policy",
    without: &[],
    layers: &[&["fields", "origins"], &["rules"], &["judgement"], &["grants", "rehearsal"], &["monitor"]],
    cycles: &[("rules", 6)],
    least: (30, 60),
};

/// The layers of `src/server/mod.rs`, with the modules beside and below the server.
const PACKAGE: House = House {
    root: "src",
    without: &["lang", "policy", "bin"],
    layers: &[
        &["store", "worker", "server/identity", "server/system", "server/text", "server/transport"],
        &["server/secrets"],
        &["server/fields", "server/quarantine", "server/telemetry"],
        &["server/policy", "server/approvals/consent", "server/approvals/question"],
        &["server/audit", "server/config"],
        &["server/pins"],
        &["server/admission", "server/downstream"],
        &["server/sessions"],
        &["server/guards"],
        &[
            "server/runs",
            "server/approvals/answers",
            "server/approvals/asked",
            "server/approvals/grants",
            "server/plans/held",
            "server/plans/terms",
            "server/recordings",
        ],
        &["server/approvals"],
        &["server/calls/layer", "server/calls/wait"],
        &["server/approvals/layers", "server/guards/layers", "server/rehearsals/layers"],
        &["server/calls"],
        &["server/evaluations"],
        &["server/plans", "server/rehearsals"],
        &["server/connections", "server/protocol"],
        &["server/serve"],
        &["server/http"],
        &["server/stdio"],
    ],
    cycles: &[
        ("store", 7),
        ("server/config", 6),
        ("server/secrets", 6),
        ("worker", 5),
        ("server/audit", 4),
        ("server/downstream", 4),
        ("server/evaluations", 4),
        ("server/http", 4),
    ],
    least: (120, 400),
};

/// Maximum size of an import cycle of files in every other room.
const OTHER_CYCLES: usize = 3;

type Module = Vec<String>;

/// One source file: the names that its `use` declarations import, with their paths, and all other paths.
struct File {
    imports: BTreeMap<String, Vec<String>>,
    paths: Vec<Vec<String>>,
}

/// Removes comments, literals and test modules, which are irrelevant to the layers.
fn code(text: &str) -> String {
    const TESTS: &str = "\n#[cfg(test)]\nmod ";
    let has_body =
        |(at, _): &(usize, &str)| text[at + TESTS.len()..].lines().next().is_some_and(|line| line.ends_with('{'));
    let end = text.match_indices(TESTS).find(has_body).map_or(text.len(), |(at, _)| at);
    let text = &text[..end];
    let bytes: Vec<char> = text.chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while at < bytes.len() {
        let next = bytes.get(at + 1).copied().unwrap_or(' ');
        match bytes[at] {
            '/' if next == '/' => at += bytes[at..].iter().position(|c| *c == '\n').unwrap_or(bytes.len() - at),
            'r' if (next == '"' || next == '#') && !out.ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                let hashes = bytes[at + 1..].iter().take_while(|c| **c == '#').count();
                if bytes.get(at + 1 + hashes) != Some(&'"') {
                    out.push('r');
                    at += 1;
                    continue;
                }
                let end: String = format!("\"{}", "#".repeat(hashes));
                let rest: String = bytes[at + 2 + hashes..].iter().collect();
                let length = rest.find(&end).map_or(rest.len(), |found| rest[..found].chars().count());
                at += 2 + hashes + length + end.len();
            }
            '"' => {
                at += 1;
                while at < bytes.len() && bytes[at] != '"' {
                    at += if bytes[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
            }
            '\'' if next == '\\' || bytes.get(at + 2) == Some(&'\'') => {
                at += 2 + usize::from(next == '\\');
                while at < bytes.len() && bytes[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            character => {
                out.push(character);
                at += 1;
            }
        }
    }
    out
}

/// Expands the braces of a `use` declaration.
fn expand(tree: &str) -> Vec<String> {
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for character in tree.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if character == ',' && depth == 0 {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(character);
        }
    }
    parts.push(part);
    let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    parts
        .flat_map(|part| match part.split_once('{') {
            Some((prefix, rest)) => {
                let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
                expand(inner).into_iter().map(|path| format!("{}{path}", prefix.trim())).collect()
            }
            None => vec![part.to_string()],
        })
        .collect()
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|segment| segment.trim().to_string()).collect()
}

fn read(text: &str) -> File {
    // The path of a visibility, `pub(in crate::builtin)`, is not an import.
    let (code, mut file) =
        (code(text).replace("pub(in crate::", "pub("), File { imports: BTreeMap::new(), paths: Vec::new() });
    let mut body = String::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("use ") {
        let begins = at == 0 || rest[..at].ends_with(['\n', ' ', ')']);
        let Some(end) = rest[at..].find(';').filter(|_| begins) else {
            body.push_str(&rest[..at + 4]);
            rest = &rest[at + 4..];
            continue;
        };
        body.push_str(&rest[..at]);
        for path in expand(&rest[at + 4..at + end]) {
            let (path, alias) = match path.split_once(" as ") {
                Some((path, alias)) => (segments(path), Some(alias.trim().to_string())),
                None => (segments(&path), None),
            };
            let last = path.iter().rfind(|segment| *segment != "self").cloned().unwrap_or_default();
            file.imports.insert(alias.unwrap_or(last), path.clone());
            file.paths.push(path);
        }
        rest = &rest[at + end..];
    }
    body.push_str(rest);
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in body.split(|c: char| !is_part(c)).filter(|word| word.contains("::")) {
        file.paths.push(segments(word).into_iter().take_while(|segment| !segment.is_empty()).collect());
    }
    file
}

fn collect(folder: &Path, root: &Path, files: &mut BTreeMap<Module, File>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, root, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let inner = path.strip_prefix(root).expect("it is inside").with_extension("");
            let mut module: Module = inner.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if module.last().is_some_and(|last| last == "mod" || last == "lib") {
                module.pop();
            }
            if module.last().is_none_or(|last| !last.ends_with("tests")) {
                files.insert(module, read(&std::fs::read_to_string(&path).expect("it is text")));
            }
        }
    }
}

/// Returns the file in which the item that a path denotes is defined, following re-exports.
fn resolve(files: &BTreeMap<Module, File>, from: &Module, path: &[String], depth: u32) -> Option<Module> {
    if depth > 12 {
        return None;
    }
    let first = path.first()?.as_str();
    let (mut base, mut rest) = match first {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => {
            let ups = path.iter().take_while(|segment| *segment == "super").count();
            (from[..from.len().checked_sub(ups)?].to_vec(), &path[ups..])
        }
        _ if files.contains_key(&[from.as_slice(), &path[..1]].concat()) => (from.clone(), path),
        _ => {
            let target = files.get(from)?.imports.get(first).filter(|target| target.first() != path.first())?;
            return resolve(files, from, &[target.as_slice(), &path[1..]].concat(), depth + 1);
        }
    };
    while let Some(next) = rest.first() {
        let inner = [base.as_slice(), std::slice::from_ref(next)].concat();
        if files.contains_key(&inner) {
            (base, rest) = (inner, &rest[1..]);
            continue;
        }
        return match files.get(&base)?.imports.get(next).filter(|target| target.as_slice() != rest) {
            Some(target) => resolve(files, &base, &[target.as_slice(), &rest[1..]].concat(), depth + 1),
            None => Some(base),
        };
    }
    files.contains_key(&base).then_some(base)
}

/// The modules that each module imports from.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

const HOUSES: [House; 3] = [LANGUAGE, POLICY, PACKAGE];

impl House {
    fn graph(&self) -> Graph {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(self.root);
        let mut files = BTreeMap::new();
        collect(&root, &root, &mut files);
        files.retain(|module, _| !module.first().is_some_and(|first| self.without.contains(&first.as_str())));
        let edges = |(module, file): (&Module, &File)| {
            let targets = file.paths.iter().filter_map(|path| resolve(&files, module, path, 0));
            (module.clone(), targets.filter(|target| target != module && self.has_a_room(target)).collect())
        };
        let graph: Graph = files.iter().filter(|(module, _)| self.has_a_room(module)).map(edges).collect();
        let (files, imports) = (graph.len(), graph.values().map(BTreeSet::len).sum());
        assert!(self.least.0 <= files, "only {files} files of {} are found", self.root);
        assert!(self.least.1 <= imports, "only {imports} imports of {} are understood", self.root);
        graph
    }

    /// Returns false for the root module of a crate or of the server, which re-exports from all rooms.
    fn has_a_room(&self, module: &Module) -> bool {
        !module.is_empty() && module.as_slice() != ["server"]
    }

    fn room(&self, module: &Module) -> String {
        let depth = if module[0] == "server" { 2 } else { 1 };
        module[..depth].join("/")
    }

    /// Returns the layer of the part of a room that contains the module, or else of the room.
    fn layer(&self, module: &Module) -> usize {
        let of = |path: String| self.layers.iter().position(|rooms| rooms.contains(&path.as_str()));
        (1..=module.len()).rev().find_map(|depth| of(module[..depth].join("/"))).unwrap_or_else(|| {
            let room = self.room(module);
            panic!("`{}/{room}` has no layer: add it at the lowest place that its imports allow", self.root)
        })
    }
}

#[test]
fn no_file_imports_from_a_layer_above_its_own() {
    let mut upward = Vec::new();
    for house in &HOUSES {
        for (module, targets) in &house.graph() {
            for target in targets.iter().filter(|target| house.layer(target) > house.layer(module)) {
                upward.push(format!("{} imports {}", module.join("/"), target.join("/")));
            }
        }
    }
    assert!(upward.is_empty(), "imports that run upwards:\n{}", upward.join("\n"));
}

#[test]
fn import_cycles_of_files_do_not_grow() {
    for house in &HOUSES {
        let graph = house.graph();
        // All modules that each module reaches. Two modules are in a cycle if each reaches the other.
        let reached: BTreeMap<&Module, BTreeSet<&Module>> = graph
            .keys()
            .map(|module| {
                let (mut seen, mut open) = (BTreeSet::new(), vec![module]);
                while let Some(next) = open.pop() {
                    for target in graph.get(next).into_iter().flatten() {
                        if seen.insert(target) {
                            open.push(target);
                        }
                    }
                }
                (module, seen)
            })
            .collect();
        let mut largest: BTreeMap<String, usize> = BTreeMap::new();
        for (module, seen) in &reached {
            let cycle: BTreeSet<_> = seen.iter().filter(|other| reached[**other].contains(*module)).collect();
            // The rooms in the second layer of the language form one data kernel, and share a limit.
            let is_kernel = house.root == LANGUAGE.root && house.layer(module) == 1;
            let room = if is_kernel { "value".to_owned() } else { house.room(module) };
            let size = largest.entry(room).or_default();
            *size = (*size).max(cycle.len());
        }
        for (room, size) in largest {
            let most = house.cycles.iter().find(|(known, _)| *known == room).map_or(OTHER_CYCLES, |(_, most)| *most);
            assert!(size <= most, "{size} files of `{room}` import each other in a cycle, at most {most} did before");
        }
    }
}

/// Maximum number of fields of a struct, and of a variant of an enum.
const MOST_FIELDS: usize = 12;

/// The folders in which that is the maximum.
const BOUNDED: [&str; 3] = ["src/server", "src/policy", "src/bin/lispbox"];

/// Types with more fields, by file and name, each with the reason.
const UNBOUNDED: [(&str, &str); 1] = [
    // Users of the library find the keys of a line of the log as its fields, in the same order.
    ("src/server/audit/record.rs", "Record"),
];

/// Returns the position of the first of `stops` outside of brackets, or of a bracket that closes none of the text.
fn end_of(text: &str, stops: &[char]) -> usize {
    let (mut depth, mut before) = (0_i32, ' ');
    for (at, character) in text.char_indices() {
        match character {
            _ if depth == 0 && stops.contains(&character) => return at,
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return at;
        }
        before = character;
    }
    text.len()
}

/// Splits a text at its commas, up to the bracket that closes none of it.
fn parts(mut text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    loop {
        let end = end_of(text, &[',']);
        parts.push(text[..end].trim());
        match text[end..].strip_prefix(',') {
            Some(rest) => text = rest,
            None => break,
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Counts the fields of each struct, union and variant of an enum in a file.
fn fields(text: &str) -> Vec<(String, usize)> {
    let code = code(text);
    let mut found = Vec::new();
    for keyword in ["struct ", "union ", "enum "] {
        for (at, _) in code.match_indices(keyword) {
            let rest = &code[at + keyword.len()..];
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let begins_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            if !begins_word || !name.starts_with(char::is_uppercase) {
                continue;
            }
            let rest = &rest[name.len()..];
            let rest = rest.strip_prefix('<').map_or(rest, |generics| &generics[end_of(generics, &[]) + 1..]);
            // Parentheses in a `where` clause belong to a bound.
            let stops: &[char] = if rest.trim_start().starts_with("where") { &['{', ';'] } else { &['{', '(', ';'] };
            let Some(inside) = rest[end_of(rest, stops)..].strip_prefix(['{', '(']) else { continue };
            if keyword != "enum " {
                found.push((name, parts(inside).len()));
                continue;
            }
            for variant in parts(inside) {
                let mut variant = variant;
                while let Some(attribute) = variant.strip_prefix("#[") {
                    variant = attribute[end_of(attribute, &[])..].trim_start_matches(']').trim_start();
                }
                let head = variant.find(['{', '(']).unwrap_or(variant.len());
                let inside = variant.get(head + 1..).unwrap_or_default();
                found.push((format!("{name}::{}", variant[..head].trim()), parts(inside).len()));
            }
        }
    }
    found
}

#[test]
fn fields_are_counted() {
    let text = r#"
        pub(crate) struct Plain { a: u8, pub b: fn(u8, u8) -> u8, c: Map<u8, [u8; 2]> }
        struct Generic<'a, F: Fn(u8, u8) -> u8> where F: Fn(u8) { #[arg(long, name = "a,b")] f: &'a F }
        struct Tuple(u8, Vec<(u8, u8)>);
        struct Unit;
        enum Kinds { None, #[default] Some(u8, u8), Named { a: u8, b: u8, c: u8 } }
        fn new() -> Plain { Plain { a: 1, b: f, c: m } }
    "#;
    let expected =
        [("Plain", 3), ("Generic", 1), ("Tuple", 2), ("Kinds::None", 0), ("Kinds::Some", 2), ("Kinds::Named", 3)];
    assert_eq!(fields(text), expected.map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn structs_have_few_fields() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut folders: Vec<PathBuf> = BOUNDED.iter().map(|folder| root.join(folder)).collect();
    let (mut seen, mut large, mut known) = (0, Vec::new(), BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let file = path.strip_prefix(&root).expect("it is inside").to_string_lossy().replace('\\', "/");
            for (name, count) in fields(&std::fs::read_to_string(&path).expect("it is text")) {
                seen += 1;
                if count <= MOST_FIELDS {
                    continue;
                }
                match UNBOUNDED.iter().find(|allowed| **allowed == (&*file, &*name)) {
                    Some(allowed) => drop(known.insert(allowed)),
                    None => large.push(format!("`{name}` in {file} has {count} fields")),
                }
            }
        }
    }
    assert!(seen >= 700, "only {seen} structs and variants are found");
    assert!(large.is_empty(), "at most {MOST_FIELDS} are allowed; group some in a type:\n{}", large.join("\n"));
    let unused: Vec<_> = UNBOUNDED.iter().filter(|allowed| !known.contains(allowed)).collect();
    assert!(unused.is_empty(), "no such types with many fields are found: {unused:?}");
}
