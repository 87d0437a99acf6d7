//! The key layout that small maps and records share.
//!
//! A hundred thousand JSON objects with the same keys hold one [`Shape`] and a block of values each.
//! Adding a key leads from one shape to the next; a shape remembers the first few of these steps, so
//! that maps built the same way share their shapes too.

use super::Value;
use super::map::Map;
use super::release::{Debris, release};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many steps to other shapes are remembered.
const STEPS: usize = 8;

/// Keys in the order of insertion.
#[derive(Default)]
pub struct Shape {
    keys: Vec<Value>,
    /// What `meta` gives for a map of this shape.
    metadata: Option<Arc<Map>>,
    /// True for the maps that came from JSON.
    is_record: bool,
    steps: Mutex<Vec<Weak<Shape>>>,
}

impl Shape {
    /// The shape of these keys, which are all different.
    pub fn new(keys: Vec<Value>) -> Arc<Shape> {
        Arc::new(Shape::made(keys, None, false))
    }

    /// The shape of these keys, which are all different, for records.
    pub fn of_records(keys: Vec<Value>) -> Arc<Shape> {
        Arc::new(Shape::made(keys, None, true))
    }

    fn made(keys: Vec<Value>, metadata: Option<Arc<Map>>, is_record: bool) -> Shape {
        Shape { keys, metadata, is_record, steps: Mutex::default() }
    }

    /// The keys in order.
    pub fn keys(&self) -> &[Value] {
        &self.keys
    }

    /// Where that key's value stands.
    #[inline]
    pub fn position(&self, key: &Value) -> Option<usize> {
        super::equal::owe_for_scan(key, self.keys.len());
        self.keys.iter().position(|known| known == key)
    }

    /// The shape with one more key.
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

    /// The same keys for records.
    pub fn to_record(self: &Arc<Self>) -> Arc<Shape> {
        let leads_there = |next: &Arc<Shape>| next.keys.len() == self.keys.len();
        self.step(true, leads_there, || Shape::made(self.keys.clone(), self.metadata.clone(), true))
    }

    /// The shape to which a step leads, which is made where it is not remembered, and remembered if it may be.
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

    /// The shape without the key at that position.
    pub fn without(&self, position: usize) -> Arc<Shape> {
        let mut keys = self.keys.clone();
        keys.remove(position);
        Arc::new(Shape::made(keys, self.metadata.clone(), self.is_record))
    }

    /// True for the maps that came from JSON.
    #[inline]
    pub fn is_record(&self) -> bool {
        self.is_record
    }

    /// What `meta` gives for a map of this shape.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        self.metadata.as_ref()
    }

    /// The same keys with other metadata.
    pub fn annotated(&self, metadata: Option<Arc<Map>>) -> Arc<Shape> {
        Arc::new(Shape::made(self.keys.clone(), metadata, self.is_record))
    }
}

/// True for two keys of which nothing tells which is which. Equality is not enough: `1` and `1N`, `1.0M` and `1.00M`,
/// `0.0` and `-0.0`, a symbol and the same one with metadata are equal, and print as they are.
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
            release(metadata, Debris::Metadata);
        }
    }
}
