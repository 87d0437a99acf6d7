//! CSV to records and back, by the csv crate; fuel is charged row by row.

use super::super::arguments::{string, take, text};
use super::super::builders::{add, builder};
use super::super::options::{FLAG, FUNCTION, Given, ITEMS, has_items};
use super::super::text::{ask_for_copy, pay};
use crate::error::{Error, Outcome, describe};
use crate::machine::Machine;
use crate::native::{Builtin, OptionKind, OptionSet, OptionSpec};
use crate::value::Value;
use crate::value::columns::Columns;
use crate::value::decimal::read_integer;
use crate::value::map::Map;
use crate::value::map::record_key;
use crate::value::shape::Shape;
use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "csv/parse",
        &["[s & options]"],
        "A vector of one map per row, with the cells of the first row as keys (keywords where possible).\n\
         Options: `:headers false` gives vectors, `:headers [\"a\" \"b\"]` names the columns; `:separator \";\"`, \
         `:quote`, `:numbers true` parses numbers, `:trim true`, `:key-fn f` makes the keys. Missing cells of a short row are nil; excess cells of \
         a long row are in a vector under `:extra` (`:extra-2` if a column has that name). A duplicate name gets a \
         unique number (`a`, `a-2`), an empty one becomes `column-3`; keys given by a program must be distinct. A byte \
         order mark and empty lines are skipped. A quote that is not closed, or text behind a closing quote, is an error.",
        &[
            (
                "(csv/parse \"name,n\\nAnn,1\\n\\\"Li, Bo\\\",2\\n\")",
                "[{:name \"Ann\", :n \"1\"} {:name \"Li, Bo\", :n \"2\"}]",
            ),
            ("(csv/parse \"a;b\\n1;2.5\" :separator \\; :numbers true)", "[{:a 1, :b 2.5}]"),
            ("(csv/parse \"a,b\\n1,2\" :headers false)", "[[\"a\" \"b\"] [\"1\" \"2\"]]"),
        ],
        |machine, arguments| parse(machine, arguments, &PARSE, false),
    )
    .with_options(&PARSE),
    Builtin::new(
        "csv/read-csv",
        &["[s & options]"],
        "A vector of one vector per row, including the first row, like Clojure's data.csv; `csv/parse` returns maps. \
         Options as for `csv/parse`; an empty line is a row of one empty cell, unless `:headers` makes maps.",
        &[("(csv/read-csv \"a,b\\n1,2\")", "[[\"a\" \"b\"] [\"1\" \"2\"]]")],
        |machine, arguments| parse(machine, arguments, &READ, true),
    )
    .with_options(&READ),
    Builtin::new(
        "csv/write",
        &["[rows & options]"],
        "Rows as CSV text. The columns of maps are their keys in order of first appearance, or `:columns [:a :b]`; \
         vectors are written as they are. `:headers false` omits the header row; `:separator`, `:quote`, `:newline \
         \"\\r\\n\"`.",
        &[
            ("(csv/write [{:a 1 :b \"x,y\"} {:a 2 :c nil}])", "\"a,b,c\\n1,\\\"x,y\\\",\\n2,,\\n\""),
            ("(csv/write [[1 2] [3 4]] :separator \\;)", "\"1;2\\n3;4\\n\""),
        ],
        write,
    )
    .with_options(&WRITE),
];

/// Options of the functions that read.
const READING: &[OptionSpec] = &[
    OptionSpec::new("headers", &HEADERS).or(&["header"]),
    SEPARATOR,
    QUOTE,
    OptionSpec::new("numbers", &FLAG),
    OptionSpec::new("trim", &FLAG),
    OptionSpec::new("key-fn", &FUNCTION),
];

static PARSE: OptionSet = OptionSet { function: "csv/parse", accepted: READING };

static READ: OptionSet = OptionSet { function: "csv/read-csv", accepted: READING };

static WRITE: OptionSet = OptionSet {
    function: "csv/write",
    accepted: &[
        OptionSpec::new("columns", &ITEMS),
        OptionSpec::new("headers", &FLAG).or(&["header"]),
        SEPARATOR,
        QUOTE,
        OptionSpec::new("newline", &NEWLINE),
    ],
};

const SEPARATOR: OptionSpec = OptionSpec::new("separator", &CHARACTER).or(&["delimiter", "sep"]);

const QUOTE: OptionSpec = OptionSpec::new("quote", &CHARACTER);

static CHARACTER: OptionKind =
    OptionKind { wanted: "an ASCII character such as `\\;`, `\";\"` or `\\tab`", fits: |value| ascii(value).is_some() };

static HEADERS: OptionKind = OptionKind {
    wanted: "true, false or the names of the columns",
    fits: |value| (FLAG.fits)(value) || has_items(value),
};

static NEWLINE: OptionKind =
    OptionKind { wanted: "\"\\n\", \"\\r\\n\", :lf or :cr+lf", fits: |value| ends_as_in_windows(value).is_some() };

/// Aliases from Clojure's and other libraries, as pairs of alias and builtin name.
pub const ALIASES: &[(&str, &str)] = &[
    ("csv/read", "csv/parse"),
    ("csv/parse-csv", "csv/parse"),
    ("csv/read-maps", "csv/parse"),
    ("csv/slurp-csv", "csv/parse"),
    ("parse-csv", "csv/parse"),
    ("csv->maps", "csv/parse"),
    ("csv->", "csv/parse"),
    ("csv/csv->maps", "csv/parse"),
    ("csv/DictReader", "csv/parse"),
    ("read-csv", "csv/read-csv"),
    ("csv/reader", "csv/read-csv"),
    ("csv/write-csv", "csv/write"),
    ("csv/generate", "csv/write"),
    ("csv/encode", "csv/write"),
    ("csv/write-str", "csv/write"),
    ("csv/decode", "csv/parse"),
    ("csv/read-str", "csv/parse"),
    ("write-csv", "csv/write"),
    ("to-csv", "csv/write"),
    ("maps->csv", "csv/write"),
];

/// The name that `*out*` has as its value: prints are the only stream.
pub const OUT: &str = "*out*";

/// Returns the ASCII byte of a character or a string: `\;`, `";"`.
fn ascii(value: &Value) -> Option<u8> {
    match value {
        Value::Char(character) if character.is_ascii() => Some(*character as u8),
        Value::Str(text) => match text.as_str().as_bytes() {
            [byte] if byte.is_ascii() => Some(*byte),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether an end of line is that of Windows; `None` if the value is no end of line.
fn ends_as_in_windows(value: &Value) -> Option<bool> {
    match value {
        Value::Str(text) if text.as_str() == "\n" => Some(false),
        Value::Str(text) if text.as_str() == "\r\n" => Some(true),
        Value::Keyword(name) => match name.as_str() {
            "lf" => Some(false),
            "cr+lf" | "crlf" | "cr-lf" => Some(true),
            _ => None,
        },
        _ => None,
    }
}

fn mark(given: &Given, name: &str, default: u8) -> u8 {
    given.get(name).and_then(ascii).unwrap_or(default)
}

fn parse(machine: &mut Machine, arguments: &mut [Value], options: &'static OptionSet, is_raw: bool) -> Outcome<Value> {
    let given = options.read(&mut arguments[1..])?;
    let value = take(arguments, 0);
    let source = string(&value)?;
    pay(machine, source)?;
    ask_for_copy(machine, source, 1)?;
    let delimiter = mark(&given, "separator", b',');
    // The crate reads a record of any width at once: each cell takes an end offset and becomes a value.
    machine.reserve_values(source.bytes().filter(|byte| *byte == delimiter).count() as u64)?;
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let (quote, trims) = (mark(&given, "quote", b'"'), given.is_on("trim"));
    if let Some((at, problem)) = misquoted(source.as_bytes(), delimiter, quote, trims) {
        return Err(misquotation(source, at, problem).into());
    }
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .quote(quote)
        .trim(if trims { csv::Trim::All } else { csv::Trim::None })
        .from_reader(source.as_bytes());
    let numbers = given.is_on("numbers");
    let named = given.get("headers");
    let mut columns = match named {
        Some(names) if has_items(names) => Some(Header::of(machine.items(names.clone())?)?),
        _ => None,
    };
    let by_name = named.map_or(!is_raw, Value::is_truthy);
    let key_function = given.get("key-fn");
    let mut rows = Vec::new();
    let mut record = StringRecord::new();
    let keeps_blank = is_raw && !by_name;
    loop {
        let place = usize::try_from(reader.position().byte()).unwrap_or(usize::MAX);
        for _ in 0..if keeps_blank { blank_lines(source, place) } else { 0 } {
            machine.charge(1)?;
            machine.reserve_values(4)?;
            rows.push(Value::vector(vec![Value::string("")]));
            machine.grown(rows.len())?;
        }
        if !reader.read_record(&mut record).map_err(unreadable)? {
            break;
        }
        machine.charge(1 + record.len() as u64 + record.as_slice().len() as u64 / 64)?;
        machine.reserve_values(4 * record.len() as u64)?;
        if !by_name {
            rows.push(Value::vector(record.iter().map(|cell| cell_value(cell, numbers)).collect()));
        } else if let Some(columns) = &columns {
            rows.push(columns.row(machine, &record, numbers)?);
        } else {
            columns = Some(Header::of(names(machine, &record, key_function)?)?);
        }
        machine.grown(rows.len())?;
    }
    Ok(Value::vector(rows))
}

/// Returns the number of empty lines at a place where a record may begin.
fn blank_lines(source: &str, place: usize) -> usize {
    let bytes = source.as_bytes();
    let mut rest = bytes.get(place..).unwrap_or_default();
    // The end of a line may be left over from the record before.
    if place > 0 && bytes[place - 1] == b'\r' && rest.first() == Some(&b'\n') {
        rest = &rest[1..];
    }
    let mut lines = 0;
    while let [b'\r', b'\n', behind @ ..] | [b'\r' | b'\n', behind @ ..] = rest {
        lines += 1;
        rest = behind;
    }
    lines
}

/// A quotation that no CSV has.
#[derive(Clone, Copy)]
enum Misquoted {
    /// A quote that is not closed.
    Open,
    /// Text between a closing quote and the end of its cell.
    Trailing,
}

/// Finds the first quoted cell that does not end behind its closing quote, and returns its place. With `trims`, blanks may
/// follow the quote.
fn misquoted(source: &[u8], delimiter: u8, quote: u8, trims: bool) -> Option<(usize, Misquoted)> {
    let mut at = 0;
    while let Some(found) = memchr::memchr(quote, &source[at..]) {
        let start = at + found;
        at = start + 1;
        let begins = start == 0 || source[start - 1] == delimiter || matches!(source[start - 1], b'\n' | b'\r');
        if !begins {
            continue;
        }
        loop {
            let Some(found) = memchr::memchr(quote, &source[at..]) else { return Some((start, Misquoted::Open)) };
            at += found + 1;
            if source.get(at) != Some(&quote) {
                break;
            }
            at += 1;
        }
        while trims && source.get(at) != Some(&delimiter) && matches!(source.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        if source.get(at).is_some_and(|next| *next != delimiter && !matches!(next, b'\n' | b'\r')) {
            return Some((at, Misquoted::Trailing));
        }
    }
    None
}

#[cold]
fn misquotation(source: &str, at: usize, problem: Misquoted) -> Error {
    let line = 1 + source.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
    let message = match problem {
        Misquoted::Open => format!("the quote that opens a cell in line {line} is not closed"),
        Misquoted::Trailing => {
            let next = source.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER);
            format!("expected a separator or the end of line {line} behind the closing quote of a cell, got `{next}`")
        }
    };
    Error::new("InvalidCsv", message).suggest(
        "a quote inside a quoted cell is written twice; if quotes are ordinary text, name another: `:quote \"\\u0001\"`",
    )
}

#[cold]
fn unreadable(problem: csv::Error) -> Error {
    Error::new("InvalidCsv", format!("the text cannot be read as CSV: {problem}"))
}

/// Returns the keys for the first row, from distinct names; the keys of a `:key-fn` may still collide.
fn names(machine: &mut Machine, record: &StringRecord, function: Option<&Value>) -> Outcome<Vec<Value>> {
    // Bytes per name: a key, a text, and slots in the tables of names, which may be half empty.
    const NAME: u64 = 320;
    if record.len() >= 64 {
        machine.reserve(record.len() as u64 * NAME)?;
    }
    let mut names = Names::of(record);
    let mut keys = Vec::with_capacity(record.len());
    for (at, cell) in record.iter().enumerate() {
        machine.charge(1)?;
        let name = names.different(cell.trim(), at);
        keys.push(match function {
            Some(function) => {
                let key = machine.call1(function, Value::string(&name))?;
                machine.key(key)?
            }
            None => record_key(&name),
        });
    }
    Ok(keys)
}

/// A generator of distinct column names.
struct Names<'r> {
    /// Names in the header, with a flag that is true once the first column of that name has taken it.
    written: HashMap<&'r str, bool>,
    /// Numbered names already in use.
    numbered: HashSet<String>,
    /// The last number appended to each name.
    numbers: HashMap<String, u32>,
}

impl<'r> Names<'r> {
    fn of(record: &'r StringRecord) -> Names<'r> {
        let written = record.iter().map(|cell| (cell.trim(), false)).collect();
        Names { written, numbered: HashSet::new(), numbers: HashMap::new() }
    }

    /// Returns a unique name for a column: the name itself for its first occurrence, else the name with the lowest
    /// number that makes it distinct from all other columns. A column without a name is named after its position.
    fn different(&mut self, name: &'r str, at: usize) -> String {
        let base = match name {
            "" => {
                let name = format!("column-{}", at + 1);
                if !self.written.contains_key(&*name) && self.numbered.insert(name.clone()) {
                    return name;
                }
                name
            }
            name => {
                if let Some(given @ false) = self.written.get_mut(name) {
                    *given = true;
                    return name.to_string();
                }
                name.to_string()
            }
        };
        let number = self.numbers.entry(base.clone()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{base}-{number}");
            if !self.written.contains_key(&*name) && self.numbered.insert(name.clone()) {
                return name;
            }
        }
    }
}

/// The header of a table.
struct Header {
    columns: Columns,
    /// The key of cells beyond the columns.
    extra: Value,
}

impl Header {
    /// Creates the columns from their keys.
    ///
    /// # Errors
    /// Returns `DuplicateColumn` if two columns have the same key.
    fn of(keys: Vec<Value>) -> Result<Header, Error> {
        let keys: Vec<Value> = keys
            .into_iter()
            .map(|key| match &key {
                Value::Str(name) => record_key(name.as_str()),
                _ => key,
            })
            .collect();
        let mut seen = Map::default();
        for key in &keys {
            if seen.contains_key(key) {
                return Err(duplicate(key));
            }
            seen.insert(key.clone(), Value::Nil);
        }
        // The key must not be any spelling of a column's key, or the extra cells would overwrite that column.
        let columns = seen.into_record();
        let mut names = (1..).map(|number| match number {
            1 => Value::keyword("extra"),
            number => Value::keyword(&format!("extra-{number}")),
        });
        let extra = names.find(|name| !columns.contains_key(name)).unwrap_or_default();
        Ok(Header { columns: Columns::new(keys), extra })
    }

    fn row(&self, machine: &mut Machine, record: &StringRecord, numbers: bool) -> Outcome<Value> {
        let mut cells = record.iter();
        let mut values = Vec::with_capacity(self.columns.keys.len());
        for _ in &self.columns.keys {
            values.push(cells.next().map_or(Value::Nil, |cell| cell_value(cell, numbers)));
        }
        machine.charge(self.columns.keys.len() as u64)?;
        let mut map = self.columns.map(values);
        let extra: Vec<Value> = cells.map(|cell| cell_value(cell, numbers)).collect();
        if !extra.is_empty() {
            map.insert(self.extra.clone(), Value::vector(extra));
        }
        Ok(Value::Map(Arc::new(map.into_record())))
    }
}

#[cold]
fn duplicate(key: &Value) -> Error {
    Error::new("DuplicateColumn", format!("two columns have the key {}", describe(key)))
        .suggest("give each column a key of its own, or read rows as vectors with `:headers false`")
}

/// Converts a cell to a value: a number if `numbers` is set and the cell looks like one, else a string.
fn cell_value(cell: &str, numbers: bool) -> Value {
    let trimmed = cell.trim();
    let looks_like_one = numbers
        && trimmed.len() < 32
        && trimmed.ends_with(|c: char| c.is_ascii_digit())
        && trimmed.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'));
    if looks_like_one {
        let digits = trimmed.trim_start_matches(['-', '+']);
        // Codes such as 007 are not numbers.
        let is_code = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        if !is_code && let Ok(number) = trimmed.parse::<i64>() {
            return Value::Int(number);
        }
        if !is_code && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return read_integer(trimmed, 10).map_or_else(|| Value::string(cell), Value::integer);
        }
        if !is_code
            && let Ok(number) = trimmed.parse::<f64>()
            && number.is_finite()
        {
            return Value::Float(number);
        }
    }
    Value::string(cell)
}

fn write(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    // data.csv's `(write-csv *out* rows)` prints.
    if arguments.len() > 1 && arguments[0].as_symbol().is_some_and(|name| name.as_str() == OUT) {
        let text = write(machine, &mut arguments[1..])?;
        machine.core.print(string(&text)?);
        return Ok(Value::Nil);
    }
    if arguments.len() > 1
        && let Some(cell) = builder(&arguments[0]).cloned()
    {
        let text = write(machine, &mut arguments[1..])?;
        add(machine, &cell, string(&text)?)?;
        return Ok(Value::Nil);
    }
    let given = WRITE.read(&mut arguments[1..])?;
    let rows = machine.items(take(arguments, 0))?;
    let lines_end_as_in_windows = given.get("newline").and_then(ends_as_in_windows).unwrap_or(false);
    let mut writer = WriterBuilder::new()
        .flexible(true)
        .delimiter(mark(&given, "separator", b','))
        .quote(mark(&given, "quote", b'"'))
        .terminator(if lines_end_as_in_windows { Terminator::CRLF } else { Terminator::Any(b'\n') })
        .from_writer(Vec::new());
    let columns = match given.get("columns") {
        Some(columns) => machine.items(columns.clone())?,
        None => columns_of(machine, &rows)?,
    };
    let mut written = 0_u64;
    let mut put = |machine: &mut Machine, cells: &[String]| -> Outcome<()> {
        let more: u64 = cells.iter().map(|cell| cell.len() as u64 + 3).sum();
        written += more;
        machine.charge(1 + more / 16)?;
        // The buffer may double, and the value is a copy of it.
        machine.reserve(if written >= 4_096 { written * 3 } else { 0 })?;
        writer.write_record(cells).map_err(|problem| unreadable(problem).into())
    };
    let headers = given.get("headers").is_none_or(Value::is_truthy);
    let has_maps = rows.iter().any(|row| matches!(row, Value::Map(_)));
    if has_maps && !columns.is_empty() && headers {
        let names = columns.iter().map(|column| cell_text(machine, column)).collect::<Outcome<Vec<String>>>()?;
        put(machine, &names)?;
    }
    for row in rows {
        let cells = match &row {
            Value::Map(map) => columns
                .iter()
                .map(|column| map.get(column).map_or(Ok(String::new()), |value| cell_text(machine, value)))
                .collect::<Outcome<Vec<String>>>()?,
            Value::Vector(_) | Value::List(_) | Value::Lazy(_) => {
                let items = machine.items(row)?;
                items.iter().map(|item| cell_text(machine, item)).collect::<Outcome<Vec<String>>>()?
            }
            other => {
                return Err(Error::expected("rows that are maps or vectors", other)
                    .suggest("`(csv/write [{:a 1} {:a 2}])`; one column of values: `(map vector xs)`")
                    .into());
            }
        };
        put(machine, &cells)?;
    }
    let bytes = writer.into_inner().map_err(|_| Error::new("InvalidCsv", "the CSV text could not be written"))?;
    Ok(Value::string(&String::from_utf8_lossy(&bytes)))
}

/// Returns the keys of all maps, in order of first appearance.
fn columns_of(machine: &mut Machine, rows: &[Value]) -> Outcome<Vec<Value>> {
    let mut seen = Map::default();
    let mut last: Option<Arc<Shape>> = None;
    for row in rows {
        machine.charge(1)?;
        let Value::Map(map) = row else { continue };
        let shape = map.as_shaped().map(|(shape, _)| shape);
        if let (Some(shape), Some(last)) = (shape, &last)
            && Arc::ptr_eq(shape, last)
        {
            continue;
        }
        machine.charge(map.len() as u64)?;
        for (key, _) in map.iter() {
            if !seen.contains_key(key) {
                seen.insert(key.clone(), Value::Nil);
            }
        }
        last = shape.cloned();
    }
    Ok(seen.iter().map(|(key, _)| key.clone()).collect())
}

/// Converts a value to the text of a cell: names without their colon, nil as the empty text.
fn cell_text(machine: &mut Machine, value: &Value) -> Outcome<String> {
    Ok(match value {
        Value::Nil => String::new(),
        Value::Str(held) => {
            pay(machine, held.as_str())?;
            held.as_str().to_string()
        }
        Value::Keyword(name) | Value::Symbol(name) => name.as_str().to_string(),
        other => text(machine, other)?,
    })
}
