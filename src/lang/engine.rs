//! Engines: the language with the functions that an embedder adds to it.

use crate::builtin;
use crate::embed::{Function, FunctionEntry, RegisterError, canonical_name, split_name};
use crate::machine::Stacks;
use crate::meter::{self, Residence, Watch};
use crate::registry::Registry;
use crate::session::Session;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// State shared by all sessions: the registry of builtins, and the pool of evaluation stacks.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
/// use std::thread;
///
/// let mut builder = Engine::builder();
/// builder.function("text/shout", |text: String| text.to_uppercase());
/// let engine = builder.build().unwrap();
/// let other = engine.clone();
/// let there = thread::spawn(move || other.session().run("(text/shout \"a\")").eval::<String>(&World::default()));
/// let here = engine.session().run("(text/shout \"b\")").eval::<String>(&World::default());
/// assert_eq!((here.unwrap().done().unwrap(), there.join().unwrap().unwrap().done().unwrap()), ("B".into(), "A".into()));
/// ```
pub struct Engine {
    pub(crate) registry: Arc<Registry>,
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) memory_counted: bool,
    pub(crate) watch: Option<Arc<Watch>>,
    /// The names of all functions that have a namespace, in canonical spelling, collected on first use.
    functions: OnceLock<HashSet<String>>,
}

/// The reason why an engine could not be built.
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::Engine;
///
/// let mut builder = Engine::builder();
/// builder.function("double", |n: i64| n * 2);
/// let error = builder.build().unwrap_err();
/// assert!(error.to_string().contains("needs a name with a namespace, such as `host/double`"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineError(String);

impl std::fmt::Display for EngineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for EngineError {}

/// Builds an [`Engine`].
///
/// ```
/// # #[global_allocator]
/// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
/// use lispbox::lang::{Engine, World};
///
/// let mut builder = Engine::builder();
/// builder.function("my/double", |n: i64| n * 2).doc("Doubles a number.").arguments("[n]");
/// let mut session = builder.build().unwrap().session();
/// assert_eq!(session.run("(my/double 4)").eval::<i64>(&World::default()).unwrap().done(), Some(8));
/// ```
#[derive(Default)]
pub struct EngineBuilder {
    unlimited_memory: bool,
    is_plain: bool,
    stacks: Option<Arc<Stacks>>,
    residence: Option<Box<dyn Residence>>,
    functions: Vec<FunctionEntry>,
}

impl EngineBuilder {
    /// Disables the memory limit, for a process that does not allocate through
    /// [`Metered`](crate::Metered). Without this call, [`build`](EngineBuilder::build) fails in such a
    /// process.
    pub fn unlimited_memory(mut self) -> Self {
        self.unlimited_memory = true;
        self
    }

    /// Disables the inlining of common builtins: the evaluator walks the tree node by node. Only the speed differs. For
    /// tests that compare the two modes.
    #[doc(hidden)]
    pub fn plain_walk(mut self) -> Self {
        self.is_plain = true;
        self
    }

    /// Adds a closure to the language, as a function of a name with a namespace. Arguments and result are converted by
    /// serde; the types of the closure decide what it accepts ([`Function`]). The function is documented, searchable,
    /// checked for arity, serialized by name and called like any builtin. A call takes a tenth of the time of a tool
    /// call: it works on values, without JSON and without a record in the report.
    ///
    /// It runs on the evaluation's thread and within its account: its allocations count towards the memory limit, and
    /// those that it releases before it returns count as well. A long-running function takes `&mut Machine` as its first
    /// parameter and calls [`Machine::charge`](crate::Machine::charge) as it proceeds, with one step per ten nanoseconds
    /// or so. State that outlives the call is allocated [outside](crate::outside) of the account. An operation that
    /// blocks, or whose effects may need approval, should be a tool instead.
    ///
    /// A panic in it is the error `FunctionPanic` of that call.
    ///
    /// ```
    /// # #[global_allocator]
    /// # static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);
    /// use lispbox::lang::{Engine, World};
    ///
    /// let rate = 3;
    /// let mut builder = Engine::builder();
    /// builder.function("my/cost", move |weight: i64| weight * rate).arguments("[weight]").doc("The cost in cents.");
    /// let mut session = builder.build().unwrap().session();
    /// let outcome = session.run("(map my/cost [1 2])").eval::<Vec<i64>>(&World::default()).unwrap();
    /// assert_eq!(outcome.done(), Some(vec![3, 6]));
    /// ```
    pub fn function<Kind, F: Function<Kind>>(&mut self, name: &str, function: F) -> &mut FunctionEntry {
        self.functions.push(FunctionEntry::new(name, function));
        let last = self.functions.len() - 1;
        &mut self.functions[last]
    }

    /// Adds a closure to the language, as [`function`](EngineBuilder::function) does.
    ///
    /// # Errors
    /// Returns an error if the name is not of the form `namespace/function`, if a program cannot write it, or if a function
    /// of that name was added, in any spelling that means the same. [`build`](EngineBuilder::build) refuses the names of
    /// the language's own functions.
    ///
    /// ```
    /// use lispbox::lang::{Engine, RegisterError};
    ///
    /// let mut builder = Engine::builder();
    /// assert!(builder.try_function("my/double", |n: i64| n * 2).is_ok());
    /// let again = builder.try_function("my/Double", |n: i64| n * 2).err();
    /// assert_eq!(again, Some(RegisterError::Taken("my/Double".to_owned())));
    /// ```
    pub fn try_function<Kind, F: Function<Kind>>(
        &mut self,
        name: &str,
        function: F,
    ) -> Result<&mut FunctionEntry, RegisterError> {
        let (namespace, base) = split_name(name).ok_or_else(|| RegisterError::Name(name.to_owned()))?;
        let canonical = canonical_name(namespace, base);
        if self.functions.iter().any(|function| function.canonical() == canonical) {
            return Err(RegisterError::Taken(name.to_owned()));
        }
        Ok(self.function(name, function))
    }

    /// Uses this pool of stacks for evaluations.
    #[doc(hidden)]
    pub fn stacks(mut self, stacks: Arc<Stacks>) -> Self {
        self.stacks = Some(stacks);
        self
    }

    /// Enforces a bound on the growth of the process: an evaluation ends, with the memory limit, when the resident set
    /// grows by more than one and a half times the limit plus 16 MiB, even if less memory is live. Without this call,
    /// the resident set is not monitored.
    #[doc(hidden)]
    pub fn residence(mut self, residence: impl Residence + 'static) -> Self {
        self.residence = Some(Box::new(residence));
        self
    }

    /// Builds the engine.
    ///
    /// # Errors
    /// Returns an error if memory limits cannot be enforced, because the metering allocator is not installed and
    /// [`unlimited_memory`](EngineBuilder::unlimited_memory) was not called, or if the name of a host function is not
    /// available.
    pub fn build(self) -> Result<Arc<Engine>, EngineError> {
        let memory_counted = meter::is_installed();
        if !memory_counted && !self.unlimited_memory {
            return Err(EngineError(
                "memory limits cannot be enforced: install `lispbox::lang::Metered` as the global allocator, or call `unlimited_memory()`".to_string(),
            ));
        }
        let registry = Registry::new(&builtin::LIBRARY).map_err(EngineError)?;
        let mut registry = if self.is_plain { registry.plain() } else { registry };
        for function in self.functions {
            registry.add(function.native().map_err(EngineError)?).map_err(EngineError)?;
        }
        Ok(Arc::new(Engine {
            registry: Arc::new(registry),
            stacks: self.stacks.unwrap_or_default(),
            memory_counted: memory_counted && !self.unlimited_memory,
            watch: self.residence.filter(|_| !self.unlimited_memory).map(|residence| Arc::new(Watch::new(residence))),
            functions: OnceLock::new(),
        }))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// Returns a builder for an engine. Memory limits require a process that allocates through
    /// [`Metered`](crate::Metered).
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Creates a session without definitions.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(self.clone())
    }

    /// Returns the names of its functions that have a namespace, those of the language too, in canonical spelling.
    pub(crate) fn functions(&self) -> &HashSet<String> {
        let named = |name: &str| name.split_once('/').map(|(namespace, base)| canonical_name(namespace, base));
        self.functions.get_or_init(|| self.registry.names().filter_map(named).collect())
    }

    /// Returns the builtins of the language.
    #[doc(hidden)]
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}
