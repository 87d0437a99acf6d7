//! Dispatch on arguments: multimethods, protocols, and the hierarchies that order dispatch values.
//!
//! A multimethod is data: a bound builtin whose arguments are an atom with its methods, its name, its dispatch
//! function, its default and its hierarchy. A protocol function is a multimethod that dispatches on the type of its
//! first argument. Both therefore survive snapshots, and a failing form rolls back the methods that it added.

pub mod hierarchy;
pub mod methods;
pub mod objects;
pub mod protocols;
