//! Lexical scopes: the slots of the running function and the values captured from enclosing ones.

use super::last_use::bit;

/// The location of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a slot of the frame.
    Slot(u32),
    /// Among the captured values.
    Captured(u32),
    /// A function of the running function's group.
    Sibling(u32),
}

/// The function that encloses the current form, and the functions that enclose it.
#[derive(Default)]
pub struct Frames {
    function: FunctionFrame,
    /// The enclosing groups, which own the captures, each with its enclosing function; the innermost last.
    around: Vec<(GroupFrame, FunctionFrame)>,
}

/// The compile-time state of one function body.
#[derive(Default)]
pub struct FunctionFrame {
    bound: Vec<(String, u32)>,
    next: u32,
    /// The number of slots that the frame needs.
    pub slots: u32,
    depth: u32,
    /// Nesting depth of the nodes.
    pub nesting: u32,
    recur: Option<(u32, usize)>,
    /// Bit mask of the slots that have been read since the innermost loop began.
    reads: u64,
    is_function: bool,
}

/// A group of functions that share their captures.
#[derive(Default)]
pub struct GroupFrame {
    siblings: Vec<String>,
    /// The names of its functions, including those that refer to themselves through their definitions.
    functions: Vec<String>,
    /// True once one of its functions refers to one of them.
    is_recursive: bool,
    /// Names captured so far.
    pub captured: Vec<String>,
    /// Names outside all functions, each with its resolved meaning.
    pub names: Vec<(String, String)>,
}

/// A saved scope to return to.
pub struct Scope {
    bound: usize,
    next: u32,
}

impl Frames {
    /// Enters a function body, or the top level. `captured` lists captured names with a given order, if any.
    pub fn enter_function(&mut self, is_function: bool, captured: &[String]) {
        if !captured.is_empty() {
            self.enter(GroupFrame { captured: captured.to_vec(), ..GroupFrame::default() });
        }
        self.function = FunctionFrame { is_function, ..FunctionFrame::default() };
    }

    /// Leaves a function body.
    pub fn leave_function(&mut self) -> FunctionFrame {
        std::mem::take(&mut self.function)
    }

    /// Enters a group of functions. `siblings` are the names by which they refer to each other, empty for those without
    /// one, and `functions` all their names.
    pub fn enter_group(&mut self, siblings: &[String], functions: Vec<String>) {
        self.enter(GroupFrame { siblings: siblings.to_vec(), functions, ..GroupFrame::default() });
    }

    fn enter(&mut self, group: GroupFrame) {
        let function = std::mem::take(&mut self.function);
        self.around.push((group, function));
    }

    /// Leaves a group. Its resolved names are also recorded in the enclosing group.
    pub fn leave_group(&mut self) -> GroupFrame {
        let Some((group, function)) = self.around.pop() else { return GroupFrame::default() };
        self.function = function;
        for (name, meaning) in &group.names {
            self.note_name(name, || meaning.clone());
        }
        group
    }

    /// True within a function that has a name.
    pub fn in_named_function(&self) -> bool {
        self.around.iter().any(|(group, _)| !group.functions.is_empty())
    }

    /// Returns the name of the innermost function around the current form that has a name.
    pub fn function_name(&self) -> Option<&str> {
        let named = self.around.iter().rev().find(|(group, _)| !group.functions.is_empty());
        named.and_then(|(group, _)| group.functions.first()).map(String::as_str)
    }

    /// True if a function around the current form has referred to itself so far.
    pub fn is_recursive(&self) -> bool {
        self.around
            .iter()
            .any(|(group, _)| group.is_recursive || group.names.iter().any(|(name, _)| group.functions.contains(name)))
    }

    /// True for the name of a function around the current form.
    pub fn is_around(&self, name: &str) -> bool {
        self.around.iter().any(|(group, _)| group.functions.iter().any(|function| function == name))
    }

    /// The number of groups around the current form.
    pub fn groups(&self) -> usize {
        self.around.len()
    }

    /// Records the meaning of a name outside all functions in the innermost group.
    pub fn note_name(&mut self, name: &str, meaning: impl FnOnce() -> String) {
        if let Some((group, _)) = self.around.last_mut()
            && !group.names.iter().any(|(known, _)| known == name)
        {
            group.names.push((name.to_string(), meaning()));
        }
    }

    /// Enters a loop; returns the mask of the slots read so far.
    pub fn enter_loop(&mut self) -> u64 {
        std::mem::take(&mut self.function.reads)
    }

    /// Leaves a loop; returns the mask of the slots read inside it. `before` is the result of `enter_loop`.
    pub fn leave_loop(&mut self, before: u64) -> u64 {
        let frame = &mut self.function;
        let reads = frame.reads;
        frame.reads |= before;
        reads
    }

    /// Records that a slot is read.
    pub fn note_read(&mut self, slot: u32) {
        self.function.reads |= bit(slot);
    }

    /// True inside a function, false at the top level.
    pub fn in_function(&self) -> bool {
        self.function.is_function
    }

    /// Saves the current scope.
    pub fn scope(&mut self) -> Scope {
        let frame = &mut self.function;
        Scope { bound: frame.bound.len(), next: frame.next }
    }

    /// Returns to a saved scope; the slots allocated since can be reused.
    pub fn close(&mut self, scope: Scope) {
        let frame = &mut self.function;
        frame.bound.truncate(scope.bound);
        frame.next = scope.next;
    }

    /// The next free slot.
    pub fn next_slot(&mut self) -> u32 {
        self.function.next
    }

    /// Reserves the next slot without a name.
    pub fn reserve(&mut self) -> u32 {
        let frame = &mut self.function;
        let slot = frame.next;
        frame.next += 1;
        frame.slots = frame.slots.max(frame.next);
        slot
    }

    /// Names a reserved slot.
    pub fn bind_at(&mut self, name: &str, slot: u32) {
        self.function.bound.push((name.to_string(), slot));
    }

    /// Reserves the next slot and names it.
    pub fn bind(&mut self, name: &str) -> u32 {
        let slot = self.reserve();
        self.bind_at(name, slot);
        slot
    }

    /// Enters one more level of nested nodes.
    pub fn deeper(&mut self) {
        let frame = &mut self.function;
        frame.depth += 1;
        frame.nesting = frame.nesting.max(frame.depth);
    }

    /// Leaves a level of nested nodes.
    pub fn shallower(&mut self) {
        self.function.depth -= 1;
    }

    /// Sets the target of `recur`; returns the old target.
    pub fn set_recur_target(&mut self, target: Option<(u32, usize)>) -> Option<(u32, usize)> {
        std::mem::replace(&mut self.function.recur, target)
    }

    /// The target of `recur`.
    pub fn recur_target(&mut self) -> Option<(u32, usize)> {
        self.function.recur
    }

    /// Looks up a name from the inside out, recording the captures of each group on the way back.
    pub fn find(&mut self, name: &str) -> Option<Location> {
        match self.function.slot(name) {
            Some(slot) => Some(Location::Slot(slot)),
            None => self.find_around(self.around.len(), name),
        }
    }

    /// Looks up a name in the outermost `groups` groups.
    fn find_around(&mut self, groups: usize, name: &str) -> Option<Location> {
        let at = groups.checked_sub(1)?;
        let (group, function) = &self.around[at];
        if let Some(index) = group.siblings.iter().rposition(|sibling| sibling == name) {
            self.around[at].0.is_recursive = true;
            return Some(Location::Sibling(index as u32));
        }
        if let Some(index) = group.captured.iter().position(|captured| captured == name) {
            return Some(Location::Captured(index as u32));
        }
        if function.slot(name).is_none() {
            self.find_around(at, name)?;
        }
        let captured = &mut self.around[at].0.captured;
        captured.push(name.to_string());
        Some(Location::Captured((captured.len() - 1) as u32))
    }

    /// Captures the value of a name outside all functions in every enclosing group. Returns `None` at the top level.
    pub fn capture(&mut self, name: &str) -> Option<u32> {
        let mut index = None;
        for (group, _) in &mut self.around {
            let captured = &mut group.captured;
            let known = captured.iter().position(|known| known == name);
            index = Some(known.unwrap_or_else(|| {
                captured.push(name.to_string());
                captured.len() - 1
            }));
        }
        index.map(|index| index as u32)
    }

    /// The number of names bound around the current form.
    pub fn bound(&self) -> usize {
        let around = self
            .around
            .iter()
            .map(|(group, function)| group.siblings.len() + group.captured.len() + function.bound.len());
        self.function.bound.len() + around.sum::<usize>()
    }

    /// Returns all names bound around the current form.
    pub fn names(&self) -> Vec<String> {
        let bound = |function: &FunctionFrame| function.bound.iter().rev().map(|(name, _)| name.clone()).collect();
        let mut out: Vec<String> = bound(&self.function);
        for (group, function) in self.around.iter().rev() {
            out.extend(group.siblings.iter().chain(&group.captured).filter(|name| !name.is_empty()).cloned());
            out.extend(bound(function));
        }
        out
    }
}

impl FunctionFrame {
    /// Returns the slot bound to a name.
    fn slot(&self, name: &str) -> Option<u32> {
        self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, slot)| *slot)
    }
}
