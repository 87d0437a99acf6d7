//! The calls that builtins make, by their declared conduct.

use super::count::Counting;
use super::known::{Depth, Known};
use crate::error::Outcome;
use crate::native::{Builtin, Conduct};
use crate::value::list::List;

impl Counting<'_> {
    /// Calls a builtin with these arguments.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub fn builtin(&mut self, builtin: &'static Builtin, arguments: &[Known]) -> Outcome<Known> {
        let conduct = builtin.conduct;
        match (conduct, arguments) {
            (Conduct::Visits | Conduct::Maps | Conduct::MapsRealised | Conduct::Joins, [first, second]) => {
                // Builtins accept the function and the collection in either order.
                let is_swapped = !first.is_function() && second.is_function();
                let (function, collection) = if is_swapped { (second, first) } else { (first, second) };
                self.each(conduct, function, std::slice::from_ref(collection))
            }
            (
                Conduct::Visits | Conduct::Maps | Conduct::MapsRealised | Conduct::Joins,
                [function, collections @ ..],
            ) if !collections.is_empty() => self.each(conduct, function, collections),
            (Conduct::Folds, [function, between @ .., collection]) if between.len() < 2 => {
                self.escape_all(between)?;
                self.escape(collection)?;
                // Without items and a start, the function is called once.
                let times = collection.most().map(|most| most.max(1));
                self.called(function, times, &Known::ANY)?;
                Ok(Known::ANY)
            }
            (Conduct::CallsFirst, [function, others @ ..]) | (Conduct::CallsLast, [others @ .., function]) => {
                self.escape_all(others)?;
                self.called(function, Some(1), &Known::ANY)?;
                Ok(Known::ANY)
            }
            (Conduct::CallsEach, functions) => {
                for function in functions {
                    self.called(function, Some(1), &Known::ANY)?;
                }
                Ok(Known::ANY)
            }
            (Conduct::Collects, items) => self.literal(items, items.len()),
            (Conduct::Range, arguments) => Ok(range(arguments)),
            (Conduct::Take, [Known::Integer(count), collection]) => {
                self.escape(collection)?;
                let most = u64::try_from(*count).unwrap_or(0);
                let most = collection.most().map_or(most, |known| known.min(most));
                Ok(Known::Other { most: Some(most), depth: collection.depth() })
            }
            (Conduct::Same, arguments) => {
                self.escape_all(arguments)?;
                // Builtins accept the collection in several places: any argument that may be one counts.
                let collections = || arguments.iter().filter(|one| matches!(one, Known::Other { .. }));
                let Some(depth) = collections().map(Known::depth).min() else { return Ok(Known::ANY) };
                let most = collections().map(Known::most).try_fold(0, |most, one| Some(most.max(one?)));
                Ok(Known::Other { most, depth: depth.min(Depth::Realised) })
            }
            (Conduct::Integer, [number @ Known::Integer(_)]) => Ok(number.clone()),
            (_, arguments) => {
                self.report(builtin);
                self.escape_all(arguments)?;
                Ok(Known::ANY)
            }
        }
    }

    fn each(&mut self, conduct: Conduct, function: &Known, collections: &[Known]) -> Outcome<Known> {
        self.escape_all(collections)?;
        let most = match conduct {
            // The collection may be in the place of the function.
            _ if !function.is_function() => None,
            // Further arguments may be options.
            Conduct::Visits => collections.iter().map(Known::most).try_fold(0, |most, one| Some(most.max(one?))),
            _ => collections.iter().filter_map(Known::most).min(),
        };
        let is_realised = collections.iter().all(|collection| collection.depth() >= Depth::Realised);
        let is_data = collections.iter().all(|collection| collection.depth() == Depth::Data);
        // A lazy sequence is computed again where its function failed, so its length bounds nothing.
        let is_now = matches!(conduct, Conduct::Visits | Conduct::Maps) || is_realised;
        let item = if is_data { Known::DATA } else { Known::ANY };
        let times = if is_now { most } else { None };
        let result = self.called(function, times, &item)?;
        Ok(match conduct {
            Conduct::Visits => Known::ANY,
            Conduct::Joins if is_now && result.depth() >= Depth::Realised => {
                let most = times.zip(result.most()).and_then(|(times, most)| times.checked_mul(most));
                Known::Other { most, depth: Depth::Realised }
            }
            Conduct::Joins => {
                // After a lazy result the function is called lazily.
                self.escape(function)?;
                Known::ANY
            }
            _ => Known::Other { most, depth: if is_now { Depth::Realised } else { Depth::Lazy } },
        })
    }
}

/// Returns what is known of `(range …)`.
fn range(arguments: &[Known]) -> Known {
    let numbers: Option<Vec<i64>> = arguments
        .iter()
        .map(|argument| match argument {
            Known::Integer(number) => Some(*number),
            _ => None,
        })
        .collect();
    let count = match numbers.as_deref() {
        Some([end]) => (*end).max(0).unsigned_abs(),
        Some([start, end]) if end > start => end.abs_diff(*start),
        Some([_, _]) => 0,
        Some([start, end, step]) if *step != 0 => {
            let is_empty = if *step > 0 { end <= start } else { end >= start };
            if is_empty { 0 } else { end.abs_diff(*start).div_ceil(step.unsigned_abs()) }
        }
        _ => return Known::ANY,
    };
    let depth = if count > List::LONG { Depth::Lazy } else { Depth::Data };
    Known::Other { most: Some(count), depth }
}
