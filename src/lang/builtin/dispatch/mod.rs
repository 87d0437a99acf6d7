//! Functions that choose by what they are given: multimethods, protocols, and the hierarchies between
//! the values that they choose by.
//!
//! A multimethod is data: a bound builtin whose arguments are an atom of its methods, its name, its
//! dispatch function and its default. A protocol's function is one that dispatches on the type of its
//! first argument. So both survive a snapshot, and a form that fails undoes the methods that it added.

pub mod hierarchy;
pub mod methods;
pub mod objects;
pub mod protocols;
