//! Lazy sequences, keys and look-ups: services of the machine for builtins.

use super::Machine;
use super::transients;
use crate::error::{Error, Halt, Outcome, Signal};
use crate::heap::{CellKind, Handle, State};
use crate::native::{Builtin, Role};
use crate::value::Value;
use crate::value::equal::{KEY_NESTING, hashing_effort};
use crate::value::function::Bound;
use crate::value::list::List;
use crate::value::map::Map;
use crate::value::release::Scratch;
use crate::value::walk::{Cursor, Pace};
use std::sync::Arc;

/// Maximum number of items of a lazy sequence that are realised at `try` and at the end of a form.
const SETTLED: usize = 1_000;

/// Maximum number of steps for that. Items that cost more are realised on demand.
const SETTLING: u64 = 1_000_000;

impl Pace for Machine {
    type Stop = Signal;

    #[inline]
    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.charge(steps)
    }

    fn force(&mut self, lazy: &Arc<Handle>) -> Outcome<Option<Value>> {
        self.realise(lazy).map(Some)
    }

    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value> {
        match self.core.heap.state(cell) {
            Ok(State::Done(value)) => Some(value.clone()),
            _ => None,
        }
    }
}

/// A pace that computes nothing: it shows the realised part of a lazy sequence, and `…` for the rest.
pub(crate) struct Realised<'m>(pub &'m mut Machine);

impl Pace for Realised<'_> {
    type Stop = Signal;

    fn step(&mut self, steps: u64) -> Outcome<()> {
        self.0.charge(steps)
    }

    fn force(&mut self, lazy: &Arc<Handle>) -> Outcome<Option<Value>> {
        Ok(Some(match self.0.content(lazy) {
            Some(known) => known,
            None => Value::list(vec![Value::symbol("…")]),
        }))
    }

    fn content(&mut self, cell: &Arc<Handle>) -> Option<Value> {
        self.0.content(cell)
    }
}

impl Machine {
    /// Returns the value of a lazy sequence or a delay, computing it on first use. Like any change of a cell, the
    /// realisation is undone with the form.
    ///
    /// # Errors
    /// Returns what its function raises. A lazy sequence may be tried again afterwards; a delay keeps the exception.
    pub(crate) fn realise(&mut self, handle: &Arc<Handle>) -> Outcome<Value> {
        loop {
            match self.core.heap.state(handle)? {
                State::Done(Value::Lazy(inner)) => {
                    let inner = inner.clone();
                    // As in Clojure, a sequence is empty as long as its own first item is looked for.
                    let is_looked_for = self.is_being_realised(inner.clone())?;
                    return Ok(if is_looked_for { Value::Nil } else { Value::Lazy(inner) });
                }
                State::Done(value) => return Ok(value.clone()),
                State::Failed(Value::Exception(error)) => return Err(error.clone().into()),
                State::Running(branch) => {
                    let branch = *branch;
                    self.let_finish(branch, handle)?;
                }
                State::Waiting(_) | State::Failed(_) => break,
            }
        }
        let running = State::Running(self.branch.number());
        let State::Waiting(function) = self.core.heap.change(handle, running)? else { return Ok(Value::Nil) };
        let called = self.call(&function, &mut []).and_then(|value| {
            let lazy = handle.cell_kind() == CellKind::Lazy;
            if lazy && Cursor::over(value.clone()).is_none() { Err(not_a_sequence(&value).into()) } else { Ok(value) }
        });
        match called {
            Ok(value) => {
                self.core.heap.change(handle, State::Done(value.clone()))?;
                Ok(value)
            }
            Err(signal) => {
                // A delay caches its exception as it caches its value; a sequence may be tried again.
                let failed = super::walk::caught(&signal).filter(|_| handle.cell_kind() == CellKind::Delay);
                self.core.heap.change(handle, failed.map_or(State::Waiting(function), State::Failed))?;
                Err(signal)
            }
        }
    }

    /// Returns whether this branch is realising the sequence, or the one that it consists of.
    fn is_being_realised(&mut self, mut sequence: Arc<Handle>) -> Outcome<bool> {
        loop {
            self.charge(1)?;
            sequence = match self.core.heap.state(&sequence)? {
                State::Running(branch) => return Ok(*branch == self.branch.number()),
                State::Done(Value::Lazy(inner)) => inner.clone(),
                _ => return Ok(false),
            };
        }
    }

    /// Yields to the branch that is realising the cell. Raises an error if that branch waits for this one.
    #[cold]
    fn let_finish(&mut self, branch: u32, handle: &Arc<Handle>) -> Outcome<()> {
        self.charge(1)?;
        let own = self.branch.number();
        let mut first = Some(branch);
        while let Some(branch) = first {
            // The main branch waits for all others.
            if branch == own || branch == 0 {
                let message = "a lazy sequence or delay needs its own value to compute itself";
                return Err(Error::new("RecursiveRealisation", message).into());
            }
            first = match self.core.awaited.get(&branch).map(|handle| self.core.heap.state(handle)) {
                Some(Ok(State::Running(next))) => Some(*next),
                _ => None,
            };
        }
        self.core.awaited.insert(own, handle.clone());
        let resumed = self.give_way(None, || ());
        self.core.awaited.remove(&own);
        resumed.ok_or_else(|| Halt::Cancelled.into())
    }

    /// Creates a lazy sequence that calls `builtin` with these arguments when it is realised.
    pub(crate) fn lazy(&mut self, builtin: &'static Builtin, arguments: Vec<Value>) -> Value {
        let function = Value::Bound(Arc::new(Bound { builtin, arguments }));
        self.lazy_call(function)
    }

    /// Creates a lazy sequence that calls `function` when it is realised.
    pub(crate) fn lazy_call(&mut self, function: Value) -> Value {
        Value::Lazy(self.core.heap.allocate(CellKind::Lazy, State::Waiting(function)))
    }

    /// Returns a cursor over any value that `seq` accepts.
    ///
    /// # Errors
    /// Returns `TypeError` if the value is not a sequence.
    pub(crate) fn seq(&mut self, value: Value) -> Outcome<Cursor> {
        match Cursor::over(value.clone()) {
            Some(cursor) => Ok(cursor),
            None => Err(not_a_sequence(&value).into()),
        }
    }

    /// Returns a cursor for a complete traversal: items with no other owner are moved instead of copied.
    ///
    /// # Errors
    /// As [`Machine::seq`].
    pub(crate) fn through(&mut self, value: Value) -> Outcome<Cursor> {
        // `seq` reports values that are not sequences.
        match value {
            Value::List(_) | Value::Vector(_) => Ok(Cursor::through(value).unwrap_or(Cursor::End)),
            value => self.seq(value),
        }
    }

    /// Collects the items of a finite sequence. Checks the memory limit first if the count is known.
    ///
    /// # Errors
    /// Returns `TypeError` if the value is not a sequence, or a halt if a limit is exceeded.
    pub fn items(&mut self, value: Value) -> Outcome<Vec<Value>> {
        let mut cursor = self.through(value)?;
        let count = cursor.remaining();
        if let Some(count) = count {
            self.reserve_values(count)?;
        }
        let room = count.map_or(0, |count| count.min(1 << 24) as usize);
        let mut items = Scratch::from(Vec::with_capacity(room));
        while let Some(item) = cursor.next(self)? {
            items.push(item);
            self.grown(items.len())?;
        }
        Ok(items.into_vec())
    }

    /// Checks the memory for the next doubling of a block of values. Callers that have not reserved the block call
    /// this whenever it has grown to `len`.
    ///
    /// # Errors
    /// Returns a halt if the memory limit does not allow it.
    #[inline]
    pub(crate) fn grown(&mut self, len: usize) -> Outcome<()> {
        if len >= 4_096 && len.is_power_of_two() { self.reserve_values(2 * len as u64) } else { Ok(()) }
    }

    /// Does what [`Machine::grown`] does for a block of items larger than a value.
    ///
    /// # Errors
    /// As [`Machine::grown`].
    #[inline]
    pub(crate) fn grown_block<T>(&mut self, block: &[T]) -> Outcome<()> {
        let len = block.len();
        if len >= 512 && len.is_power_of_two() { self.reserve(2 * size_of_val(block) as u64) } else { Ok(()) }
    }

    /// True for sequences that are computed on demand, are infinite, or are ranges of more than ten million numbers.
    /// Builtins are lazy over these and eager over all others.
    pub(crate) fn is_lazy(&mut self, value: &Value) -> bool {
        let mut value = value.clone();
        // A chain of cons cells may end in a lazy sequence. Following a few cells decides most cases; longer chains
        // count as lazy.
        for _ in 0..32 {
            match &value {
                Value::Lazy(_) => return true,
                Value::List(list) => match &**list {
                    List::Cons(cons) => {
                        let tail = cons.tail.clone();
                        value = tail;
                    }
                    other => return other.is_long(),
                },
                _ => return false,
            }
        }
        matches!(value, Value::Lazy(_) | Value::List(_))
    }

    /// Realises the beginning of a lazy sequence, so that its effects and errors happen now. It stops after an item
    /// that made a tool call, so that no call is made that the program may not need.
    ///
    /// # Errors
    /// Returns what the sequence's functions raise.
    pub(crate) fn settle(&mut self, value: &Value) -> Outcome<()> {
        if !matches!(value, Value::Lazy(_) | Value::List(_)) || !self.is_lazy(value) {
            return Ok(());
        }
        let mut cursor = self.seq(value.clone())?;
        if matches!(cursor, Cursor::Range { .. }) {
            return Ok(());
        }
        let most = self.core.meter.fuel_spent().saturating_add(SETTLING);
        let calls = self.core.calls.len();
        for _ in 0..SETTLED {
            let is_end = cursor.next(self)?.is_none();
            if is_end || self.core.calls.len() > calls || self.core.meter.fuel_spent() > most {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether two values are equal.
    ///
    /// # Errors
    /// Returns what realising lazy parts raises, or a halt if a limit is exceeded.
    pub fn equal(&mut self, left: &Value, right: &Value) -> Outcome<bool> {
        crate::value::equal::equal(left, right, self)
    }

    /// Converts a value to a valid key of a map or member of a set: realises its lazy parts and checks its nesting
    /// and size.
    ///
    /// # Errors
    /// Returns `KeyTooDeep` beyond 64 levels, `KeyTooLarge` if it holds too many values, and what realising raises.
    pub(crate) fn key(&mut self, value: Value) -> Outcome<Value> {
        if value.is_scalar() {
            self.charge_scalar(&value)?;
            return Ok(value);
        }
        let mut room = KEY_SIZE;
        self.key_within(value, KEY_NESTING, &mut room)
    }

    /// Charges fuel for hashing and comparing a long string or number.
    #[inline]
    fn charge_scalar(&mut self, value: &Value) -> Outcome<()> {
        match hashing_effort(value) {
            0 => Ok(()),
            steps => self.charge(steps),
        }
    }

    /// Converts a part of a key. `room` is the number of values that the whole key may still hold.
    fn key_within(&mut self, value: Value, levels: u32, room: &mut u64) -> Outcome<Value> {
        self.charge(1)?;
        if levels == 0 {
            return Err(Error::new(
                "KeyTooDeep",
                format!("a key of a map or a member of a set may nest at most {KEY_NESTING} levels"),
            )
            .into());
        }
        // A collection is a separate allocation: it counts as eight values.
        take_room(room, 8)?;
        match &value {
            Value::Vector(vector) => {
                take_room(room, vector.len())?;
                for item in vector.iter() {
                    self.key_scalar(item, room)?;
                    if !item.is_scalar() {
                        let items = self.items(value.clone())?;
                        let within = |item| self.key_within_or_scalar(item, levels - 1, room);
                        return Ok(Value::vector(items.into_iter().map(within).collect::<Outcome<_>>()?));
                    }
                }
                self.charge(vector.len() as u64)?;
                Ok(value)
            }
            Value::List(_) | Value::Lazy(_) => {
                let items = self.items(value)?;
                take_room(room, items.len())?;
                let within = |item| self.key_within_or_scalar(item, levels - 1, room);
                Ok(Value::list(items.into_iter().map(within).collect::<Outcome<_>>()?))
            }
            Value::Map(map) => {
                take_room(room, map.len().saturating_mul(16))?;
                for position in 0..map.positions() {
                    let Some((key, held)) = map.entry(position) else { continue };
                    self.key_part(key, levels - 1, room)?;
                    self.key_part(held, levels - 1, room)?;
                }
                Ok(value)
            }
            Value::Set(set) => {
                take_room(room, set.len().saturating_mul(8))?;
                for member in set.iter() {
                    self.key_part(member, levels - 1, room)?;
                }
                Ok(value)
            }
            _ => Ok(value),
        }
    }

    fn key_within_or_scalar(&mut self, value: Value, levels: u32, room: &mut u64) -> Outcome<Value> {
        if value.is_scalar() {
            self.key_scalar(&value, room)?;
            self.charge(1)?;
            return Ok(value);
        }
        self.key_within(value, levels, room)
    }

    /// Counts a scalar inside a key: a long text counts as several values.
    #[inline]
    fn key_scalar(&mut self, value: &Value, room: &mut u64) -> Outcome<()> {
        match hashing_effort(value) {
            0 => Ok(()),
            steps => {
                take_room(room, usize::try_from(steps.saturating_mul(4)).unwrap_or(usize::MAX))?;
                self.charge(steps)
            }
        }
    }

    /// Checks a value inside a map or set that becomes a key.
    fn key_part(&mut self, value: &Value, levels: u32, room: &mut u64) -> Outcome<()> {
        self.key_scalar(value, room)?;
        if value.is_scalar() {
            return self.charge(1);
        }
        let fit = self.key_within(value.clone(), levels, room)?;
        if self.is_lazy(value) {
            return Err(Error::expected("data without lazy sequences inside a key", &fit).into());
        }
        Ok(())
    }

    /// Evaluates `(get record key)` where the key is likely the name of a field, such as a keyword that is called. A key
    /// that the record lacks is remembered for the notes in the reply.
    ///
    /// # Errors
    /// As [`Machine::look_up`].
    #[inline]
    pub(crate) fn field(&mut self, record: &Value, key: &Value) -> Outcome<Value> {
        let found = self.look_up(record, key, Value::Nil)?;
        if found.is_nil() {
            self.note_missing(record, key);
        }
        Ok(found)
    }

    #[inline(never)]
    fn note_missing(&mut self, record: &Value, key: &Value) {
        match (record, key) {
            (Value::Str(_) | Value::Char(_), Value::Keyword(name)) => self.core.look_ups.in_text(name, false),
            (_, Value::Keyword(name)) => {
                if let Some(map) = self.lacking(record, key) {
                    self.core.look_ups.missed(name, map, false);
                }
            }
            _ => {}
        }
    }

    /// Returns the map in which the last look-up was, if it was in a map that lacks the key.
    pub(super) fn lacking<'m>(&self, collection: &'m Value, key: &Value) -> Option<&'m Map> {
        let (Value::Map(map), Value::Keyword(name)) = (collection, key) else { return None };
        match (map.as_shaped(), &self.missed) {
            // `look_up` has just remembered it.
            (Some((shape, _)), Some((Value::Keyword(missed), last))) => {
                (Arc::ptr_eq(shape, last) && missed.address() == name.address()).then_some(map)
            }
            (Some(_), _) => None,
            (None, _) => map.get(key).is_none().then_some(map),
        }
    }

    /// Evaluates `(get coll key default)`.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded, and the errors of [`Machine::key`] for a key that is not a scalar.
    pub(crate) fn look_up(&mut self, collection: &Value, key: &Value, default: Value) -> Outcome<Value> {
        self.charge(1)?;
        let realised;
        let key = if key.is_scalar() {
            self.charge_scalar(key)?;
            key
        } else {
            realised = self.key(key.clone())?;
            &realised
        };
        if let (Value::Map(map), Value::Keyword(name)) = (collection, key)
            && let Some(value) = map.get_near(key, &mut self.place)
        {
            self.core.look_ups.hit(name);
            return Ok(value.clone());
        }
        Ok(match collection {
            Value::Cell(cell) if cell.is_unknown() => return Err(self.depends_on(cell)),
            Value::Map(map) => match self.entry_in(map, key)? {
                Some((_, value)) => {
                    let value = value.clone();
                    self.core.look_ups.hit_key(key);
                    value
                }
                None => {
                    self.note_miss(key, map);
                    default
                }
            },
            Value::Set(set) => self.member_in(set, key)?.cloned().unwrap_or(default),
            Value::Vector(vector) => match key {
                Value::Int(index) => {
                    usize::try_from(*index).ok().and_then(|at| vector.get(at)).cloned().unwrap_or(default)
                }
                _ => default,
            },
            Value::Str(text) => match place_in_text(key) {
                Some(index) => {
                    self.charge(text.finding_effort())?;
                    let place = text.place_of(index);
                    place.and_then(|at| text.as_str()[at..].chars().next()).map_or(default, Value::Char)
                }
                None => default,
            },
            Value::Exception(error) => match key {
                Value::Keyword(name) if name.as_str() == "message" => Value::string(&error.message),
                Value::Keyword(name) if name.as_str() == "error" => Value::string(&error.code),
                _ => match error.data() {
                    Value::Map(map) => match map.get(key) {
                        Some(value) => value.clone(),
                        None => {
                            self.note_miss(key, map);
                            default
                        }
                    },
                    _ => default,
                },
            },
            Value::Cell(_) => match transients::content(self, collection)? {
                Some(content) => return self.look_up(&content, key, default),
                None => default,
            },
            _ => default,
        })
    }
}

/// Maximum number of values in a key of a map or a member of a set, at any depth. A shared value counts once per
/// occurrence, a collection as eight values, a member of a set as eight and an entry of a map as sixteen. The bound
/// matters because the deadline is not checked while such a key is hashed or compared.
const KEY_SIZE: u64 = 1 << 22;

/// Counts values against the size limit of a key.
fn take_room(room: &mut u64, values: usize) -> Result<(), Error> {
    match room.checked_sub(values as u64) {
        Some(rest) => {
            *room = rest;
            Ok(())
        }
        None => Err(Error::new(
            "KeyTooLarge",
            format!("a key of a map or a member of a set may hold at most {KEY_SIZE} values"),
        )
        .suggest("use something that identifies it, such as an id or `(hash x)`")),
    }
}

/// Returns the character index that a key denotes; fractions are truncated.
pub fn place_in_text(key: &Value) -> Option<usize> {
    match key {
        Value::Int(index) => usize::try_from(*index).ok(),
        Value::Float(index) if *index > -1.0 => Some(index.max(0.0) as usize),
        _ => None,
    }
}

#[cold]
fn not_a_sequence(value: &Value) -> Error {
    let error = Error::expected("a collection", value);
    let is_transducer = matches!(value, Value::Bound(bound) if bound.role() == Role::Transducer);
    if is_transducer {
        return error.suggest(
            "the collection is missing: `(map f)` and `(filter p)` alone are transducers, write `(map f xs)`",
        );
    }
    if value.is_function() {
        return error.suggest("a function was passed instead of data: call it in brackets, or swap the arguments");
    }
    error
}

/// Returns the remaining items of a cursor as a sequence; reserves memory if that requires a copy, as for more than four
/// billion of them.
pub(crate) fn rest_of(machine: &mut Machine, cursor: Cursor) -> Outcome<Value> {
    let copied = cursor.copied_rest() as u64;
    machine.reserve_values(copied)?;
    machine.charge(copied / 16)?;
    Ok(cursor.into_rest())
}
