//! Knowledge of the analysis about a value.

use crate::native::Builtin;
use crate::node::Group;
use crate::value::function::ToolFunction;
use crate::value::text::Name;
use std::sync::Arc;

/// The knowledge of a value. All functions that a value may hold, other than the value itself, have escaped.
#[derive(Clone)]
pub enum Known {
    /// The value of code that does not return, such as `recur`.
    Never,
    /// A function of the program or the session.
    Function(Function),
    /// A tool.
    Tool(Arc<ToolFunction>),
    /// A builtin.
    Builtin(&'static Builtin),
    /// A var.
    Var(Name),
    /// A keyword, which is a function that calls nothing.
    Keyword,
    /// An integer.
    Integer(i64),
    /// Any value that is not a function or has escaped. If it is a collection, it has at most `most` items.
    Other { most: Option<u64>, depth: Depth },
}

/// The extent to which a value is free of lazy sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// It may be lazy.
    Lazy,
    /// It is no lazy sequence, but may hold some.
    Realised,
    /// It is data: neither it nor what it holds is lazy or a function.
    Data,
}

/// A function: its code and what is known of its captures.
#[derive(Clone)]
pub struct Function {
    pub group: Arc<Group>,
    pub index: u32,
    pub captures: Arc<[Known]>,
}

impl Known {
    /// Nothing is known.
    pub const ANY: Known = Known::Other { most: None, depth: Depth::Lazy };

    /// Data of any size.
    pub const DATA: Known = Known::Other { most: None, depth: Depth::Data };

    /// Returns whether the value is known to be a function.
    pub fn is_function(&self) -> bool {
        matches!(self, Known::Function(_) | Known::Tool(_) | Known::Builtin(_) | Known::Var(_) | Known::Keyword)
    }

    /// Returns the most items that it has as a collection.
    pub fn most(&self) -> Option<u64> {
        match self {
            Known::Never => Some(0),
            Known::Other { most, .. } => *most,
            _ => None,
        }
    }

    pub fn depth(&self) -> Depth {
        match self {
            Known::Never | Known::Keyword | Known::Integer(_) => Depth::Data,
            Known::Other { depth, .. } => *depth,
            _ => Depth::Lazy,
        }
    }

    /// Returns what is known of an item of the collection.
    pub fn item(&self) -> Known {
        if self.depth() == Depth::Data { Known::DATA } else { Known::ANY }
    }
}
