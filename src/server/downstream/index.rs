//! The search index of the catalogue, reused across searches.

use std::sync::Arc;

use crate::lang::{Index, Tool};

/// An index and the tools from which it was built.
#[derive(Default)]
pub(super) struct KeptIndex {
    tools: Vec<Arc<Tool>>,
    index: Option<Arc<Index>>,
}

impl KeptIndex {
    /// Returns the index of these tools; reuses the last one if their indexed text is unchanged.
    pub(super) fn of(&mut self, tools: &[Arc<Tool>]) -> Arc<Index> {
        let as_before =
            self.tools.len() == tools.len() && self.tools.iter().zip(tools).all(|(one, other)| same(one, other));
        match &self.index {
            Some(index) if as_before => Arc::clone(index),
            _ => {
                self.tools = tools.to_vec();
                Arc::clone(self.index.insert(Arc::new(Index::of_tools(tools))))
            }
        }
    }
}

/// True if two tools have the same indexed text.
fn same(one: &Arc<Tool>, other: &Arc<Tool>) -> bool {
    Arc::ptr_eq(one, other)
        || (one.server == other.server
            && one.name == other.name
            && one.description == other.description
            && one.input_schema == other.input_schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_made_anew_for_other_tools_only() {
        let tool = |name: &str, seen| Arc::new(Tool { name: name.into(), seen, ..Tool::default() });
        let mut kept = KeptIndex::default();
        let first = kept.of(&[tool("search", None)]);
        assert!(Arc::ptr_eq(&first, &kept.of(&[tool("search", Some(serde_json::json!({})))])));
        let other = kept.of(&[tool("send", None)]);
        assert_eq!((first.search("search", 1).best.len(), other.search("search", 1).best.len()), (1, 0));
        assert_eq!(other.search("send", 1).best.len(), 1);
    }
}
