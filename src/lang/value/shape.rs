//! The key layout (hidden class) that small maps and records share.
//!
//! A hundred thousand JSON objects with the same keys hold one [`Shape`] and one block of values each. Adding a key is
//! a transition to another shape. A shape caches its first few transitions, so that maps built in the same order share
//! their shapes.

use super::Value;
use super::map::Map;
use super::release::{DeferredDrop, release};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Maximum number of cached transitions per shape.
const STEPS: usize = 8;

/// Keys in insertion order, with the metadata and the record flag of their maps.
#[derive(Default)]
pub struct Shape {
    keys: Vec<Value>,
    /// The metadata of a map of this shape.
    metadata: Option<Arc<Map>>,
    /// True for the shapes of records decoded from JSON.
    is_record: bool,
    steps: Mutex<Vec<Weak<Shape>>>,
}

impl Shape {
    /// Creates the shape of plain maps with these distinct keys.
    pub fn new(keys: Vec<Value>) -> Arc<Shape> {
        Arc::new(Shape::made(keys, None, false))
    }

    /// Creates the shape of records with these distinct keys.
    pub fn of_records(keys: Vec<Value>) -> Arc<Shape> {
        Arc::new(Shape::made(keys, None, true))
    }

    fn made(keys: Vec<Value>, metadata: Option<Arc<Map>>, is_record: bool) -> Shape {
        Shape { keys, metadata, is_record, steps: Mutex::default() }
    }

    /// Returns the keys in insertion order.
    pub fn keys(&self) -> &[Value] {
        &self.keys
    }

    /// Returns the index of the value of `key`.
    #[inline]
    pub fn position(&self, key: &Value) -> Option<usize> {
        super::equal::owe_for_scan(key, self.keys.len());
        self.keys.iter().position(|known| known == key)
    }

    /// Returns the shape with one more key appended.
    pub fn with(self: &Arc<Self>, key: &Value) -> Arc<Shape> {
        let adds_key = |next: &Arc<Shape>| next.keys.last().is_some_and(|last| is_same(last, key));
        let leads_there = |next: &Arc<Shape>| next.keys.len() > self.keys.len() && adds_key(next);
        self.step(key.is_scalar(), leads_there, || {
            let mut keys = Vec::with_capacity(self.keys.len() + 1);
            keys.extend(self.keys.iter().cloned());
            keys.push(key.clone());
            Shape::made(keys, self.metadata.clone(), self.is_record)
        })
    }

    /// Returns the shape of records with the same keys.
    pub fn to_record(self: &Arc<Self>) -> Arc<Shape> {
        let leads_there = |next: &Arc<Shape>| next.keys.len() == self.keys.len();
        self.step(true, leads_there, || Shape::made(self.keys.clone(), self.metadata.clone(), true))
    }

    /// Follows a cached transition that satisfies `leads_there`, or creates the target shape. Caches the new transition
    /// if `is_remembered` holds and there is room.
    fn step(
        &self,
        is_remembered: bool,
        leads_there: impl Fn(&Arc<Shape>) -> bool,
        make: impl FnOnce() -> Shape,
    ) -> Arc<Shape> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = steps.iter().filter_map(Weak::upgrade).find(leads_there) {
            return next;
        }
        let next = Arc::new(make());
        steps.retain(|step| step.strong_count() > 0);
        if is_remembered && steps.len() < STEPS {
            steps.push(Arc::downgrade(&next));
        }
        next
    }

    /// Returns the shape without the key at that position.
    pub fn without(&self, position: usize) -> Arc<Shape> {
        let mut keys = self.keys.clone();
        keys.remove(position);
        Arc::new(Shape::made(keys, self.metadata.clone(), self.is_record))
    }

    /// True for the shapes of records decoded from JSON.
    #[inline]
    pub fn is_record(&self) -> bool {
        self.is_record
    }

    /// The metadata of a map of this shape.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        self.metadata.as_ref()
    }

    /// Returns the shape with the same keys and the given metadata.
    pub fn annotated(&self, metadata: Option<Arc<Map>>) -> Arc<Shape> {
        Arc::new(Shape::made(self.keys.clone(), metadata, self.is_record))
    }
}

/// True if two keys are indistinguishable to programs. Equality alone is not sufficient: `1` and `1N`, `1.0M` and
/// `1.00M`, `0.0` and `-0.0`, or a symbol with and without metadata are equal but print differently. Meaningful for
/// scalar keys only.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Keyword(a), Value::Keyword(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Decimal(a), Value::Decimal(b)) => a.as_bigint_and_scale() == b.as_bigint_and_scale(),
        (Value::Annotated(a), Value::Annotated(b)) => Arc::ptr_eq(a, b),
        (Value::Time(a), Value::Time(b)) => a == b && a.to_string() == b.to_string(),
        _ => discriminant(left) == discriminant(right) && left == right,
    }
}

impl Drop for Shape {
    fn drop(&mut self) {
        if let Some(metadata) = self.metadata.take() {
            release(metadata, DeferredDrop::Metadata);
        }
    }
}
