//! Calls of Java's methods that the language has as functions: `(.length s)`.

use super::Resolver;
use crate::error::Outcome;
use crate::form::Form;
use crate::native::Conduct;
use crate::node::{CallBuiltin, Node};
use crate::span::Span;
use crate::value::Value;

impl Resolver<'_> {
    /// Creates the node of a call of a method, which looks at its object first: nil has no methods, and a record may have a
    /// field or a method of that name.
    pub(super) fn call_of_method(
        &mut self,
        head: &Form,
        callee: Node,
        arguments: Box<[Node]>,
        span: Span,
    ) -> Outcome<Node> {
        let mut all = Vec::with_capacity(arguments.len() + 2);
        all.push(Node::Constant(Value::symbol(head.as_symbol().unwrap_or_default())));
        all.push(callee);
        all.extend(arguments);
        let builtin = self.internal("core/object-call*")?;
        Ok(Node::CallBuiltin(Box::new(CallBuiltin { builtin, native: None, arguments: all.into(), span })))
    }
}

/// True for the head and the function of a call such as `(.length s)`. JavaScript's methods that call a function are
/// called like other functions, whose calls plans and partial reads know.
pub(super) fn is_method(head: &Form, callee: &Node, arguments: &[Form]) -> bool {
    let is_plain = match callee {
        Node::Constant(Value::Builtin(builtin)) => {
            let calls_no_function = matches!(
                builtin.conduct,
                Conduct::Any | Conduct::Same | Conduct::Collects | Conduct::Take | Conduct::Integer
            );
            calls_no_function && !builtin.is_internal()
        }
        // A function of the prelude.
        Node::Constant(Value::Closure(_)) => true,
        _ => false,
    };
    is_plain && !arguments.is_empty() && head.as_symbol().is_some_and(|name| name.len() > 1 && name.starts_with('.'))
}
