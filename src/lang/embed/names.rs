//! Names of tools and functions, in the spellings that programs can use.

use crate::form::{Form, FormKind};
use crate::value::names::canonical_tool;
use std::fmt;

/// The reason why a tool or a function is not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is not `server/tool` or `namespace/function`, or a program cannot write it.
    Name(String),
    /// The name is taken, perhaps in another spelling that means the same.
    Taken(String),
    /// The tool of that name takes a type that is read from something else than a map of arguments, of that kind, so that
    /// each call would fail.
    Arguments(String, &'static str),
    /// A tool of that name is asynchronous, and this thread is not in a tokio runtime, which would run it.
    #[cfg(feature = "tokio")]
    NoRuntime(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Name(name) => {
                write!(
                    f,
                    "expected a name with two parts that a program can write, such as `mail/search`, got `{name}`"
                )
            }
            RegisterError::Taken(name) => write!(f, "the name `{name}` is taken; give it another name"),
            RegisterError::Arguments(name, kind) => write!(
                f,
                "`{name}` takes {kind}, and arguments are a map of names and values: let it take a struct with a field for \
                 each argument, or `NoArguments`"
            ),
            #[cfg(feature = "tokio")]
            RegisterError::NoRuntime(name) => write!(
                f,
                "`{name}` is an asynchronous tool, which runs on the tokio runtime that it is added in: add it within one, \
                 as in `runtime.block_on(async {{ … }})` or after `let _inside = runtime.enter();`"
            ),
        }
    }
}

impl std::error::Error for RegisterError {}

/// A name that a program cannot use for a definition.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, SessionError};
///
/// let mut session = Engine::builder().build().unwrap().session();
/// assert!(matches!(session.set("1 2", &0), Err(SessionError::Name(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` cannot be defined: expected a plain name, such as `mails`", self.0)
    }
}

impl std::error::Error for NameError {}

/// Splits a name of two parts; `None` if it has not, or if a program cannot write it.
pub(crate) fn split_name(name: &str) -> Option<(&str, &str)> {
    let parts = name.split_once('/')?;
    (is_symbol(name) && !parts.0.is_empty() && !parts.1.is_empty() && !parts.1.contains('/')).then_some(parts)
}

/// Returns the one spelling of a name of two parts that all others mean.
pub(crate) fn canonical_name(server: &str, tool: &str) -> String {
    format!("{}/{}", canonical_tool(server), canonical_tool(tool))
}

/// Returns whether the reader reads a text as that symbol.
pub(super) fn is_symbol(name: &str) -> bool {
    let read = crate::reader::read(name);
    matches!(read.as_deref(), Ok([Form { kind: FormKind::Symbol(read), .. }]) if read == name)
}

/// Checks that a text is a name without a namespace.
pub(super) fn check_name(name: &str) -> Result<(), NameError> {
    let is_plain = is_symbol(name) && !name.contains('/') && !crate::expand::SPECIAL_FORMS.contains(&name);
    if is_plain { Ok(()) } else { Err(NameError(name.chars().take(80).collect())) }
}
