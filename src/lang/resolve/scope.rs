//! Which name is where: slots of the running function, and what has to be captured from around it.

use super::last_use::bit;

/// Where a name was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a slot of the frame.
    Slot(u32),
    /// Among the captured values.
    Captured(u32),
    /// It is a function of the running function's group.
    Sibling(u32),
}

/// The function around the form at hand, and those around that.
#[derive(Default)]
pub struct Frames {
    function: FunctionFrame,
    /// The groups, which own what is captured, each with the function around it; the innermost last.
    around: Vec<(GroupFrame, FunctionFrame)>,
}

/// One function body.
#[derive(Default)]
pub struct FunctionFrame {
    bound: Vec<(String, u32)>,
    next: u32,
    /// Slots the frame needs.
    pub slots: u32,
    depth: u32,
    /// How deep the nodes nest.
    pub nesting: u32,
    recur: Option<(u32, usize)>,
    /// The slots that have been read since the innermost loop began, each as a bit.
    reads: u64,
    is_function: bool,
}

/// Functions that share what they capture.
#[derive(Default)]
pub struct GroupFrame {
    siblings: Vec<String>,
    /// Names captured so far.
    pub captured: Vec<String>,
    /// Names outside of all functions, with what they were resolved to.
    pub names: Vec<(String, String)>,
}

/// A position in the list of bound names, to go back to.
pub struct Scope {
    bound: usize,
    next: u32,
}

impl Frames {
    /// Begins a function body, or the top level, whose captured names are given.
    pub fn enter_function(&mut self, is_function: bool, captured: &[String]) {
        if !captured.is_empty() {
            self.enter(GroupFrame { captured: captured.to_vec(), ..GroupFrame::default() });
        }
        self.function = FunctionFrame { is_function, ..FunctionFrame::default() };
    }

    /// Ends a function body.
    pub fn leave_function(&mut self) -> FunctionFrame {
        std::mem::take(&mut self.function)
    }

    /// Begins a group of functions of these names; unnamed ones are empty.
    pub fn enter_group(&mut self, siblings: &[String]) {
        self.enter(GroupFrame { siblings: siblings.to_vec(), ..GroupFrame::default() });
    }

    fn enter(&mut self, group: GroupFrame) {
        let function = std::mem::take(&mut self.function);
        self.around.push((group, function));
    }

    /// Ends a group. What its functions resolved outside is also what the group around them did.
    pub fn leave_group(&mut self) -> GroupFrame {
        let Some((group, function)) = self.around.pop() else { return GroupFrame::default() };
        self.function = function;
        for (name, meaning) in &group.names {
            self.note_name(name, || meaning.clone());
        }
        group
    }

    /// Notes in the innermost group what a name outside of all functions means.
    pub fn note_name(&mut self, name: &str, meaning: impl FnOnce() -> String) {
        if let Some((group, _)) = self.around.last_mut()
            && !group.names.iter().any(|(known, _)| known == name)
        {
            group.names.push((name.to_string(), meaning()));
        }
    }

    /// Begins a loop: what was read so far.
    pub fn enter_loop(&mut self) -> u64 {
        std::mem::take(&mut self.function.reads)
    }

    /// Ends a loop, before which that was read: what is read in it.
    pub fn leave_loop(&mut self, before: u64) -> u64 {
        let frame = &mut self.function;
        let reads = frame.reads;
        frame.reads |= before;
        reads
    }

    /// Notes that a slot is read.
    pub fn note_read(&mut self, slot: u32) {
        self.function.reads |= bit(slot);
    }

    /// True inside of a function, false at the top level.
    pub fn in_function(&self) -> bool {
        self.function.is_function
    }

    /// Remembers the scope as it is.
    pub fn scope(&mut self) -> Scope {
        let frame = &mut self.function;
        Scope { bound: frame.bound.len(), next: frame.next }
    }

    /// Goes back to a scope; its slots may be used anew.
    pub fn close(&mut self, scope: Scope) {
        let frame = &mut self.function;
        frame.bound.truncate(scope.bound);
        frame.next = scope.next;
    }

    /// The slot that is bound next.
    pub fn next_slot(&mut self) -> u32 {
        self.function.next
    }

    /// Takes the next slot without a name yet.
    pub fn reserve(&mut self) -> u32 {
        let frame = &mut self.function;
        let slot = frame.next;
        frame.next += 1;
        frame.slots = frame.slots.max(frame.next);
        slot
    }

    /// Gives a reserved slot its name.
    pub fn bind_at(&mut self, name: &str, slot: u32) {
        self.function.bound.push((name.to_string(), slot));
    }

    /// Takes the next slot for that name.
    pub fn bind(&mut self, name: &str) -> u32 {
        let slot = self.reserve();
        self.bind_at(name, slot);
        slot
    }

    /// Notes one more level of nodes.
    pub fn deeper(&mut self) {
        let frame = &mut self.function;
        frame.depth += 1;
        frame.nesting = frame.nesting.max(frame.depth);
    }

    /// Notes the end of a level of nodes.
    pub fn shallower(&mut self) {
        self.function.depth -= 1;
    }

    /// Sets where `recur` goes, returning where it went.
    pub fn set_recur_target(&mut self, target: Option<(u32, usize)>) -> Option<(u32, usize)> {
        std::mem::replace(&mut self.function.recur, target)
    }

    /// Where `recur` goes.
    pub fn recur_target(&mut self) -> Option<(u32, usize)> {
        self.function.recur
    }

    /// Looks a name up from the inside out, noting on the way back what each group captures.
    pub fn find(&mut self, name: &str) -> Option<Place> {
        match self.function.slot(name) {
            Some(slot) => Some(Place::Slot(slot)),
            None => self.find_around(self.around.len(), name),
        }
    }

    /// Looks a name up in so many of the groups.
    fn find_around(&mut self, groups: usize, name: &str) -> Option<Place> {
        let at = groups.checked_sub(1)?;
        let (group, function) = &self.around[at];
        if let Some(index) = group.siblings.iter().rposition(|sibling| sibling == name) {
            return Some(Place::Sibling(index as u32));
        }
        if let Some(index) = group.captured.iter().position(|captured| captured == name) {
            return Some(Place::Captured(index as u32));
        }
        if function.slot(name).is_none() {
            self.find_around(at, name)?;
        }
        let captured = &mut self.around[at].0.captured;
        captured.push(name.to_string());
        Some(Place::Captured((captured.len() - 1) as u32))
    }

    /// Captures what a name outside of all functions holds, in every group around the form at hand; none at the
    /// top level.
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

    /// How many names are bound around the form at hand.
    pub fn bound(&self) -> usize {
        let around = self
            .around
            .iter()
            .map(|(group, function)| group.siblings.len() + group.captured.len() + function.bound.len());
        self.function.bound.len() + around.sum::<usize>()
    }

    /// All names that are bound around the form at hand.
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
    /// The slot that a name is bound to.
    fn slot(&self, name: &str) -> Option<u32> {
        self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, slot)| *slot)
    }
}
