//! Enumerates the direct children of a value: the only place that knows them for every kind of value. The heap's cycle
//! collector and the snapshot encoder use it.

use super::Value;
use super::list::List;
use std::sync::Arc;

/// Ownership of a child by its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The parent is the only owner of this reference, which therefore counts exactly once towards the child's
    /// reference count.
    Counted,
    /// Other nodes may share this reference with the parent, so it cannot be attributed to one owner.
    Shared,
}

impl Value {
    /// Visits each value that this one refers to directly, including metadata. The content of a cell is not included
    /// because the heap owns it. Code refers to no value that leads to a cell; functions capture such values
    /// ([`Meaning::Held`](crate::resolve::Meaning)).
    pub(crate) fn for_each_child(&self, visit: &mut impl FnMut(&Value, Hold)) {
        let metadata = match self {
            Value::List(list) => {
                match &**list {
                    List::Cons(cons) => [&cons.head, &cons.tail].into_iter().for_each(|v| visit(v, Hold::Counted)),
                    List::Items { items, start } => {
                        let hold = hold_if(*start == 0 && Arc::strong_count(items) == 1);
                        items.as_slice()[*start..].iter().for_each(|item| visit(item, hold));
                    }
                    List::View(view) => visit(view.source(), Hold::Counted),
                    List::Range { .. } => {}
                }
                list.metadata()
            }
            Value::Vector(vector) => {
                let hold = hold_if(vector.owns_items());
                vector.iter().for_each(|item| visit(item, hold));
                vector.metadata()
            }
            Value::Map(map) => {
                if let Some(order) = map.order() {
                    visit(&order.comparator, Hold::Shared);
                }
                let hold = hold_if(map.as_shaped().is_some());
                for (key, value) in map.iter() {
                    visit(key, Hold::Shared);
                    visit(value, hold);
                }
                map.metadata()
            }
            Value::Set(set) => {
                if let Some(order) = set.order() {
                    visit(&order.comparator, Hold::Shared);
                }
                set.iter().for_each(|member| visit(member, Hold::Shared));
                set.metadata()
            }
            Value::Closure(closure) => {
                let hold = hold_if(Arc::strong_count(&closure.captures) == 1);
                closure.captures.as_slice().iter().for_each(|value| visit(value, hold));
                None
            }
            Value::Bound(bound) => {
                bound.arguments.iter().for_each(|value| visit(value, Hold::Counted));
                None
            }
            Value::Exception(error) => {
                visit(error.data(), Hold::Shared);
                visit(error.cause(), Hold::Shared);
                None
            }
            Value::Reduced(held) => {
                visit(&held.0, Hold::Counted);
                None
            }
            Value::Annotated(symbol) => Some(&symbol.metadata),
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Str(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::BigInt(_)
            | Value::Decimal(_)
            | Value::Time(_)
            | Value::Regex(_)
            | Value::Builtin(_)
            | Value::Native(_)
            | Value::Tool(_)
            | Value::Var(_)
            | Value::Cell(_)
            | Value::Lazy(_) => None,
        };
        if let Some(metadata) = metadata {
            visit(&Value::Map(metadata.clone()), Hold::Shared);
        }
    }
}

fn hold_if(is_counted: bool) -> Hold {
    if is_counted { Hold::Counted } else { Hold::Shared }
}
