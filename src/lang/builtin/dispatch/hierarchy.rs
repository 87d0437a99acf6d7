//! Hierarchies: parent relations between keywords, symbols and types.

use crate::builtin::arguments::take;
use crate::builtin::types;
use crate::error::{Error, Outcome};
use crate::heap::{CellKind, State};
use crate::machine::Machine;
use crate::native::Builtin;
use crate::value::Value;
use crate::value::map::Map;
use crate::value::set::Set;
use std::sync::Arc;

/// Builtins defined in this module.
pub const TABLE: &[Builtin] = &[
    Builtin::new(
        "derive",
        &["[tag parent]", "[hierarchy tag parent]"],
        "Makes `tag` a child of `parent` for all multimethods, or returns a hierarchy with that relation.",
        &[
            ("(derive ::square ::shape) (isa? ::square ::shape)", "true"),
            ("(isa? (derive (make-hierarchy) :a :b) :a :b)", "true"),
        ],
        derive,
    ),
    Builtin::new(
        "underive",
        &["[tag parent]", "[hierarchy tag parent]"],
        "Removes a `derive` relation.",
        &[("(derive :a :b) (underive :a :b) (isa? :a :b)", "false")],
        underive,
    ),
    Builtin::new(
        "make-hierarchy",
        &["[]"],
        "An empty hierarchy.",
        &[("(make-hierarchy)", "{:parents {}, :descendants {}, :ancestors {}}")],
        |machine, _| of_parents(machine, Arc::default()),
    ),
    Builtin::new(
        "isa?",
        &["[child parent]", "[hierarchy child parent]"],
        "True if the two are equal, `child` derives from `parent`, or both are vectors with pairwise `isa?` items.",
        &[("(isa? :a :a)", "true"), ("(isa? Long Number)", "true"), ("(isa? [1 :a] [1 :b])", "false")],
        |machine, arguments| {
            let hierarchy = given(machine, arguments, 3)?;
            let [.., child, parent] = arguments else { return Ok(Value::Nil) };
            is_a(machine, &hierarchy, child, parent).map(Value::Bool)
        },
    ),
    Builtin::new(
        "parents",
        &["[tag]", "[hierarchy tag]"],
        "The direct parents of the tag, as a set; nil if none.",
        &[("(parents (derive (make-hierarchy) :a :b) :a)", "#{:b}")],
        |machine, arguments| relatives(machine, arguments, "parents"),
    ),
    Builtin::new(
        "ancestors",
        &["[tag]", "[hierarchy tag]"],
        "All ancestors of the tag, as a set; nil if none.",
        &[("(ancestors (derive (derive (make-hierarchy) :a :b) :b :c) :a)", "#{:b :c}")],
        |machine, arguments| relatives(machine, arguments, "ancestors"),
    ),
    Builtin::new(
        "descendants",
        &["[tag]", "[hierarchy tag]"],
        "All descendants of the tag, as a set; nil if none.",
        &[("(descendants (derive (make-hierarchy) :a :b) :b)", "#{:a}")],
        |machine, arguments| relatives(machine, arguments, "descendants"),
    ),
];

/// Returns the parents of each tag: of the hierarchy passed as the first of `count` arguments, or else of the session's
/// hierarchy.
fn given(machine: &mut Machine, arguments: &[Value], count: usize) -> Outcome<Arc<Map>> {
    if arguments.len() < count { session_parents(machine) } else { Ok(relation_of(&arguments[0], "parents")) }
}

/// Returns the parents of each tag in the session's hierarchy.
pub fn session_parents(machine: &mut Machine) -> Outcome<Arc<Map>> {
    let Value::Cell(cell) = machine.core.globals.hierarchy.clone() else { return Ok(Arc::default()) };
    match machine.core.heap.state(&cell)? {
        State::Done(Value::Map(parents)) => Ok(parents.clone()),
        State::Done(Value::Vector(both)) => match both.get(0) {
            Some(Value::Map(parents)) => Ok(parents.clone()),
            _ => Ok(Arc::default()),
        },
        _ => Ok(Arc::default()),
    }
}

/// Returns all tags that are or once were a parent in the session's hierarchy. A hierarchy from an older snapshot lacks
/// this set; it is then computed from the current parents.
fn session_above(machine: &mut Machine) -> Outcome<Arc<Set>> {
    if let Value::Cell(cell) = machine.core.globals.hierarchy.clone()
        && let State::Done(Value::Vector(both)) = machine.core.heap.state(&cell)?
        && let Some(Value::Set(above)) = both.get(1)
    {
        return Ok(above.clone());
    }
    let mut above = Set::default();
    for (_, parents) in session_parents(machine)?.iter() {
        let Value::Set(parents) = parents else { continue };
        for parent in parents.iter() {
            machine.charge(1)?;
            above.insert(parent.clone());
        }
    }
    Ok(Arc::new(above))
}

/// Returns one of the three relations of a hierarchy; empty if the value is not a hierarchy.
fn relation_of(hierarchy: &Value, name: &str) -> Arc<Map> {
    match hierarchy {
        Value::Map(map) => match map.get(&Value::keyword(name)) {
            Some(Value::Map(relation)) => relation.clone(),
            _ => Arc::default(),
        },
        _ => Arc::default(),
    }
}

/// Checks that a value is a hierarchy with all its relations.
fn check_hierarchy(hierarchy: &Value) -> Result<(), Error> {
    let has = |name: &str| match hierarchy {
        Value::Map(map) => matches!(map.get(&Value::keyword(name)), Some(Value::Map(_))),
        _ => false,
    };
    match RELATIONS.into_iter().all(has) {
        true => Ok(()),
        false => Err(Error::expected("a hierarchy, as `make-hierarchy` makes it", hierarchy)),
    }
}

/// Checks a derivation: a tag is a name or a type; a parent is a name but not a type, because the relations between
/// types are fixed.
fn check_tags(tag: &Value, parent: &Value) -> Result<(), Error> {
    let is_name = |value: &Value| value.as_name().is_some();
    if !is_name(tag) {
        return Err(Error::expected("a keyword, a symbol or a type as the tag", tag));
    }
    if !is_name(parent) || types::is_class(parent) {
        return Err(Error::expected("a keyword or a symbol as the parent", parent));
    }
    Ok(())
}

fn set_at(map: &Map, key: &Value) -> Arc<Set> {
    match map.get(key) {
        Some(Value::Set(set)) => set.clone(),
        _ => Arc::default(),
    }
}

/// Returns all ancestors of a tag, by depth-first search.
fn reach(machine: &mut Machine, parents: &Map, tag: &Value) -> Outcome<Set> {
    let mut found = Set::default();
    let mut waiting = vec![tag.clone()];
    while let Some(tag) = waiting.pop() {
        for parent in set_at(parents, &tag).iter() {
            machine.charge(1)?;
            if found.insert(parent.clone()) {
                waiting.push(parent.clone());
            }
        }
    }
    Ok(found)
}

/// Names of the relations of a hierarchy.
const RELATIONS: [&str; 3] = ["parents", "descendants", "ancestors"];

/// Builds a hierarchy from its parents: a map of the three relations.
fn of_parents(machine: &mut Machine, parents: Arc<Map>) -> Outcome<Value> {
    let (mut ancestors, mut descendants) = (Map::default(), Map::default());
    for (tag, _) in parents.iter() {
        let reached = reach(machine, &parents, tag)?;
        for ancestor in reached.iter() {
            machine.charge(1)?;
            let mut below = (*set_at(&descendants, ancestor)).clone();
            below.insert(tag.clone());
            descendants.insert(ancestor.clone(), Value::Set(Arc::new(below)));
        }
        ancestors.insert(tag.clone(), Value::Set(Arc::new(reached)));
    }
    let relations = [parents, Arc::new(descendants), Arc::new(ancestors)];
    let hierarchy: Map =
        RELATIONS.into_iter().zip(relations).map(|(name, map)| (Value::keyword(name), Value::Map(map))).collect();
    Ok(Value::Map(Arc::new(hierarchy)))
}

fn derive(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    change(machine, arguments, |machine, parents, above, tag, parent| {
        check_tags(tag, parent)?;
        // A tag without descendants cannot be an ancestor of its parent, so the cycle check can be skipped.
        let may_be_above = above.is_none_or(|above| above.contains(tag));
        if tag == parent || may_be_above && reach(machine, parents, parent)?.contains(tag) {
            return Err(Error::new("CyclicDerivation", format!("{parent:?} is a kind of {tag:?} already")).into());
        }
        let mut set = (*set_at(parents, tag)).clone();
        if !set.contains(parent) && reach(machine, parents, tag)?.contains(parent) {
            let error = Error::new("RedundantDerivation", format!("{tag:?} is a kind of {parent:?} already"));
            return Err(error.suggest("leave this `derive` out: earlier calls already imply it").into());
        }
        set.insert(parent.clone());
        parents.insert(tag.clone(), Value::Set(Arc::new(set)));
        Ok(())
    })
}

fn underive(machine: &mut Machine, arguments: &mut [Value]) -> Outcome<Value> {
    change(machine, arguments, |_, parents, _, tag, parent| {
        let mut set = (*set_at(parents, tag)).clone();
        set.remove(parent);
        if set.is_empty() {
            parents.remove(tag);
        } else {
            parents.insert(tag.clone(), Value::Set(Arc::new(set)));
        }
        Ok(())
    })
}

/// A change to the parents of each tag; receives the set of all tags that are or were parents, if known.
type Change = fn(&mut Machine, &mut Map, Option<&Set>, &Value, &Value) -> Outcome<()>;

fn change(machine: &mut Machine, arguments: &mut [Value], change: Change) -> Outcome<Value> {
    let of_session = arguments.len() == 2;
    if !of_session {
        check_hierarchy(&arguments[0])?;
    }
    let mut parents = (*given(machine, arguments, 3)?).clone();
    let [.., tag, parent] = arguments else { return Ok(Value::Nil) };
    let (tag, parent) = (machine.key(std::mem::take(tag))?, machine.key(std::mem::take(parent))?);
    if !of_session {
        change(machine, &mut parents, None, &tag, &parent)?;
        return of_parents(machine, Arc::new(parents));
    }
    let mut above = session_above(machine)?;
    change(machine, &mut parents, Some(&above), &tag, &parent)?;
    Arc::make_mut(&mut above).insert(parent);
    let parents = State::Done(Value::vector(vec![Value::Map(Arc::new(parents)), Value::Set(above)]));
    match machine.core.globals.hierarchy.clone() {
        Value::Cell(cell) => {
            machine.core.heap.change(&cell, parents)?;
        }
        _ => {
            let cell = machine.core.heap.allocate(CellKind::Atom, parents);
            machine.core.globals.set_hierarchy(Value::Cell(cell));
        }
    }
    Ok(Value::Nil)
}

fn relatives(machine: &mut Machine, arguments: &mut [Value], relation: &str) -> Outcome<Value> {
    let parents = given(machine, arguments, 2)?;
    let Value::Map(hierarchy) = of_parents(machine, parents)? else { return Ok(Value::Nil) };
    let [.., tag] = arguments else { return Ok(Value::Nil) };
    let tag = take(std::slice::from_mut(tag), 0);
    if relation == "descendants" && types::is_class(&tag) {
        let error = Error::new("IllegalArgument", "the descendants of a type are not known");
        return Err(error.suggest("`(isa? child Type)` asks about one").into());
    }
    let Some(Value::Map(of)) = hierarchy.get(&Value::keyword(relation)) else { return Ok(Value::Nil) };
    let tag = machine.key(tag)?;
    Ok(of.get(&tag).cloned().unwrap_or_default())
}

/// True if `child` is a kind of `parent`.
///
/// # Errors
/// Halts if a resource limit is exceeded.
pub fn is_a(machine: &mut Machine, parents: &Map, child: &Value, parent: &Value) -> Outcome<bool> {
    let mut waiting = vec![(child.clone(), parent.clone())];
    while let Some((child, parent)) = waiting.pop() {
        machine.charge(1)?;
        if machine.equal(&child, &parent)? {
            continue;
        }
        match (&child, &parent) {
            (Value::Vector(a), Value::Vector(b)) if a.len() == b.len() => {
                waiting.extend(a.iter().cloned().zip(b.iter().cloned()));
                continue;
            }
            (Value::Symbol(a), Value::Symbol(b)) if types::is_kind_of(a.as_str(), b.as_str()) => continue,
            _ => {}
        }
        let child = machine.key(child)?;
        let reached = reach(machine, parents, &child)?;
        let by_type = |above: &Value| match (above, &parent) {
            (Value::Symbol(a), Value::Symbol(b)) => types::is_kind_of(a.as_str(), b.as_str()),
            _ => false,
        };
        if !reached.contains(&parent) && !reached.iter().any(by_type) {
            return Ok(false);
        }
    }
    Ok(true)
}
