//! The workloads, and their programs in each language.

/// A workload; README.md describes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// `W1`: naive recursion.
    Fib,
    /// `W2`: a loop of five million iterations.
    Loop,
    /// `W3a`: mails filtered, grouped and sorted, from JSON text.
    MailsFromText,
    /// `W3b`: the same as `W3a`, from existing values.
    MailsFromValues,
    /// `W4`: the most frequent words.
    Words,
    /// `W5a`: a new process for `1 + 1`.
    Process,
    /// `W5b`: a new environment for `1 + 1`.
    Environment,
    /// `W6`: calls of a host function.
    HostCalls,
}

/// All workloads, in the order of the table.
pub const ALL: [Workload; 8] = [
    Workload::Fib,
    Workload::Loop,
    Workload::MailsFromText,
    Workload::MailsFromValues,
    Workload::Words,
    Workload::Process,
    Workload::Environment,
    Workload::HostCalls,
];

impl Workload {
    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Fib => "W1",
            Workload::Loop => "W2",
            Workload::MailsFromText => "W3a",
            Workload::MailsFromValues => "W3b",
            Workload::Words => "W4",
            Workload::Process => "W5a",
            Workload::Environment => "W5b",
            Workload::HostCalls => "W6",
        }
    }

    /// The title in the table.
    pub fn title(self) -> &'static str {
        match self {
            Workload::Fib => "fib(27)",
            Workload::Loop => "loop, 5M rounds",
            Workload::MailsFromText => "100k mails from JSON text",
            Workload::MailsFromValues => "100k mails from values",
            Workload::Words => "words of 200k lines",
            Workload::Process => "process start to 1 + 1",
            Workload::Environment => "fresh environment, 1 + 1",
            Workload::HostCalls => "1M host calls with a map",
        }
    }

    /// True for workloads with a variant in Rust over the values of lispbox.
    pub fn is_done_by_hand(self) -> bool {
        use Workload::{HostCalls, MailsFromText, MailsFromValues, Words};
        matches!(self, MailsFromText | MailsFromValues | Words | HostCalls)
    }

    /// Finds a workload by name, ignoring case.
    pub fn named(name: &str) -> Option<Workload> {
        ALL.into_iter().find(|workload| workload.name().eq_ignore_ascii_case(name))
    }
}

/// A language of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// lispbox.
    Lisp,
    /// CPython and monty.
    Python,
    /// rhai.
    Rhai,
    /// starlark.
    Starlark,
    /// Rust over the values of lispbox: the program calls one function that does all the work.
    ByHand,
}

macro_rules! written {
    ($language:expr, $name:literal) => {
        match $language {
            Language::Lisp | Language::ByHand => include_str!(concat!("../programs/", $name, ".lisp")),
            Language::Python => include_str!(concat!("../programs/", $name, ".py")),
            Language::Rhai => include_str!(concat!("../programs/", $name, ".rhai")),
            Language::Starlark => include_str!(concat!("../programs/", $name, ".star")),
        }
    };
}

impl Language {
    /// The program of a workload.
    pub fn program(self, workload: Workload) -> &'static str {
        match workload {
            Workload::MailsFromText | Workload::MailsFromValues if self == Language::ByHand => "(by-hand/mails data)",
            Workload::Words if self == Language::ByHand => "(by-hand/words text)",
            Workload::HostCalls if self == Language::ByHand => "(by-hand/calls)",
            Workload::Fib => written!(self, "w1"),
            Workload::Loop => written!(self, "w2"),
            Workload::MailsFromText | Workload::MailsFromValues => written!(self, "w3"),
            Workload::Words => written!(self, "w4"),
            Workload::Process | Workload::Environment if matches!(self, Language::Lisp | Language::ByHand) => "(+ 1 1)",
            Workload::Process | Workload::Environment => "1 + 1",
            Workload::HostCalls => written!(self, "w6"),
        }
    }
}
