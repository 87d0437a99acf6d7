//! The error of a conversion, with the place in the value.

use crate::error::path::{self, Step};
use crate::error::{Signal, describe};
use crate::value::Value;
use std::fmt;

/// The reason why a value does not fit a Rust type, or a Rust value has no counterpart, with the place in the value.
#[derive(Debug)]
pub struct ConvertError(Box<Cause>);

/// Boxed, so that results of conversions are as small as values.
#[derive(Debug)]
struct Cause {
    message: String,
    /// The keys and indices that lead to the place, innermost first.
    path: Vec<Step<'static>>,
    /// The error or halt that stopped the conversion, if it was not the conversion's own.
    signal: Option<Signal>,
    /// The field that the place lacks, if that is the reason.
    missing: Option<&'static str>,
    is_panic: bool,
}

impl ConvertError {
    pub(crate) fn new(message: impl Into<String>) -> ConvertError {
        let cause = Cause { message: message.into(), path: Vec::new(), signal: None, missing: None, is_panic: false };
        ConvertError(Box::new(cause))
    }

    /// Reports that two keys of a map have the same meaning, so that one entry would be lost.
    pub(crate) fn twice(key: &str) -> ConvertError {
        ConvertError::new(format!("two keys of the map mean `{key}`"))
    }

    /// Reports that another kind of value was expected.
    pub(crate) fn expected(what: &str, got: &Value) -> ConvertError {
        ConvertError::new(format!("expected {what}, got {}", describe(got)))
    }

    /// Reports that computing a part of the value raised an error, or exceeded a limit.
    pub(crate) fn raised(signal: Signal, value: &Value) -> ConvertError {
        let message = format!("{} cannot be computed", value.kind());
        let mut error = ConvertError::new(message);
        error.0.signal = Some(signal);
        error
    }

    /// Reports that the code of a type, which is the embedder's, has panicked.
    pub(crate) fn panicked(of: &str, message: &str) -> ConvertError {
        let mut error = ConvertError::new(format!("the code that converts `{of}` panicked: {message}"));
        error.0.is_panic = true;
        error
    }

    /// Returns whether the code of the type has panicked.
    pub(crate) fn is_panic(&self) -> bool {
        self.0.is_panic
    }

    /// Returns the error or halt that stopped the conversion, or the error of the conversion itself.
    pub(crate) fn into_signal(mut self) -> Result<Signal, ConvertError> {
        self.0.signal.take().ok_or(self)
    }

    /// Returns whether an error or halt stopped the conversion that is not its own.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.signal.is_some()
    }

    /// Returns the message without the place.
    pub(crate) fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the field that the place lacks, if that is the reason.
    pub(crate) fn missing(&self) -> Option<&'static str> {
        self.0.missing
    }

    pub(crate) fn at_key(mut self, key: &str) -> ConvertError {
        self.0.path.push(Step::Key(key.to_owned().into()));
        self
    }

    pub(crate) fn at_index(mut self, index: usize) -> ConvertError {
        self.0.path.push(Step::Index(index));
        self
    }

    /// Returns the place in the value, such as `mails[3].size`; empty for the value itself.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    /// use std::collections::HashMap;
    ///
    /// let mut session = Engine::builder().build().unwrap().session();
    /// let result = session.run("{:sizes [1 \"two\"]}").eval::<HashMap<String, Vec<u64>>>(&World::default());
    /// let message = result.unwrap_err().to_string();
    /// assert!(message.ends_with("at sizes[1]: expected an integer, got \"two\" (a string)"), "{message}");
    /// ```
    pub fn place(&self) -> String {
        path::written(self.0.path.iter().rev())
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        if !place.is_empty() {
            write!(f, "at {place}: ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ConvertError {}

impl serde::de::Error for ConvertError {
    fn custom<T: fmt::Display>(message: T) -> ConvertError {
        ConvertError::new(message.to_string())
    }

    fn missing_field(field: &'static str) -> ConvertError {
        let mut error = ConvertError::new(format!("missing field `{field}`"));
        error.0.missing = Some(field);
        error
    }
}

impl serde::ser::Error for ConvertError {
    fn custom<T: fmt::Display>(message: T) -> ConvertError {
        ConvertError::new(message.to_string())
    }
}

impl From<Signal> for ConvertError {
    fn from(signal: Signal) -> ConvertError {
        let mut error = ConvertError::new("the evaluation ended");
        error.0.signal = Some(signal);
        error
    }
}
