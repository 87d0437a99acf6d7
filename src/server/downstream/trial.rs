//! Checks of arguments under a budget.

use std::borrow::Cow;
use std::fmt;
use std::time::Instant;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use super::expansion::{COLLECTING, Graph, Unchecked, WORK};
use super::patterns::{AUTOMATON, Patterns};

/// The schema of a tool's arguments, ready to check them.
pub(super) struct Schema {
    validator: Validator,
    graph: Graph,
    bytes: u64,
    /// The patterns that are left out, as the validator cannot match them.
    pub(super) unsupported: Vec<String>,
}

/// The memory in which the validator remembers the states of a pattern that it has gone through.
const PATTERN_CACHE: usize = 64 << 10;

impl Schema {
    /// Compiles a schema whose size is bounded. Nothing is fetched. Patterns that cannot be matched are left out.
    ///
    /// # Errors
    /// Why arguments are not checked with it.
    pub(super) fn of(schema: &Value) -> Result<Schema, Unchecked> {
        let patterns = Patterns::of(schema)?;
        let (supported, unsupported) = match patterns.without_unsupported(schema) {
            Some((supported, unsupported)) => (Cow::Owned(supported), unsupported),
            None => (Cow::Borrowed(schema), Vec::new()),
        };
        let graph = Graph::of(&supported, &patterns)?;
        let validator = jsonschema::options()
            // Schemas come from servers: their patterns must be matched in linear time. The validator makes several
            // automata of a pattern, which may differ a little in size from the one that was measured.
            .with_pattern_options(PatternOptions::regex().size_limit(2 * AUTOMATON).dfa_size_limit(PATTERN_CACHE))
            .should_validate_formats(false)
            .build(&supported)
            .map_err(|problem| Unchecked::Unreadable(problem.to_string().chars().take(300).collect()))?;
        let bytes = graph.bytes() + patterns.bytes();
        Ok(Schema { validator, graph, bytes, unsupported })
    }

    /// Whether a call without arguments is within the budget; one with more takes as much at the least.
    ///
    /// # Errors
    /// Why no arguments are checked.
    pub(super) fn is_affordable(&self) -> Result<(), Unchecked> {
        let estimate = self.graph.estimate(&Value::Object(Map::default()))?;
        if estimate.test > WORK { Err(beyond()) } else { Ok(()) }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

fn beyond() -> Unchecked {
    Unchecked::Beyond("takes more work to check with than is done for one call".to_owned())
}

impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.graph.fmt(formatter)
    }
}

/// The checks of the arguments of one call, which have one budget.
pub(super) struct Trial<'s> {
    schema: &'s Schema,
    left: u64,
    deadline: Instant,
}

/// That a value does not fit.
pub(super) enum Problem<'v> {
    /// The first error.
    Known(ValidationError<'v>),
    /// Finding the first error takes more than the budget.
    Unknown,
}

impl<'s> Trial<'s> {
    /// A trial that has used nothing of its budget.
    pub(super) fn of(schema: &'s Schema, deadline: Instant) -> Trial<'s> {
        Trial { schema, left: WORK, deadline }
    }

    /// Looks for something that does not fit.
    ///
    /// # Errors
    /// When that takes more than what is left of the budget, or the deadline is over.
    pub(super) fn first_problem<'v>(&mut self, instance: &'v Value) -> Result<Option<Problem<'v>>, Unchecked> {
        let estimate = self.schema.graph.estimate(instance)?;
        self.spend(estimate.test)?;
        if self.schema.validator.is_valid(instance) {
            return Ok(None);
        }
        if estimate.collect > COLLECTING || self.spend(estimate.collect).is_err() {
            return Ok(Some(Problem::Unknown));
        }
        Ok(self.schema.validator.validate(instance).err().map(Problem::Known))
    }

    /// True if one of the errors is such.
    ///
    /// # Errors
    /// As for [`Trial::first_problem`].
    pub(super) fn any_error(
        &mut self,
        instance: &Value,
        is_such: impl FnMut(ValidationError<'_>) -> bool,
    ) -> Result<bool, Unchecked> {
        let estimate = self.schema.graph.estimate(instance)?;
        if estimate.collect > COLLECTING {
            return Err(Unchecked::Beyond("has more errors than are looked at".to_owned()));
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
