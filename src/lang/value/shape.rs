//! The key layout that small maps and records share.
//!
//! A hundred thousand JSON objects with the same keys hold one [`Shape`] and a block of values each.
//! Adding a key leads from one shape to the next; a shape remembers the first few of these steps, so
//! that maps built the same way share their shapes too.

use super::Value;
use super::map::Map;
use super::release::{Debris, release};
use std::sync::{Arc, Mutex, Weak};

/// How many steps to other shapes are remembered.
const STEPS: usize = 8;

/// Keys in the order of insertion.
#[derive(Default)]
pub struct Shape {
    keys: Vec<Value>,
    /// What `meta` gives for a map of this shape.
    metadata: Option<Arc<Map>>,
    steps: Mutex<Vec<Weak<Shape>>>,
}

impl Shape {
    /// The shape of these keys, which are all different.
    pub fn new(keys: Vec<Value>) -> Arc<Shape> {
        Arc::new(Shape { keys, metadata: None, steps: Mutex::default() })
    }

    /// The keys in order.
    pub fn keys(&self) -> &[Value] {
        &self.keys
    }

    /// Where that key's value stands.
    #[inline]
    pub fn position(&self, key: &Value) -> Option<usize> {
        self.keys.iter().position(|known| known == key)
    }

    /// The shape with one more key.
    pub fn with(self: &Arc<Self>, key: &Value) -> Arc<Shape> {
        let mut steps = match self.steps.lock() {
            Ok(steps) => steps,
            Err(poisoned) => poisoned.into_inner(),
        };
        let known = steps.iter().filter_map(Weak::upgrade).find(|next| next.keys.last() == Some(key));
        if let Some(next) = known {
            return next;
        }
        let mut keys = Vec::with_capacity(self.keys.len() + 1);
        keys.extend(self.keys.iter().cloned());
        keys.push(key.clone());
        let next = Arc::new(Shape { keys, metadata: self.metadata.clone(), steps: Mutex::default() });
        steps.retain(|step| step.strong_count() > 0);
        if key.is_scalar() && steps.len() < STEPS {
            steps.push(Arc::downgrade(&next));
        }
        next
    }

    /// The shape without the key at that position.
    pub fn without(&self, position: usize) -> Arc<Shape> {
        let mut keys = self.keys.clone();
        keys.remove(position);
        Arc::new(Shape { keys, metadata: self.metadata.clone(), steps: Mutex::default() })
    }

    /// What `meta` gives for a map of this shape.
    pub fn metadata(&self) -> Option<&Arc<Map>> {
        self.metadata.as_ref()
    }

    /// The same keys with other metadata.
    pub fn annotated(&self, metadata: Option<Arc<Map>>) -> Arc<Shape> {
        Arc::new(Shape { keys: self.keys.clone(), metadata, steps: Mutex::default() })
    }
}

impl Drop for Shape {
    fn drop(&mut self) {
        if let Some(metadata) = self.metadata.take() {
            release(metadata, Debris::Metadata);
        }
    }
}
