//! Values of the language. A [`Value`] is sixteen bytes, cheap to clone, `Send + Sync`, and free of reference cycles.
//!
//! `docs/values.md` explains the design. Collections share structure and are immutable once they are visible to a
//! program. Mutable state (atoms, delays, lazy cells, globals) lives in the session's heap and is
//! referred to by handle. Functions are data: code and captured values.

pub(crate) mod children;
pub(crate) mod columns;
pub(crate) mod compare;
pub(crate) mod decimal;
pub(crate) mod equal;
pub(crate) mod function;
pub(crate) mod large;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod matching;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod pattern;
pub(crate) mod places;
pub(crate) mod prefetch;
pub(crate) mod print;
pub(crate) mod quotient;
pub(crate) mod release;
pub(crate) mod sequence;
pub(crate) mod set;
pub(crate) mod shape;
pub(crate) mod simple;
pub(crate) mod spelling;
mod spellings;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod vector;
pub(crate) mod view;
pub(crate) mod walk;

use crate::error::Error;
#[doc(hidden)]
pub use crate::heap::Handle;
use crate::native::{Builtin, Native};
use bigdecimal::BigDecimal;
#[doc(hidden)]
pub use function::{Bound, Closure, ToolFunction};
pub use list::List;
pub use map::Map;
use num_bigint::BigInt;
pub use set::Set;
use std::sync::Arc;
pub use text::{Name, Text};
#[doc(hidden)]
pub use time::Period;
pub use time::Time;
pub use vector::Vector;

/// A value of the language.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, Value, World};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// let value = session.run("{:a [1 2.50M]}").eval::<Value>(&World::default()).unwrap().done().unwrap();
/// let Value::Map(map) = &value else { panic!("{value}") };
/// assert_eq!(map.field("a").map(ToString::to_string).as_deref(), Some("[1 2.50M]"));
/// ```
#[derive(Default)]
pub enum Value {
    /// `nil`
    #[default]
    Nil,
    /// `true` or `false`
    Bool(bool),
    /// A 64-bit integer
    Int(i64),
    /// A double
    Float(f64),
    /// A Unicode scalar
    Char(char),
    /// A string
    Str(Text),
    /// `:name`
    Keyword(Name),
    /// `name`
    Symbol(Name),
    /// A symbol with metadata: `^:private name`. A variant separate from `Symbol`, so that plain symbols stay small.
    Annotated(Arc<Annotated>),
    /// An integer of any size
    BigInt(Arc<BigInt>),
    /// An exact decimal: `1.50M`
    Decimal(Arc<BigDecimal>),
    /// A date, a time, or a duration
    Time(Arc<Time>),
    /// A list or a realised sequence
    List(Arc<List>),
    /// A vector
    Vector(Arc<Vector>),
    /// A map, or a record decoded from JSON
    Map(Arc<Map>),
    /// A set
    Set(Arc<Set>),
    /// A regular expression
    Regex(Arc<pattern::Pattern>),
    /// A function built into the language
    Builtin(&'static Builtin),
    /// A function that the embedder added to the language
    Native(Arc<Native>),
    /// A function made by `fn`
    Closure(Arc<Closure>),
    /// A partially applied builtin, as created by `partial` and `comp`
    Bound(Arc<Bound>),
    /// A downstream tool
    Tool(Arc<ToolFunction>),
    /// `#'name`: a reference to a definition by name, resolved on each use. Names of the session are plain; names of
    /// the language are qualified (`core/inc`).
    Var(Name),
    /// An atom, a volatile, a delay or another mutable cell, whose content is in the heap
    Cell(Arc<Handle>),
    /// A sequence that is computed on demand, whose content is in the heap
    Lazy(Arc<Handle>),
    /// An exception
    Exception(Arc<Error>),
    /// A value that terminates a reduction: `(reduced x)`
    Reduced(Arc<Reduced>),
}

/// A symbol and its metadata.
#[doc(hidden)]
pub struct Annotated {
    /// The symbol.
    pub name: Name,
    /// The map that `meta` returns.
    pub metadata: Arc<Map>,
}

/// The value inside `(reduced x)`. Exceptions also box their data and cause in it.
#[derive(Debug)]
#[doc(hidden)]
pub struct Reduced(pub Value);

impl Drop for Reduced {
    fn drop(&mut self) {
        release::release(std::mem::take(&mut self.0), release::DeferredDrop::Value);
    }
}

impl Clone for Value {
    /// Increments the reference count, then copies the sixteen bytes at once. A derived `clone` would store the tag and
    /// the payload separately, and a subsequent sixteen-byte load of the copy would stall because the processor cannot
    /// forward several stores to one load.
    #[inline]
    fn clone(&self) -> Value {
        use std::mem::forget;
        match self {
            Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Char(_) => {}
            Value::Str(Text::Short(_)) | Value::Builtin(_) => {}
            Value::Native(function) => forget(function.clone()),
            Value::Str(Text::Long(text)) => forget(text.clone()),
            Value::Str(Text::Marked(text)) => forget(text.clone()),
            Value::Keyword(name) | Value::Symbol(name) | Value::Var(name) => forget(name.clone()),
            Value::Annotated(symbol) => forget(symbol.clone()),
            Value::BigInt(number) => forget(number.clone()),
            Value::Decimal(number) => forget(number.clone()),
            Value::Time(time) => forget(time.clone()),
            Value::List(list) => forget(list.clone()),
            Value::Vector(vector) => forget(vector.clone()),
            Value::Map(map) => forget(map.clone()),
            Value::Set(set) => forget(set.clone()),
            Value::Regex(regex) => forget(regex.clone()),
            Value::Closure(closure) => forget(closure.clone()),
            Value::Bound(bound) => forget(bound.clone()),
            Value::Tool(tool) => forget(tool.clone()),
            Value::Cell(handle) | Value::Lazy(handle) => forget(handle.clone()),
            Value::Exception(error) => forget(error.clone()),
            Value::Reduced(inner) => forget(inner.clone()),
        }
        // SAFETY: every variant that owns something owns one counted reference. The `clone` and `forget` above have
        // incremented that count, which balances the decrement when the copy is dropped. All other variants are plain
        // bytes.
        unsafe { std::ptr::read(self) }
    }
}

impl Value {
    /// True for values that own no allocation and hold no reference count.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self, Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Char(_))
    }

    /// Assigns `value`. Skips the drop glue if the old value owns nothing.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: Value) {
        let old = std::mem::replace(self, value);
        if old.is_plain() {
            std::mem::forget(old);
        }
    }

    /// Creates a string.
    pub fn string(text: &str) -> Value {
        Value::Str(text.into())
    }

    /// Creates a keyword; `name` excludes the colon.
    pub fn keyword(name: &str) -> Value {
        Value::Keyword(name.into())
    }

    /// Creates a symbol.
    pub fn symbol(name: &str) -> Value {
        Value::Symbol(name.into())
    }

    /// Creates a vector of these items.
    pub fn vector(items: Vec<Value>) -> Value {
        Value::Vector(Arc::new(Vector::from(items)))
    }

    /// Creates a map entry, or a dotted pair as in other Lisps: a two-item vector whose `cdr` is its second item.
    pub fn pair(key: Value, value: Value) -> Value {
        Value::Vector(Arc::new(Vector::pair(key, value)))
    }

    /// Creates a list of these items.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Arc::new(List::from(items)))
    }

    /// Creates an integer in canonical form: `Int` if it fits into 64 bits, otherwise `BigInt`.
    pub fn integer(number: BigInt) -> Value {
        match i64::try_from(&number) {
            Ok(small) => Value::Int(small),
            Err(_) => Value::BigInt(Arc::new(number)),
        }
    }

    /// True for everything but `nil` and `false`.
    #[inline]
    pub fn is_truthy(&self) -> bool {
        self.touch();
        !matches!(self, Value::Nil | Value::Bool(false))
    }

    /// Records that something depends on the value, if it is a result that a rehearsal does not know.
    #[inline]
    pub(crate) fn touch(&self) {
        if let Value::Cell(cell) = self {
            cell.touch();
        }
    }

    /// True for `nil`.
    #[inline]
    pub fn is_nil(&self) -> bool {
        matches!(self, Value::Nil)
    }

    /// Returns the text of a string, or `None` for other values.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Returns the items of a list or vector that stores them contiguously, or `None` for other values.
    pub(crate) fn as_block(&self) -> Option<&[Value]> {
        match self {
            Value::List(list) => list.as_slice(),
            Value::Vector(vector) => vector.as_slice(),
            _ => None,
        }
    }

    /// Returns the name of a symbol, with or without metadata, or `None` for other values.
    pub fn as_symbol(&self) -> Option<&Name> {
        match self {
            Value::Symbol(name) => Some(name),
            Value::Annotated(symbol) => Some(&symbol.name),
            _ => None,
        }
    }

    /// Returns the name of a keyword or a symbol, or `None` for other values.
    pub fn as_name(&self) -> Option<&Name> {
        match self {
            Value::Keyword(name) => Some(name),
            other => other.as_symbol(),
        }
    }

    /// Returns the text of a string, a keyword or a symbol, or `None` for other values.
    pub(crate) fn as_text(&self) -> Option<&str> {
        self.as_str().or_else(|| self.as_name().map(Name::as_str))
    }

    /// True for functions, tools and vars. False for other callable values, such as keywords and collections.
    pub fn is_function(&self) -> bool {
        matches!(
            self,
            Value::Builtin(_) | Value::Native(_) | Value::Closure(_) | Value::Bound(_) | Value::Tool(_) | Value::Var(_)
        )
    }

    /// True for values that hold no other values directly. The content of a cell is in the heap, so cells are scalars.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self, Value::Cell(_) | Value::Regex(_)) || self.node().is_none()
    }

    /// Returns the address and reference count of the node that backs this value, if the value can hold or lead to
    /// other values or is equal only to itself.
    pub(crate) fn node(&self) -> Option<(usize, usize)> {
        fn of<T>(node: &Arc<T>) -> (usize, usize) {
            (Arc::as_ptr(node).addr(), Arc::strong_count(node))
        }
        Some(match self {
            Value::List(node) => of(node),
            Value::Vector(node) => of(node),
            Value::Map(node) => of(node),
            Value::Set(node) => of(node),
            Value::Closure(node) => of(node),
            Value::Bound(node) => of(node),
            Value::Cell(node) | Value::Lazy(node) => of(node),
            Value::Exception(node) => of(node),
            Value::Reduced(node) => of(node),
            Value::Annotated(node) => of(node),
            Value::Regex(node) => of(node),
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Str(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::BigInt(_)
            | Value::Decimal(_)
            | Value::Time(_)
            | Value::Builtin(_)
            | Value::Native(_)
            | Value::Tool(_)
            | Value::Var(_) => return None,
        })
    }

    /// Returns a readable name for the kind of this value, with its article: `a vector`.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::BigInt(_) => "a big integer",
            Value::Decimal(_) => "a decimal",
            Value::Time(time) => time.kind(),
            Value::Float(_) => "a double",
            Value::Char(_) => "a character",
            Value::Str(_) => "a string",
            Value::Keyword(_) => "a keyword",
            Value::Symbol(_) | Value::Annotated(_) => "a symbol",
            Value::List(_) => "a list",
            Value::Vector(_) => "a vector",
            Value::Map(_) => "a map",
            Value::Set(_) => "a set",
            Value::Regex(_) => "a regex",
            Value::Bound(bound) if bound.unbound_name().is_some() => "a name without a value",
            Value::Builtin(_) | Value::Native(_) | Value::Closure(_) | Value::Bound(_) => "a function",
            Value::Var(_) => "a var",
            Value::Tool(_) => "a tool",
            Value::Cell(handle) => handle.kind(),
            Value::Lazy(_) => "a lazy sequence",
            Value::Exception(_) => "an exception",
            Value::Reduced(_) => "a reduced value",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::string(value)
    }
}

const _: () = assert!(size_of::<Value>() == 16);
const _: () = assert!(size_of::<Result<Value, Box<u8>>>() == 16);
