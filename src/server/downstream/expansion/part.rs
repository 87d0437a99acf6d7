//! A part of a schema, with the parts that it applies to a value, to its members and to its items.

use std::collections::HashMap;

/// One schema within a schema. It names other parts by their indexes in the graph.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// True if several edges lead to the part, so that it may apply to one value more than once.
    pub(super) is_shared: bool,
    /// Cost of its keywords, constants and names, which are examined for each value.
    pub(super) own: u64,
    /// Number of states of the patterns for texts.
    pub(super) states: u64,
    pub(super) in_place: InPlace,
    pub(super) members: Members,
    pub(super) items: Items,
    /// Parts applied by the `unevaluated…` keywords, to members as well as to items.
    pub(super) unevaluated: Vec<usize>,
}

/// Parts applied to the value itself.
#[derive(Debug, Default)]
pub(super) struct InPlace {
    /// Parts applied unconditionally.
    pub(super) always: Vec<usize>,
    pub(super) references: Vec<usize>,
    /// Alternatives and conditions.
    pub(super) tested: Vec<usize>,
}

/// Parts applied to the members of an object.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) by_name: HashMap<String, usize>,
    pub(super) by_pattern: Vec<usize>,
    /// Number of states of those patterns.
    pub(super) pattern_states: u64,
    /// Parts for members that are not named.
    pub(super) others: Vec<usize>,
    /// Parts for the names of members.
    pub(super) names: Vec<usize>,
}

/// Parts applied to the items of an array.
#[derive(Debug, Default)]
pub(super) struct Items {
    /// Parts by position.
    pub(super) prefix: Vec<usize>,
    /// Parts for the items behind those.
    pub(super) rest: Vec<usize>,
    pub(super) contains: Vec<usize>,
    /// True if no two items may be equal.
    pub(super) are_unique: bool,
}

impl Part {
    /// Returns the parts that stand within this one, which excludes those that it refers to.
    pub(super) fn within(&self) -> impl Iterator<Item = &usize> {
        let InPlace { always, tested, references: _ } = &self.in_place;
        let Members { by_name, by_pattern, others, names, pattern_states: _ } = &self.members;
        let Items { prefix, rest, contains, are_unique: _ } = &self.items;
        let members = by_name.values().chain(others).chain(by_pattern).chain(names);
        let items = prefix.iter().chain(rest).chain(contains).chain(&self.unevaluated);
        always.iter().chain(tested).chain(members).chain(items)
    }
}

impl InPlace {
    /// Returns all of the parts.
    pub(super) fn all(&self) -> impl Iterator<Item = &usize> {
        self.always.iter().chain(&self.references).chain(&self.tested)
    }
}
