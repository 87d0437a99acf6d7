//! The columns of a table whose rows become records.

use super::Value;
use super::map::{Map, SMALL};
use super::shape::Shape;
use std::sync::Arc;

/// The keys of records of one layout, with the hidden class that all of them share if they are few.
pub struct Columns {
    /// The keys, which are distinct.
    pub keys: Vec<Value>,
    shape: Option<Arc<Shape>>,
}

impl Columns {
    /// Creates the columns from distinct keys.
    pub fn new(keys: Vec<Value>) -> Columns {
        let shape = (keys.len() <= SMALL).then(|| Shape::of_records(keys.clone()));
        Columns { keys, shape }
    }

    /// Returns the map of a row with as many values as there are columns.
    pub fn map(&self, values: Vec<Value>) -> Map {
        match &self.shape {
            Some(shape) => Map::with_shape(shape.clone(), values),
            None => self.keys.iter().cloned().zip(values).collect(),
        }
    }
}
