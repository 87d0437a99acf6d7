//! Functions that an embedder adds to the language as closures.

use super::names::canonical_name;
use crate::convert::{self, ConvertError};
use crate::error::{Error, Outcome, Signal};
use crate::machine::Machine;
use crate::native::{ArityRange, Description, Native, NativeRun};
use crate::value::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A closure that can be a function of the language: up to eight parameters of types that serde deserializes, and a
/// result that serde serializes, or a [`Result`] of it and an [`Error`] or [`Signal`]. The first parameter may be
/// `&mut Machine`.
///
/// The parameter `Kind` only tells the forms of closures apart; it is inferred.
pub trait Function<Kind>: Send + Sync + 'static {
    /// The number of arguments.
    const COUNT: usize;

    /// Calls the closure with the values, which are converted.
    ///
    /// # Errors
    /// Returns a `TypeError` if a value does not fit its parameter, and what the closure returns.
    fn invoke(&self, machine: &mut Machine, arguments: &mut [Value]) -> Result<Value, Signal>;
}

/// A result of a closure; `Kind` tells values from results that may be errors.
trait Returned<Kind> {
    fn returned(self, machine: &mut Machine) -> Outcome<Value>;
}

/// The kind of a closure that returns a value.
pub struct Plain;

/// The kind of a closure that returns a value or an error of type `E`.
pub struct Fallible<E>(std::marker::PhantomData<E>);

/// The kind of a closure whose parameters are all arguments.
pub struct OnValues;

/// The kind of a closure whose first parameter is the machine.
pub struct OnMachine;

impl<T: Serialize> Returned<Plain> for T {
    #[inline]
    fn returned(self, machine: &mut Machine) -> Outcome<Value> {
        convert::to_value(machine, &self).map_err(|error| unfit(error, "the result"))
    }
}

impl<T: Serialize, E: Into<Signal>> Returned<Fallible<E>> for Result<T, E> {
    #[inline]
    fn returned(self, machine: &mut Machine) -> Outcome<Value> {
        Returned::<Plain>::returned(self.map_err(Into::into)?, machine)
    }
}

/// Converts the argument at that position.
#[inline]
fn argument<T: DeserializeOwned>(machine: &mut Machine, arguments: &mut [Value], at: usize) -> Outcome<T> {
    let value = std::mem::take(&mut arguments[at]);
    convert::from_value(machine, &value).map_err(|error| unfit(error, &format!("argument {}", at + 1)))
}

#[cold]
fn unfit(error: ConvertError, what: &str) -> Signal {
    match error.into_signal() {
        Ok(signal) => signal,
        Err(error) => Error::of_argument(format!("{what}: {error}")).into(),
    }
}

macro_rules! functions {
    ($($count:literal ($($parameter:ident $at:literal),*);)*) => {
        $(
            impl<F, R, Kind, $($parameter),*> Function<(OnValues, Kind, R, ($($parameter,)*))> for F
            where
                F: Fn($($parameter),*) -> R + Send + Sync + 'static,
                R: Returned<Kind>,
                $($parameter: DeserializeOwned,)*
            {
                const COUNT: usize = $count;

                #[allow(unused_variables, reason = "a closure without parameters uses neither")]
                fn invoke(&self, machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
                    let result = self($(argument::<$parameter>(machine, arguments, $at)?),*);
                    result.returned(machine)
                }
            }

            impl<F, R, Kind, $($parameter),*> Function<(OnMachine, Kind, R, ($($parameter,)*))> for F
            where
                F: Fn(&mut Machine, $($parameter),*) -> R + Send + Sync + 'static,
                R: Returned<Kind>,
                $($parameter: DeserializeOwned,)*
            {
                const COUNT: usize = $count;

                #[allow(unused_variables, reason = "a closure without parameters uses neither")]
                #[allow(non_snake_case, reason = "one variable for each type")]
                fn invoke(&self, machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
                    $(let $parameter = argument::<$parameter>(machine, arguments, $at)?;)*
                    let result = self(machine, $($parameter),*);
                    result.returned(machine)
                }
            }
        )*
    };
}

functions! {
    0 ();
    1 (A 0);
    2 (A 0, B 1);
    3 (A 0, B 1, C 2);
    4 (A 0, B 1, C 2, D 3);
    5 (A 0, B 1, C 2, D 3, E 4);
    6 (A 0, B 1, C 2, D 3, E 4, G 5);
    7 (A 0, B 1, C 2, D 3, E 4, G 5, H 6);
    8 (A 0, B 1, C 2, D 3, E 4, G 5, H 6, I 7);
}

/// A function while it is added with [`EngineBuilder::function`](crate::EngineBuilder::function).
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let mut builder = Engine::builder();
/// builder
///     .function("text/cut", |text: String, most: usize| text.chars().take(most).collect::<String>())
///     .doc("Returns the beginning of a text.")
///     .arguments("[text most]")
///     .example("(text/cut \"hello\" 2)", "\"he\"");
/// let mut session = builder.build().unwrap().session();
/// let text = session.overview(Some("text/cut"), &World::default());
/// assert!(text.contains("Returns the beginning of a text."), "{text}");
/// ```
pub struct FunctionEntry {
    name: String,
    arguments: String,
    count: usize,
    doc: String,
    examples: Vec<(String, String)>,
    run: Box<NativeRun>,
}

impl FunctionEntry {
    pub(crate) fn new<Kind, F: Function<Kind>>(name: &str, function: F) -> FunctionEntry {
        const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
        FunctionEntry {
            name: name.to_owned(),
            arguments: format!("[{}]", NAMES[..F::COUNT].join(" ")),
            count: F::COUNT,
            doc: String::new(),
            examples: Vec::new(),
            run: Box::new(move |machine, arguments| function.invoke(machine, arguments)),
        }
    }

    /// Returns its name in the spelling by which names are compared.
    pub(crate) fn canonical(&self) -> String {
        let (namespace, base) = self.name.split_once('/').unwrap_or(("", &self.name));
        canonical_name(namespace, base)
    }

    /// Sets the documentation that `(doc name)` and searches show; the first line is a summary.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut builder = Engine::builder();
    /// builder.function("my/double", |n: i64| n * 2).doc("Doubles a number.");
    /// assert!(builder.build().is_ok());
    /// ```
    pub fn doc(&mut self, text: &str) -> &mut FunctionEntry {
        text.clone_into(&mut self.doc);
        self
    }

    /// Names the arguments in the documentation and in messages: `[text options]`.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut builder = Engine::builder();
    /// builder.function("my/double", |n: i64| n * 2).arguments("[n]");
    /// assert!(builder.build().is_ok());
    /// ```
    pub fn arguments(&mut self, list: &str) -> &mut FunctionEntry {
        list.clone_into(&mut self.arguments);
        self
    }

    /// Adds an example to the documentation: a program and its output.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::Engine;
    ///
    /// let mut builder = Engine::builder();
    /// builder.function("my/double", |n: i64| n * 2).example("(my/double 2)", "4");
    /// assert!(builder.build().is_ok());
    /// ```
    pub fn example(&mut self, program: &str, prints: &str) -> &mut FunctionEntry {
        self.examples.push((program.to_owned(), prints.to_owned()));
        self
    }

    /// Creates the function.
    ///
    /// # Errors
    /// Returns a message if the list of arguments does not name each of them.
    pub(crate) fn native(self) -> Result<Native, String> {
        let FunctionEntry { name, arguments, count, doc, examples, run } = self;
        let named = ArityRange::read(&[&arguments]);
        if !named.accepts(count) || named.accepts(count + 1) {
            let names = if count == 1 { "1 name".to_owned() } else { format!("{count} names") };
            return Err(format!("the arguments of `{name}` need {names} in brackets, got `{arguments}`"));
        }
        Ok(Native::new(Description { name, arguments, doc, examples }, run))
    }
}
