//! The quantities that grow in the second table, which is about lispbox alone.

/// The quantity that grows while all others are constant.
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
    /// Tools of the host, while a program repeatedly calls one of them.
    Tools,
    /// Tools of the host in fresh environments, each running one small program that calls none.
    ToolsUnused,
    /// Tools of the host in fresh environments, each running one program that calls one of them.
    ToolsUsed,
    /// Sessions in memory, evaluating in turns.
    Sessions,
}

/// All of them, in the order of the table.
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
    /// The short name.
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

    /// The title in the table.
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

    /// The unit by which the time is divided.
    pub fn unit(self) -> &'static str {
        match self {
            Growth::Calls | Growth::Tools => "call",
            Growth::Mails | Growth::Senders => "mail",
            Growth::Lines => "line",
            Growth::ToolsUnused | Growth::ToolsUsed => "environment",
            Growth::Sessions => "evaluation",
        }
    }

    /// The unit by which the memory is divided, if it is reported.
    pub fn holder(self) -> Option<&'static str> {
        match self {
            Growth::Calls | Growth::Tools | Growth::ToolsUnused | Growth::ToolsUsed => None,
            Growth::Mails | Growth::Senders => Some("mail"),
            Growth::Lines => Some("line"),
            Growth::Sessions => Some("session"),
        }
    }

    /// The measured sizes.
    pub fn sizes(self) -> [usize; 3] {
        match self {
            Growth::Calls => [1 << 20, 1 << 21, 1 << 22],
            Growth::Mails => [100_000, 200_000, 400_000],
            Growth::Senders => [500, 1_000, 2_000],
            Growth::Lines => [200_000, 400_000, 800_000],
            Growth::Tools | Growth::ToolsUnused | Growth::ToolsUsed | Growth::Sessions => [10, 100, 1_000],
        }
    }

    /// Finds a quantity by name, ignoring case.
    pub fn named(name: &str) -> Option<Growth> {
        ALL.into_iter().find(|growth| growth.name().eq_ignore_ascii_case(name))
    }
}
