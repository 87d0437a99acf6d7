//! What grows in the second table, which is about lispbox alone.

/// What grows while the rest stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Calls of a function that calls itself twice.
    Calls,
    /// Mails of 500 senders, from values.
    Mails,
    /// Senders of 100,000 mails, from values.
    Senders,
    /// Lines whose words are counted.
    Lines,
    /// Tools that the host offers, while a program calls one of them again and again.
    Tools,
    /// Tools that the host offers to fresh environments, each for one small program that calls none.
    ToolsUnused,
    /// Tools that the host offers to fresh environments, each for one program that calls one of them.
    ToolsUsed,
    /// Sessions that are held side by side, evaluating in turns.
    Sessions,
}

/// All of them in the order of the table.
pub const ALL: [Growth; 8] = [
    Growth::Calls,
    Growth::Mails,
    Growth::Senders,
    Growth::Lines,
    Growth::Tools,
    Growth::ToolsUnused,
    Growth::ToolsUsed,
    Growth::Sessions,
];

impl Growth {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Growth::Calls => "calls",
            Growth::Mails => "mails",
            Growth::Senders => "senders",
            Growth::Lines => "lines",
            Growth::Tools => "tools",
            Growth::ToolsUnused => "tools-unused",
            Growth::ToolsUsed => "tools-used",
            Growth::Sessions => "sessions",
        }
    }

    /// What the table says of it.
    pub fn title(self) -> &'static str {
        match self {
            Growth::Calls => "calls of a recursive function (as W1)",
            Growth::Mails => "mails of 500 senders (W3b)",
            Growth::Senders => "senders of 100,000 mails (W3b)",
            Growth::Lines => "lines of words (W4)",
            Growth::Tools => "tools offered, 100,000 calls of the last",
            Growth::ToolsUnused => "tools offered, `1 + 1` in a fresh environment",
            Growth::ToolsUsed => "tools offered, a call of the last in a fresh environment",
            Growth::Sessions => "sessions held, evaluating in turns",
        }
    }

    /// What the time is divided by.
    pub fn unit(self) -> &'static str {
        match self {
            Growth::Calls | Growth::Tools => "call",
            Growth::Mails | Growth::Senders => "mail",
            Growth::Lines => "line",
            Growth::ToolsUnused | Growth::ToolsUsed => "environment",
            Growth::Sessions => "evaluation",
        }
    }

    /// What the memory is divided by, where it is told at all.
    pub fn holder(self) -> Option<&'static str> {
        match self {
            Growth::Calls | Growth::Tools | Growth::ToolsUnused | Growth::ToolsUsed => None,
            Growth::Mails | Growth::Senders => Some("mail"),
            Growth::Lines => Some("line"),
            Growth::Sessions => Some("session"),
        }
    }

    /// The sizes that are measured.
    pub fn sizes(self) -> [usize; 3] {
        match self {
            Growth::Calls => [1 << 20, 1 << 21, 1 << 22],
            Growth::Mails => [100_000, 200_000, 400_000],
            Growth::Senders => [500, 1_000, 2_000],
            Growth::Lines => [200_000, 400_000, 800_000],
            Growth::Tools | Growth::ToolsUnused | Growth::ToolsUsed | Growth::Sessions => [10, 100, 1_000],
        }
    }

    /// The growth of that name, whatever its case.
    pub fn named(name: &str) -> Option<Growth> {
        ALL.into_iter().find(|growth| growth.name().eq_ignore_ascii_case(name))
    }
}
