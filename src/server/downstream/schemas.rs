//! Compiled schemas of tools. The least recently used ones are evicted when all of them together take too much memory.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use indexmap::IndexMap;

use crate::lang::Tool;
use crate::lang::internal::foreign_text;

use super::expansion::Unchecked;
use super::validation::Schema;

/// Approximate memory limit for all compiled schemas, in bytes; a single schema may take more.
const MOST_BYTES: u64 = 64 << 20;
/// Memory of a cache entry whose schema could not be compiled, in bytes; also the overhead of each other entry.
const LEAST_BYTES: u64 = 1 << 10;

/// A compiled schema, or the reason why arguments are not validated with it.
pub(super) type Prepared = Result<Schema, Unchecked>;

/// The compiled schemas, by the address of their tool, least recently used first.
#[derive(Default)]
pub(super) struct Schemas(Mutex<IndexMap<usize, Kept>>);

struct Kept {
    /// Keeps the address from being reused for another tool.
    _tool: Weak<Tool>,
    schema: Arc<Prepared>,
}

impl Schemas {
    /// Returns the schema of a tool's arguments; compiles it unless it is cached. Takes as long as the budget of
    /// [`Schema::of`] allows.
    pub(super) fn of(&self, tool: &Arc<Tool>) -> Arc<Prepared> {
        if let Some(schema) = self.compiled(tool) {
            return schema;
        }
        let schema = Arc::new(Schema::of(&tool.input_schema));
        report(tool, &schema);
        let kept = Kept { _tool: Arc::downgrade(tool), schema: Arc::clone(&schema) };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(Arc::as_ptr(tool).addr(), kept);
        let mut bytes: u64 = all.values().map(|kept| bytes(&kept.schema)).sum();
        while bytes > MOST_BYTES && all.len() > 1 {
            let (_, evicted) = all.shift_remove_index(0).expect("there are several");
            bytes -= self::bytes(&evicted.schema);
        }
        schema
    }

    /// Returns which of a tool's arguments are not validated, a clause each.
    pub(super) fn unchecked(&self, tool: &Arc<Tool>) -> Vec<String> {
        let name = foreign_text::qualified(&tool.server, &tool.name);
        let clause = |why: &str| foreign_text::line(&format!("the arguments of {name} are not checked{why}"));
        let prepared = self.of(tool);
        let affordable = match &*prepared {
            Ok(schema) => schema.is_affordable().map(|()| schema),
            Err(problem) => Err(problem.clone()),
        };
        match affordable {
            Ok(schema) => {
                let against = |pattern: &String| clause(&format!(" against a pattern: {pattern}"));
                schema.unsupported.iter().map(against).collect()
            }
            Err(problem) => vec![clause(&format!(": {problem}"))],
        }
    }

    /// Returns the schema of a tool's arguments if it is cached.
    pub(super) fn compiled(&self, tool: &Arc<Tool>) -> Option<Arc<Prepared>> {
        let address = Arc::as_ptr(tool).addr();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.get_index_of(&address)?;
        let last = all.len() - 1;
        all.move_index(at, last);
        Some(Arc::clone(&all[last].schema))
    }
}

fn bytes(schema: &Prepared) -> u64 {
    schema.as_ref().map_or(0, Schema::bytes) + LEAST_BYTES
}

/// Logs which parts of a schema are not validated.
fn report(tool: &Tool, schema: &Prepared) {
    match schema {
        Ok(schema) => {
            for pattern in &schema.unsupported {
                let pattern = foreign_text::line(pattern);
                tracing::warn!(
                    server = tool.server,
                    tool = tool.name,
                    pattern,
                    "a pattern is not supported and arguments are checked without it"
                );
            }
        }
        Err(problem) => {
            tracing::warn!(server = tool.server, tool = tool.name, %problem, "arguments are not checked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn tool(schema: Value) -> Arc<Tool> {
        Arc::new(Tool { input_schema: schema, ..Tool::default() })
    }

    #[test]
    fn a_schema_is_compiled_once_and_the_least_recently_used_are_evicted() {
        let large = || tool(json!({"properties": {"x": {"pattern": "[b-y]{20}{20}{100}"}}}));
        let (schemas, first) = (Schemas::default(), tool(json!({"required": ["x"]})));
        let compiled = schemas.of(&first);
        let tools: Vec<_> = (0..20).map(|_| large()).collect();
        for tool in &tools {
            assert!(schemas.of(tool).is_ok());
            assert!(Arc::ptr_eq(&compiled, &schemas.of(&first)), "it was used a moment ago");
        }
        let (count, bytes) = {
            let all = schemas.0.lock().expect("not poisoned");
            (all.len(), all.values().map(|kept| bytes(&kept.schema)).sum::<u64>())
        };
        assert!(bytes <= MOST_BYTES && (2..20).contains(&count), "{count} schemas, {bytes} bytes");
        let again = schemas.of(&tools[0]);
        assert!(again.is_ok(), "an evicted one is compiled again");
    }
}
