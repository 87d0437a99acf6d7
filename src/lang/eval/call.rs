//! Calls: of functions, of builtins by value, and of every other callable value.

use super::arity::closure_arity;
use super::lazy::rest_of;
use super::transients;
use super::{Machine, NODES_A_CALL};
use crate::error::{Error, Outcome, Raised, Signal, describe};
use crate::host::panic_text;
use crate::machine::{Answer, Frame, Stopped, Walked, here};
use crate::meter;
use crate::native::{Builtin, Native};
use crate::node::{Arity, Code};
use crate::span::{Source, Span};
use crate::value::Value;
use crate::value::function::Closure;
use crate::value::list::List;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The location of a call.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub source: &'a Arc<Source>,
    pub span: Span,
}

/// The progress of a chain of tail calls, in which each function replaces the one before.
struct TailChain {
    running: Arc<Closure>,
    /// The prelude function through which the program, or the prelude, entered the prelude.
    entered: Arc<Closure>,
    /// The last function outside the prelude that made a tail call into the prelude, with the location of that call.
    left: Option<(Arc<Closure>, Span)>,
}

impl Machine {
    /// Calls `callee` with these arguments.
    ///
    /// # Errors
    /// Returns what the call raises; `NotCallable` if `callee` cannot be called; `ArityError` if it does not accept
    /// that many arguments.
    pub fn call(&mut self, callee: &Value, arguments: &mut [Value]) -> Outcome<Value> {
        self.charge(1)?;
        match callee {
            Value::Closure(closure) => {
                self.pay_for_arguments(arguments.len())?;
                let base = self.stack.len();
                self.stack.extend(arguments.iter_mut().map(std::mem::take));
                let walked = self.apply_closure(closure, base, None);
                self.outcome(walked)
            }
            _ => self.apply_slice(callee, arguments),
        }
    }

    /// Calls `callee` with one argument.
    ///
    /// # Errors
    /// As [`Machine::call`].
    #[inline]
    pub fn call1(&mut self, callee: &Value, argument: Value) -> Outcome<Value> {
        self.call(callee, &mut [argument])
    }

    /// Calls `callee` with one argument that the caller keeps.
    ///
    /// # Errors
    /// As [`Machine::call`].
    #[inline]
    pub(crate) fn call_on(&mut self, callee: &Value, argument: &Value) -> Outcome<Value> {
        if let Value::Keyword(_) = callee {
            self.charge(1)?;
            return self.field(argument, callee);
        }
        self.call(callee, &mut [argument.clone()])
    }

    /// Calls `callee` with two arguments.
    ///
    /// # Errors
    /// As [`Machine::call`].
    #[inline]
    pub fn call2(&mut self, callee: &Value, first: Value, second: Value) -> Outcome<Value> {
        self.call(callee, &mut [first, second])
    }

    /// Charges fuel for moving or copying `count` arguments into a separate block, and checks that its memory may be
    /// allocated. Counts below 64, which cover calls written by hand, are free.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    #[inline]
    pub(crate) fn pay_for_arguments(&mut self, count: usize) -> Outcome<()> {
        if count < 64 { Ok(()) } else { self.pay_for_many(count as u64) }
    }

    #[cold]
    fn pay_for_many(&mut self, count: u64) -> Outcome<()> {
        self.charge(count / 16)?;
        self.reserve_values(count)
    }

    /// Calls `callee` with these arguments followed by the items of a lazy sequence. If `callee` has an `& rest`,
    /// only as many items are realised as are needed to know that the remaining ones belong to it.
    ///
    /// # Errors
    /// As [`Machine::call`]; also returns what realising items raises.
    pub(crate) fn call_lazily(&mut self, callee: &Value, mut arguments: Vec<Value>, last: Value) -> Outcome<Value> {
        let meant;
        let callee = match callee {
            Value::Var(name) => {
                meant = self.var_value(name)?;
                &meant
            }
            callee => callee,
        };
        let parameters = match callee {
            Value::Closure(closure) => most_parameters(code(closure)),
            _ => None,
        };
        let mut cursor = self.seq(last)?;
        while parameters.is_none_or(|most| arguments.len() <= most) {
            let Some(item) = cursor.next(self)? else { return self.call(callee, &mut arguments) };
            arguments.push(item);
            self.grown(arguments.len())?;
        }
        self.charge(1)?;
        let further = rest_of(self, cursor)?;
        let count = arguments.len();
        self.stack.append(&mut arguments);
        self.further = Some(further);
        let walked = self.apply_stacked(callee, count, None);
        self.outcome(walked)
    }

    /// Calls `callee` with the `count` values on top of the stack, which it consumes.
    #[inline(always)]
    pub(super) fn apply_stacked(&mut self, callee: &Value, count: usize, site: Option<Site<'_>>) -> Walked {
        let base = self.stack.len() - count;
        match callee {
            Value::Closure(closure) => self.apply_closure(closure, base, site),
            _ => {
                let applied = self.apply_drained(callee, base);
                self.walked(applied)
            }
        }
    }

    /// Calls anything but a closure with the values on the stack from `base` on.
    fn apply_drained(&mut self, callee: &Value, base: usize) -> Outcome<Value> {
        self.pay_for_arguments(self.stack.len() - base)?;
        let mut arguments: Vec<Value> = self.stack.drain(base..).collect();
        self.apply_slice(callee, &mut arguments)
    }

    /// Runs a function whose arguments are on the stack from `base` on, including all tail calls that follow.
    pub(super) fn apply_closure(&mut self, closure: &Arc<Closure>, base: usize, site: Option<Site<'_>>) -> Walked {
        let (depth, nesting, in_prelude) = (self.depth, self.nesting, self.in_prelude);
        let result = match self.enter(closure, base, depth, nesting) {
            Ok(Answer::TailCall) => self.follow(closure, base, depth, nesting, site, in_prelude),
            Ok(answer) => Ok(answer),
            Err(stopped) => Err(self.come_out(stopped, closure, site, in_prelude)),
        };
        self.shrink(base);
        (self.depth, self.nesting, self.in_prelude) = (depth, nesting, in_prelude);
        result
    }

    /// Runs the pending tail call, and those that follow it, until there is a result.
    #[inline(never)]
    fn follow(
        &mut self,
        closure: &Arc<Closure>,
        base: usize,
        depth: u32,
        nesting: u32,
        site: Option<Site<'_>>,
        from_prelude: bool,
    ) -> Walked {
        let mut way = TailChain { running: closure.clone(), entered: closure.clone(), left: None };
        loop {
            let Some(tail) = self.tail.take() else { return Ok(Answer::Nil) };
            // The calling frame is gone; the arguments move down to its base.
            let top = self.stack.len() - tail.count;
            self.stack.drain(base..top);
            let callee = match tail.callee {
                // A var is replaced by its value, which then takes the place of the running function.
                Value::Var(name) => match self.var_value(&name) {
                    Ok(meant) => meant,
                    Err(signal) => return Err(self.stop(signal.at(&way.running.group.source, tail.span))),
                },
                callee => callee,
            };
            match callee {
                Value::Closure(next) => {
                    let running = std::mem::replace(&mut way.running, next);
                    if !way.running.group.source.is_hidden {
                        way.left = None;
                    } else if !running.group.source.is_hidden {
                        way.left = Some((running, tail.span));
                        way.entered = way.running.clone();
                    }
                }
                other => {
                    let applied = self.apply_drained(&other, base).map_err(|signal| {
                        let signal = self.out_of_prelude(signal, &way, from_prelude);
                        signal.at(&way.running.group.source, tail.span)
                    });
                    return self.walked(applied);
                }
            }
            match self.enter(&way.running, base, depth, nesting) {
                Ok(Answer::TailCall) => {}
                Ok(answer) => return Ok(answer),
                Err(stopped) => return Err(self.come_through(stopped, &way, site, from_prelude)),
            }
        }
    }

    /// Attaches the call site to a signal from a function that has made no tail call.
    #[cold]
    fn come_out(
        &mut self,
        stopped: Stopped,
        closure: &Arc<Closure>,
        site: Option<Site<'_>>,
        from_prelude: bool,
    ) -> Stopped {
        let way = TailChain { running: closure.clone(), entered: closure.clone(), left: None };
        self.come_through(stopped, &way, site, from_prelude)
    }

    /// Attaches the call site to a signal from a function, after any tail calls.
    #[cold]
    fn come_through(
        &mut self,
        stopped: Stopped,
        way: &TailChain,
        site: Option<Site<'_>>,
        from_prelude: bool,
    ) -> Stopped {
        let signal = self.signal(stopped);
        let signal = self.out_of_prelude(signal, way, from_prelude);
        let unplaced = matches!(signal.raised(), Raised::Error(_));
        let signal = match site {
            // The signal belongs to the call of the prelude function, as for a builtin.
            Some(_) if unplaced && way.running.group.source.is_hidden => signal,
            Some(Site { source, span }) => {
                let called = way.left.as_ref().map_or(&way.running, |(closure, _)| closure);
                let name = code(called).name.as_deref().unwrap_or("fn");
                signal.at(source, span).through(name, source, span)
            }
            None => signal,
        };
        self.stop(signal)
    }

    /// Presents a signal from a prelude function as if it came from a builtin: attaches the function's name and the
    /// location of the program's call.
    #[cold]
    fn out_of_prelude(&self, signal: Signal, way: &TailChain, from_prelude: bool) -> Signal {
        // Inside the prelude nothing is attached: the function that the program called does it.
        if !way.running.group.source.is_hidden || (way.left.is_none() && from_prelude) {
            return signal;
        }
        let signal = match self.core.registry.prelude().declared(&way.entered) {
            Some(function) if !function.is_private => signal.inside(function.name),
            _ => signal,
        };
        match &way.left {
            Some((caller, span)) => signal.at(&caller.group.source, *span),
            None => signal,
        }
    }

    /// Runs the body of a function once its arguments are on the stack.
    #[inline(always)]
    fn enter(&mut self, closure: &Arc<Closure>, base: usize, depth: u32, nesting: u32) -> Walked {
        let count = self.stack.len() - base;
        let arity = match &*code(closure).arities {
            [only] if only.required as usize == count && !only.variadic => only,
            _ => self.arity(closure, count, base).map_err(|signal| self.stop(signal))?,
        };
        self.depth = depth + 1;
        self.nesting = nesting + arity.nesting;
        self.check_depth().map_err(|signal| self.stop(signal))?;
        self.in_prelude = closure.group.source.is_hidden;
        let parameters = arity.required as usize + usize::from(arity.variadic);
        let size = base + (arity.frame as usize).max(parameters);
        if self.stack.len() < size {
            self.stack.resize_with(size, || Value::Nil);
        }
        let frame = Frame {
            base,
            closure: Some(closure),
            captures: closure.captures.as_slice(),
            source: &closure.group.source,
        };
        loop {
            match self.eval(&frame, &arity.body) {
                Ok(Answer::Recur) => {}
                result => return result,
            }
        }
    }

    /// Selects the arity for `count` arguments; collects surplus arguments into a list.
    #[inline(never)]
    fn arity<'c>(&mut self, closure: &'c Arc<Closure>, count: usize, base: usize) -> Outcome<&'c Arity> {
        let code = code(closure);
        for arity in &code.arities {
            let required = arity.required as usize;
            if !arity.variadic && required == count {
                return Ok(arity);
            }
            if arity.variadic && count >= required {
                self.pay_for_arguments(count - required)?;
                let rest: Vec<Value> = self.stack.drain(base + required..).collect();
                let rest = match self.further.take() {
                    Some(further) => {
                        rest.into_iter().rfold(further, |behind, item| Value::List(Arc::new(List::cons(item, behind))))
                    }
                    None if rest.is_empty() => Value::Nil,
                    None => Value::list(rest),
                };
                self.stack.push(rest);
                return Ok(arity);
            }
        }
        self.stack.truncate(base);
        let hidden = closure.group.source.is_hidden.then(|| self.core.registry.prelude().declared(closure)).flatten();
        Err(match hidden {
            Some(function) => self.prelude_arity(function, count),
            None => closure_arity(code, count),
        }
        .into())
    }

    #[inline]
    pub(super) fn check_depth(&mut self) -> Outcome<()> {
        let meter = &mut self.core.meter;
        if self.depth > meter.peak_depth {
            meter.peak_depth = self.depth;
            let too_deep = self.depth > meter.limits.depth;
            if too_deep {
                return Err(meter.too_deep(self.depth).into());
            }
        }
        if self.nesting > meter.limits.depth.saturating_mul(NODES_A_CALL) || here() < self.floor {
            return Err(meter.too_deep(self.depth).into());
        }
        Ok(())
    }

    /// Checks the native stack only, where code nests without a call: in expansion and resolution.
    pub(crate) fn check_stack(&self) -> Outcome<()> {
        if here() < self.floor { Err(self.core.meter.too_deep(self.depth).into()) } else { Ok(()) }
    }

    /// Calls anything but a closure.
    fn apply_slice(&mut self, callee: &Value, arguments: &mut [Value]) -> Outcome<Value> {
        match callee {
            Value::Builtin(builtin) => self.nested(|machine| machine.run_checked(builtin, None, arguments)),
            Value::Native(native) => self.nested(|machine| machine.run_checked(native.about, Some(native), arguments)),
            Value::Bound(bound) => self.nested(|machine| {
                let count = bound.arguments.len() + arguments.len();
                machine.pay_for_arguments(count)?;
                let mut all = Vec::with_capacity(count);
                all.extend(bound.arguments.iter().cloned());
                all.extend(arguments.iter_mut().map(std::mem::take));
                if !bound.builtin.arity.accepts(all.len()) {
                    return Err(machine.builtin_arity(bound.builtin, all.len()).into());
                }
                // Functions made of others pass their arguments on.
                if machine.core.heap.has_unknown() && !bound.builtin.is_internal() {
                    machine.refuse_unknown(bound.builtin, &all)?;
                }
                (bound.builtin.run)(machine, &mut all)
            }),
            Value::Tool(tool) => self.call_tool(tool, arguments),
            // A var may refer to itself, so this call counts towards the depth limit like any other.
            Value::Var(name) => self.nested(|machine| {
                let meant = machine.var_value(name)?;
                machine.call(&meant, arguments)
            }),
            Value::Keyword(_) | Value::Symbol(_) | Value::Annotated(_) => match arguments {
                [map] => self.field(map, callee),
                [map, default] => {
                    let default = std::mem::take(default);
                    self.look_up(map, callee, default)
                }
                _ => {
                    Err(Error::new("ArityError", format!("a keyword takes 1 or 2 arguments, got {}", arguments.len()))
                        .into())
                }
            },
            Value::Map(_) | Value::Set(_) => match arguments {
                [key] => self.field(callee, key),
                [key, default] => {
                    let default = std::mem::take(default);
                    self.look_up(callee, key, default)
                }
                _ => Err(Error::new(
                    "ArityError",
                    format!("{} takes 1 or 2 arguments, got {}", callee.kind(), arguments.len()),
                )
                .into()),
            },
            Value::Vector(vector) => match arguments {
                [Value::Int(index)] => match usize::try_from(*index).ok().and_then(|at| vector.get(at)) {
                    Some(item) => Ok(item.clone()),
                    None => Err(Error::new(
                        "IndexOutOfBounds",
                        format!("index {index} is outside of a vector of {} items", vector.len()),
                    )
                    .into()),
                },
                [other] => Err(Error::expected("an index", other).into()),
                _ => {
                    Err(Error::new("ArityError", format!("a vector takes 1 argument, got {}", arguments.len())).into())
                }
            },
            Value::Closure(_) => self.call(callee, arguments),
            Value::Cell(cell) if cell.is_unknown() => Err(self.depends_on(cell)),
            Value::Cell(_) => match transients::content(self, callee)? {
                Some(content) => self.apply_slice(&content, arguments),
                None => Err(not_callable(callee, arguments).into()),
            },
            // All others by name, so that a new kind of value is not taken for one that cannot be called.
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Str(_)
            | Value::BigInt(_)
            | Value::Decimal(_)
            | Value::Time(_)
            | Value::List(_)
            | Value::Regex(_)
            | Value::Lazy(_)
            | Value::Exception(_)
            | Value::Reduced(_) => Err(not_callable(callee, arguments).into()),
        }
    }

    /// Runs a builtin, or the function of the embedder that it describes, with any number of arguments.
    #[inline(always)]
    pub(super) fn run_checked(
        &mut self,
        builtin: &'static Builtin,
        native: Option<&Native>,
        arguments: &mut [Value],
    ) -> Outcome<Value> {
        if !builtin.arity.accepts(arguments.len()) {
            return Err(self.builtin_arity(builtin, arguments.len()).into());
        }
        let result = match native {
            _ if self.core.heap.has_unknown() => self.run_in_rehearsal(builtin, native, arguments),
            None => (builtin.run)(self, arguments),
            Some(native) => self.run_native(native, arguments),
        };
        result.map_err(|signal| self.named(signal, builtin))
    }

    /// Calls a function of the embedder. A panic in it is the error `FunctionPanic` of this call, and memory that the
    /// panic handler took is not charged.
    pub(super) fn run_native(&mut self, native: &Native, arguments: &mut [Value]) -> Outcome<Value> {
        let (top, depth, nesting) = (self.stack.len(), self.depth, self.nesting);
        let (live, high) = (meter::balance(), meter::mark());
        let writes = self.core.heap.writes();
        let ended = catch_unwind(AssertUnwindSafe(|| (native.run)(self, arguments)));
        let most = meter::highest_since(high);
        match ended {
            // Memory that was released again before the function returned counts as well.
            Ok(result) if self.core.meter.memory_counted && most > self.core.meter.limits.memory => {
                self.reserve(most.saturating_sub(meter::live())).and(result)
            }
            Ok(result) => result,
            Err(payload) => {
                self.stack.truncate(top);
                (self.depth, self.nesting) = (depth, nesting);
                // The panic handler's memory is not the program's. A function that has called back may have stored values.
                if self.core.heap.writes() == writes {
                    meter::set_balance(live);
                }
                let message = format!("`{}` panicked: {}", native.about.name, panic_text(&*payload));
                meter::outside(|| drop(payload));
                Err(Error::new("FunctionPanic", message).about(native.about.name).into())
            }
        }
    }

    /// Runs a callee that is not a closure at one more level of depth.
    fn nested(&mut self, run: impl FnOnce(&mut Machine) -> Outcome<Value>) -> Outcome<Value> {
        self.depth += 1;
        self.nesting += 2;
        let result = self.check_depth().and_then(|()| run(self));
        self.depth -= 1;
        self.nesting -= 2;
        result
    }
}

/// The maximum number of required parameters of a variadic function; `None` if it is not variadic.
fn most_parameters(code: &Code) -> Option<usize> {
    let is_variadic = code.arities.iter().any(|arity| arity.variadic);
    is_variadic.then(|| code.arities.iter().map(|arity| arity.required as usize).max().unwrap_or_default())
}

fn code(closure: &Closure) -> &Code {
    &closure.group.lambdas[closure.index as usize]
}

#[cold]
fn not_callable(value: &Value, arguments: &[Value]) -> Error {
    const OPERATORS: [&str; 9] = ["+", "-", "*", "/", "<", ">", "<=", ">=", "="];
    let error = Error::new("NotCallable", format!("cannot call {} as a function", describe(value)));
    match value {
        Value::List(_) => error.suggest("a list of data is written `'(1 2 3)`, `(list 1 2 3)` or `[1 2 3]`"),
        Value::Int(_) | Value::Float(_) | Value::Str(_) => match arguments.first() {
            Some(Value::Builtin(operator)) if OPERATORS.contains(&operator.name) => {
                error.suggest(format!("operators come first: `({} a b)`", operator.name))
            }
            _ => error.suggest(
                "brackets `( )` around a value call it: leave them out, or write `[1 2 3]` for data; where a function is wanted, give one, such as `inc` or `(fn [x] …)`",
            ),
        },
        Value::Nil => {
            error.suggest("the name in front of the arguments is nil: check that it is defined as a function")
        }
        _ => error,
    }
}
