//! Validation of arguments under a budget.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::expansion::{COLLECTING, Graph, Unchecked, WORK};
use super::nullable;
use super::patterns::{AUTOMATON, Patterns};

/// The compiled schema of a tool's arguments.
pub(super) struct Schema {
    validator: Validator,
    graph: Graph,
    bytes: u64,
    /// The patterns that are left out because the validator cannot match them.
    pub(super) unsupported: Vec<String>,
}

/// Size limit of the validator's lazy DFA cache for a pattern, in bytes.
const PATTERN_CACHE: usize = 64 << 10;

impl Schema {
    /// Compiles a schema of bounded size. Nothing is fetched over the network. Patterns that cannot be matched are
    /// left out.
    ///
    /// # Errors
    /// Returns the reason if arguments are not validated with it.
    pub(super) fn of(schema: &Value) -> Result<Schema, Unchecked> {
        let nullable = nullable::with_null(schema);
        let schema = nullable.as_ref().unwrap_or(schema);
        let patterns = Patterns::of(schema)?;
        let (supported, unsupported) = match patterns.without_unsupported(schema) {
            Some((supported, unsupported)) => (Cow::Owned(supported), unsupported),
            None => (Cow::Borrowed(schema), Vec::new()),
        };
        let graph = Graph::of(&supported, &patterns)?;
        let validator = jsonschema::options()
            // Schemas come from servers, so their patterns must be matched in linear time. The validator builds
            // several automata for a pattern, which may differ a little in size from the measured one.
            .with_pattern_options(PatternOptions::regex().size_limit(2 * AUTOMATON).dfa_size_limit(PATTERN_CACHE))
            .should_validate_formats(false)
            .build(&supported)
            .map_err(|problem| Unchecked::Unreadable(problem.to_string().chars().take(300).collect()))?;
        let bytes = graph.bytes() + patterns.bytes();
        Ok(Schema { validator, graph, bytes, unsupported })
    }

    /// Checks that a call without arguments is within the budget; one with arguments costs at least as much.
    ///
    /// # Errors
    /// Returns the reason if no arguments are validated.
    pub(super) fn is_affordable(&self) -> Result<(), Unchecked> {
        let estimate = self.graph.estimate(&Value::Object(Map::default()))?;
        if estimate.test > WORK { Err(beyond()) } else { Ok(()) }
    }

    /// Returns whether the costs of a validation of arguments with that many values and keys can be estimated at once.
    pub(super) fn is_small_for(&self, marks: u64) -> bool {
        (self.graph.parts() as u64).saturating_mul(marks.max(1)) <= AT_ONCE_PAIRS
    }

    /// The approximate size of the schema, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn beyond() -> Unchecked {
    Unchecked::Beyond("takes more work to check than is allowed for one call".to_owned())
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(formatter)
    }
}

/// The validations of the arguments of one call, which share one budget.
pub(super) struct Validation<'s> {
    schema: &'s Schema,
    left: u64,
    deadline: Instant,
    /// True if its budget is small, so that an outcome which exceeds it is looked for with the full budget.
    is_at_once: bool,
}

/// A violation of the schema.
pub(super) enum Problem<'v> {
    /// The first error.
    Known(ValidationError<'v>),
    /// Finding the first error exceeds the budget.
    Unknown,
}

/// The budget of a validation that takes at most a millisecond, in visits of a schema part; each may nest one stack frame.
const AT_ONCE: u64 = 2_000;

/// Maximum number of pairs of a schema part and a value that are estimated within such a validation.
const AT_ONCE_PAIRS: u64 = 20_000;

impl<'s> Validation<'s> {
    /// Creates a validation with its full budget.
    pub(super) fn of(schema: &'s Schema, deadline: Instant) -> Validation<'s> {
        Validation { schema, left: WORK, deadline, is_at_once: false }
    }

    /// Creates a validation with a budget that needs no other thread.
    pub(super) fn at_once(schema: &'s Schema, deadline: Instant) -> Validation<'s> {
        Validation { schema, left: AT_ONCE, deadline, is_at_once: true }
    }

    /// Finds the first violation of the schema; `None` if the arguments fit.
    ///
    /// # Errors
    /// Returns `Beyond` if that exceeds the remaining budget, or the deadline has passed.
    pub(super) fn first_problem<'v>(&mut self, instance: &'v Value) -> Result<Option<Problem<'v>>, Unchecked> {
        let estimate = self.schema.graph.estimate(instance)?;
        self.spend(estimate.test)?;
        if self.schema.validator.is_valid(instance) {
            return Ok(None);
        }
        if self.is_at_once {
            self.spend(estimate.collect)?;
        } else if estimate.collect > COLLECTING || self.spend(estimate.collect).is_err() {
            return Ok(Some(Problem::Unknown));
        }
        Ok(self.schema.validator.validate(instance).err().map(Problem::Known))
    }

    /// Returns whether `is_such` holds for one of the errors.
    ///
    /// # Errors
    /// As for [`Validation::first_problem`].
    pub(super) fn any_error(
        &mut self,
        instance: &Value,
        is_such: impl FnMut(ValidationError<'_>) -> bool,
    ) -> Result<bool, Unchecked> {
        let estimate = self.schema.graph.estimate(instance)?;
        if estimate.collect > COLLECTING {
            return Err(Unchecked::Beyond("has more errors than are examined".to_owned()));
        }
        self.spend(estimate.collect)?;
        Ok(self.schema.validator.iter_errors(instance).any(is_such))
    }

    fn spend(&mut self, visits: u64) -> Result<(), Unchecked> {
        if Instant::now() >= self.deadline {
            return Err(beyond());
        }
        self.left = self.left.checked_sub(visits).ok_or_else(beyond)?;
        Ok(())
    }
}
