//! The limits of an evaluation: names, defaults and units.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limits of one evaluation. The defaults are those of the documentation. An operator can set others, and a call
/// can request less, or more within the operator's maximum.
///
/// ```
/// use lispbox::lang::Limits;
/// use std::time::Duration;
///
/// let limits = Limits { memory: 64 << 20, total: Duration::from_secs(10), ..Limits::default() };
/// assert_eq!(limits.shown()[1].0, "memory");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum number of steps; `docs/values.md` defines a step.
    pub fuel: u64,
    /// Maximum number of live bytes of the evaluation and its session, as counted by the allocator.
    pub memory: u64,
    /// Maximum number of nested calls; tail calls do not count.
    pub depth: u32,
    /// Maximum wall-clock time less the time spent waiting for the host.
    pub compute: Duration,
    /// Maximum wall-clock time.
    pub total: Duration,
    /// Maximum number of tool calls.
    pub calls: u32,
    /// Maximum number of concurrent tool calls, in `pmap` and related functions.
    pub parallel: u32,
    /// Timeout of one tool call. Exceeding it raises an error that the program can catch.
    pub tool: Duration,
    /// Maximum size of the whole reply, in bytes.
    pub output: u64,
    /// Size of the values and prints of a reply from which they are shown as a preview, in bytes: the shape, the first
    /// items and the beginnings of long strings, in at most half of this size. `None` shows everything within `output`.
    /// The server's default is 4 KiB; setting `output` by name removes it.
    #[serde(default)]
    pub preview: Option<u64>,
    /// Maximum size of the program text, in bytes.
    pub program: u64,
    /// Maximum number of live bytes that a session may keep after a form.
    pub session: u64,
    /// Maximum number of names that a session may define.
    pub bindings: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            fuel: 50_000_000,
            memory: 256 << 20,
            depth: 5_000,
            compute: Duration::from_secs(5),
            total: Duration::from_secs(120),
            calls: 500,
            parallel: 32,
            tool: Duration::from_secs(30),
            output: 32 << 10,
            preview: None,
            program: 256 << 10,
            session: 64 << 20,
            bindings: 1_000,
        }
    }
}

/// The kind of quantity that a limit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Count,
    Bytes,
    Time,
}

const NAMES: [(&str, Unit); 12] = [
    ("fuel", Unit::Count),
    ("memory", Unit::Bytes),
    ("depth", Unit::Count),
    ("compute", Unit::Time),
    ("total", Unit::Time),
    ("calls", Unit::Count),
    ("parallel", Unit::Count),
    ("tool", Unit::Time),
    ("output", Unit::Bytes),
    ("program", Unit::Bytes),
    ("session", Unit::Bytes),
    ("bindings", Unit::Count),
];

impl Limits {
    /// The names that [`Limits::set`] accepts.
    ///
    /// ```
    /// use lispbox::lang::Limits;
    ///
    /// assert!(Limits::names().any(|name| name == "fuel"));
    /// ```
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Sets one limit from text: counts as `1000`, `1_000` or `1e7`; bytes with `B`, `KiB`, `MiB`, `GiB` (`KB`, `MB`,
    /// `GB` are powers of ten); times with `ms`, `s`, `m`, or bare seconds.
    ///
    /// # Errors
    /// Returns a sentence that describes the expected and the actual text.
    ///
    /// ```
    /// let mut limits = lispbox::lang::Limits::default();
    /// limits.set("memory", "64MiB").unwrap();
    /// limits.set("fuel", "1e7").unwrap();
    /// assert_eq!((limits.memory, limits.fuel), (64 << 20, 10_000_000));
    /// assert!(limits.set("memmory", "1").unwrap_err().contains("Did you mean memory?"));
    /// ```
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let Some((_, unit)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = Limits::names().collect();
            let hint = crate::error::suggest::closest(name, names.iter().copied())
                .map(|name| format!(" Did you mean {name}?"))
                .unwrap_or_default();
            return Err(format!("there is no limit `{name}`; the limits are {}.{hint}", names.join(", ")));
        };
        self.assign(name, read_amount(text, *unit, &format!("limit `{name}`"))?);
        Ok(())
    }

    /// Sets one limit from a number: a count, bytes, or seconds for the times.
    ///
    /// # Errors
    /// As [`Limits::set`].
    ///
    /// ```
    /// use lispbox::lang::Limits;
    ///
    /// let mut limits = Limits::default();
    /// limits.set_number("total", 1.5).unwrap();
    /// assert_eq!(limits.total.as_millis(), 1_500);
    /// ```
    pub fn set_number(&mut self, name: &str, number: f64) -> Result<(), String> {
        self.set(name, &format!("{number}"))
    }

    fn assign(&mut self, name: &str, amount: f64) {
        let time = || Duration::try_from_secs_f64(amount).unwrap_or(Duration::MAX);
        let small = amount.min(f64::from(u32::MAX)) as u32;
        match name {
            "fuel" => self.fuel = amount as u64,
            "memory" => self.memory = amount as u64,
            "depth" => self.depth = small,
            "compute" => self.compute = time(),
            "total" => self.total = time(),
            "calls" => self.calls = small,
            "parallel" => self.parallel = small.max(1),
            "tool" => self.tool = time(),
            "output" => (self.output, self.preview) = (amount as u64, None),
            "program" => self.program = amount as u64,
            "session" => self.session = amount as u64,
            _ => self.bindings = small,
        }
    }

    /// Returns the size from which values and prints are shown in part, and the size in which they are shown then.
    pub(crate) fn shown_within(&self) -> (usize, usize) {
        let bytes = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        match self.preview {
            Some(preview) if preview < self.output => (bytes(preview), bytes(preview / 2)),
            // The rest is for our own lines.
            _ => (bytes(self.output), bytes(self.output - self.output / 8)),
        }
    }

    /// Returns every limit by name, in the format that [`Limits::set`] reads: `50000000`, `256 MiB`, `5 s`.
    ///
    /// ```
    /// use lispbox::lang::Limits;
    ///
    /// assert_eq!(Limits { depth: 100, ..Limits::default() }.shown()[2], ("depth", "100".to_owned()));
    /// ```
    pub fn shown(&self) -> [(&'static str, String); 12] {
        use super::{bytes, time};
        [
            ("fuel", self.fuel.to_string()),
            ("memory", bytes(self.memory)),
            ("depth", self.depth.to_string()),
            ("compute", time(self.compute)),
            ("total", time(self.total)),
            ("calls", self.calls.to_string()),
            ("parallel", self.parallel.to_string()),
            ("tool", time(self.tool)),
            ("output", bytes(self.output)),
            ("program", bytes(self.program)),
            ("session", bytes(self.session)),
            ("bindings", self.bindings.to_string()),
        ]
    }

    /// Lowers every limit that exceeds `maximum` to it.
    ///
    /// ```
    /// use lispbox::lang::Limits;
    ///
    /// let mut limits = Limits { fuel: 1_000, ..Limits::default() };
    /// limits.clamp_to(&Limits { fuel: 10, ..Limits::default() });
    /// assert_eq!(limits.fuel, 10);
    /// ```
    pub fn clamp_to(&mut self, maximum: &Limits) {
        self.fuel = self.fuel.min(maximum.fuel);
        self.memory = self.memory.min(maximum.memory);
        self.depth = self.depth.min(maximum.depth);
        self.compute = self.compute.min(maximum.compute);
        self.total = self.total.min(maximum.total);
        self.calls = self.calls.min(maximum.calls);
        self.parallel = self.parallel.min(maximum.parallel);
        self.tool = self.tool.min(maximum.tool);
        self.output = self.output.min(maximum.output);
        self.preview = [self.preview, maximum.preview].into_iter().flatten().min();
        self.program = self.program.min(maximum.program);
        self.session = self.session.min(maximum.session);
        self.bindings = self.bindings.min(maximum.bindings);
    }
}

/// Parses a size in bytes, such as `64MiB`. Errors refer to the text as `what`.
///
/// # Errors
/// Returns a sentence that describes the expected text.
///
/// ```
/// assert_eq!(lispbox::lang::parse_size("1KiB", "`--size`"), Ok(1024));
/// assert!(lispbox::lang::parse_size("much", "`--size`").is_err());
/// ```
pub fn parse_size(text: &str, what: &str) -> Result<u64, String> {
    read_amount(text, Unit::Bytes, what).map(|amount| amount as u64)
}

fn expected(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "a count such as `1000` or `1e7`",
        Unit::Bytes => "a size such as `64MiB`",
        Unit::Time => "a time such as `2s` or `500ms`",
    }
}

fn read_amount(text: &str, unit: Unit, what: &str) -> Result<f64, String> {
    parse_amount(text, unit).ok_or_else(|| format!("{what} takes {}, not `{text}`", expected(unit)))
}

fn parse_amount(text: &str, unit: Unit) -> Option<f64> {
    let text = text.trim();
    let digits =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_' | 'e' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let amount: f64 = number.replace('_', "").parse().ok()?;
    let factor = match (unit, suffix.trim().to_ascii_lowercase().as_str()) {
        (_, "") => 1.0,
        (Unit::Bytes, "b" | "bytes") => 1.0,
        (Unit::Bytes, "k" | "kb") => 1e3,
        (Unit::Bytes, "m" | "mb") => 1e6,
        (Unit::Bytes, "g" | "gb") => 1e9,
        (Unit::Bytes, "kib") => 1024.0,
        (Unit::Bytes, "mib") => 1048576.0,
        (Unit::Bytes, "gib") => 1073741824.0,
        (Unit::Time, "ms") => 1e-3,
        (Unit::Time, "s") => 1.0,
        (Unit::Time, "m" | "min") => 60.0,
        _ => return None,
    };
    let amount = amount * factor;
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        let (usual, mut read) = (Limits::default(), Limits { fuel: 0, memory: 0, ..Limits::default() });
        for (name, shown) in usual.shown() {
            assert_eq!(read.set(name, &shown), Ok(()), "{name} {shown}");
        }
        assert_eq!(read, usual);
    }

    #[test]
    fn amounts_have_units() {
        assert_eq!(parse_amount("2s", Unit::Time), Some(2.0));
        assert_eq!(parse_amount("250ms", Unit::Time), Some(0.25));
        assert_eq!(parse_amount("1e7", Unit::Count), Some(1e7));
        assert_eq!(parse_amount("1_000", Unit::Count), Some(1000.0));
        assert_eq!(parse_amount("64MiB", Unit::Bytes), Some(67108864.0));
        assert_eq!(parse_amount("64parsecs", Unit::Bytes), None);
        assert_eq!(parse_amount("-1", Unit::Count), None);
    }
}
