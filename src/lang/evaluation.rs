//! The evaluation of a program form by form, each top-level form as a transaction, and the description of its failure.

use crate::error::render::{Diagnosis, halt_message, shown, trace_line};
use crate::error::{Error, Fault, Halt, Outcome, Raised, Signal};
use crate::form::Form;
use crate::machine::Machine;
use crate::meter;
use crate::plan::{self, Input, Plan};
use crate::reply::{Failure, Mark, Reply, Spent, Status};
use crate::span::Source;
use crate::value::Value;
use crate::value::print::{Printed, print_within};
use crate::{foreign, foreign_text, json, reader};
use std::sync::Arc;

/// Builds the reply for an evaluation that could not take place.
pub fn refused(error: Error) -> Reply {
    let (status, failure) = diagnose(&error.into());
    Reply { status, failure: Some(failure), ..Reply::default() }
}

/// Receives the value of the last form. This is part of the transaction of the form: what it computes is kept or undone
/// with the form.
pub type Finish<'f> = dyn FnMut(&mut Machine, &Value) -> Outcome<()> + 'f;

/// A program to evaluate, from its beginning or from a form at which it was suspended.
pub struct Evaluated<'e> {
    /// The forms of the source, if it has been read.
    pub forms: Option<&'e [Form]>,
    pub source: Arc<Source>,
    pub from: Option<&'e Mark>,
}

/// Binds the input of a program before its first form.
pub type Bind<'b> = dyn FnMut(&mut Machine) -> Outcome<()> + 'b;

/// Evaluates a program form by form, and passes its value to `finish` or else prints it. The reply is filled in place,
/// because it is large.
pub fn evaluate(
    machine: &mut Machine,
    evaluated: &Evaluated<'_>,
    bind: &mut Bind<'_>,
    finish: Option<&mut Finish<'_>>,
    reply: &mut Reply,
) {
    let live_before = meter::live();
    match run_forms(machine, evaluated, bind, finish, reply) {
        Ok(None) => {}
        Ok(Some(Shown { printed, json })) => {
            reply.value = Some(printed.text);
            reply.truncated = printed.truncated;
            match json {
                Some(Ok(json)) => reply.json = Some(json),
                Some(Err(reason)) => reply.json_error = Some(reason),
                None => {}
            }
        }
        Err(signal) => {
            let (status, failure) = diagnose(&signal);
            if let Raised::Fault(Fault { error, .. }) = signal.raised() {
                machine.core.globals.history[3] = Value::Exception(error.clone());
            }
            reply.status = status;
            reply.failure = Some(failure);
        }
    }
    let core = &mut *machine.core;
    reply.prints = std::mem::take(&mut core.prints);
    if core.prints_cut > 0 {
        reply.prints.push_str(&format!("… [{} more bytes were printed]", core.prints_cut));
    }
    reply.calls = std::mem::take(&mut core.calls);
    let (total, compute) = core.meter.times(core.host.monotonic());
    let peak = core.meter.peak_memory.max(meter::live()).max(live_before);
    reply.spent = Spent {
        fuel: core.meter.fuel_spent(),
        memory_bytes: peak,
        depth: core.meter.peak_depth,
        compute_ms: compute.as_millis() as u64,
        total_ms: total.as_millis() as u64,
    };
}

/// Runs the forms of a program, each as a transaction, and passes the value of the last one to `finish` or else shows it.
fn run_forms(
    machine: &mut Machine,
    evaluated: &Evaluated<'_>,
    bind: &mut Bind<'_>,
    mut finish: Option<&mut Finish<'_>>,
    reply: &mut Reply,
) -> Outcome<Option<Shown>> {
    let Evaluated { source, from, .. } = evaluated;
    let text = &*source.text;
    check_size(machine, text)?;
    bind(machine)?;
    let forms = forms_of(machine, evaluated)?;
    machine.core.coming.extend(forms.iter().filter_map(Form::defined_name).map(str::to_string));
    let mut last = Value::Nil;
    let mut shown = None;
    let mut end = |machine: &mut Machine, value: &Value| -> Outcome<()> {
        match &mut finish {
            Some(finish) => finish(machine, value)?,
            None => shown = Some(show(machine, value)?),
        }
        Ok(())
    };
    let count = forms.len();
    let first = match from {
        Some(mark) => resume(machine, mark, count, reply)?,
        None => 0,
    };
    let has_colon = memchr::memchr(b':', text.as_bytes()).is_some();
    let has_aliases = has_colon && memchr::memmem::find(text.as_bytes(), b"::").is_some();
    for (ordinal, mut form) in forms.into_iter().enumerate().skip(first) {
        let span = form.span;
        machine.core.form = ordinal as u32;
        let begun = Begun::of(machine);
        machine.core.host.begin_form(ordinal as u32);
        let is_last = ordinal + 1 == count;
        let resolved = if has_aliases { machine.resolve_aliases(&mut form) } else { Ok(()) };
        let resolved = resolved.map_err(|failed| Signal::from(failed.0).at(source, failed.1));
        let result = resolved.and_then(|()| machine.evaluate(form, source)).and_then(|value| {
            let settled = machine.settle(&value);
            machine.check_unknown()?;
            match settled {
                // This value is not printed, so the program did not ask for the failing item: ignore the error.
                Err(signal) if is_last || matches!(signal.raised(), Raised::Halt(_)) => return Err(signal),
                _ => {}
            }
            if is_last {
                end(machine, &value)?;
            }
            machine.core.check_session()?;
            Ok(value)
        });
        match result {
            Ok(result) => {
                for name in machine.core.commit(&result) {
                    if !reply.defined.contains(&name) {
                        reply.defined.push(name);
                    }
                }
                last = result;
            }
            Err(signal) => {
                drop(last);
                machine.core.undo();
                if matches!(signal.raised(), Raised::Halt(Halt::Suspended)) {
                    reply.mark = Some(Box::new(begun.mark(machine, &reply.defined)));
                }
                return Err(signal.at(source, span));
            }
        }
    }
    if count == 0 {
        end(machine, &last)?;
    }
    let history = &mut machine.core.globals.history;
    history[2] = std::mem::take(&mut history[1]);
    history[1] = std::mem::take(&mut history[0]);
    history[0] = last;
    Ok(shown)
}

fn check_size(machine: &Machine, text: &str) -> Outcome<()> {
    let limits = &machine.core.meter.limits;
    if text.len() as u64 > limits.program {
        let (allowed, came) = (meter::bytes(limits.program), meter::bytes(text.len() as u64));
        return Err(meter::limit("program", allowed, came).into());
    }
    Ok(())
}

fn forms_of(machine: &mut Machine, Evaluated { forms, source, .. }: &Evaluated<'_>) -> Outcome<Vec<Form>> {
    machine.charge(source.text.len() as u64 / 16)?;
    match forms {
        Some(forms) => Ok(forms.to_vec()),
        None => read_forms(&source.text, source),
    }
}

/// Computes the plan of a program, without running it, in a session that may be changed. A run would bind `inputs`.
///
/// # Errors
/// Returns the failure of a run of the program that ends before anything is called.
pub fn planned(machine: &mut Machine, evaluated: &Evaluated<'_>, inputs: &[Input]) -> Result<Plan, Box<Failure>> {
    let planned = check_size(machine, &evaluated.source.text)
        .and_then(|()| forms_of(machine, evaluated))
        .and_then(|forms| plan::plan(machine, forms, &evaluated.source, inputs));
    planned.map_err(|signal| Box::new(diagnose(&signal).1))
}

/// Continues a run at the form of the mark, and returns the ordinal of the form.
fn resume(machine: &mut Machine, mark: &Mark, forms: usize, reply: &mut Reply) -> Outcome<usize> {
    let form = mark.form as usize;
    if form >= forms {
        let how = format!("the run was suspended at form {form}, and the program has {forms}");
        return Err(Halt::Diverged(how).into());
    }
    let core = &mut *machine.core;
    // A run that begins again pays for its start again.
    if mark.fuel > 0 {
        core.meter.resume(mark.fuel, mark.calls.len() as u32);
    }
    core.random = mark.random;
    core.globals.generated = core.globals.generated.max(mark.generated);
    core.prints.clone_from(&mark.prints);
    core.prints_cut = mark.prints_cut;
    core.calls.clone_from(&mark.calls);
    reply.defined.clone_from(&mark.defined);
    Ok(form)
}

/// The state of an evaluation when a form begins, as far as the form changes it and it is not undone with the form.
struct Begun {
    form: u32,
    fuel: u64,
    random: Option<u64>,
    generated: u64,
    prints: usize,
    prints_cut: u64,
    calls: usize,
}

impl Begun {
    fn of(machine: &Machine) -> Begun {
        let core = &*machine.core;
        Begun {
            form: core.form,
            fuel: core.meter.fuel_spent(),
            random: core.random,
            generated: core.globals.generated,
            prints: core.prints.len(),
            prints_cut: core.prints_cut,
            calls: core.calls.len(),
        }
    }

    /// Returns the place at which the suspended run is resumed, and undoes what the form has printed and the names that
    /// it has generated: nothing holds one of them.
    fn mark(&self, machine: &mut Machine, defined: &[String]) -> Mark {
        let core = &mut *machine.core;
        core.globals.generated = self.generated;
        core.prints.truncate(self.prints);
        core.prints_cut = self.prints_cut;
        Mark {
            form: self.form,
            program: core.programs,
            fuel: self.fuel,
            random: self.random,
            generated: self.generated,
            prints: core.prints.clone(),
            prints_cut: self.prints_cut,
            defined: defined.to_vec(),
            calls: core.calls[..self.calls].to_vec(),
            inputs: Vec::new(),
        }
    }
}

fn read_forms(text: &str, source: &Arc<Source>) -> Outcome<Vec<Form>> {
    let forms = reader::read(text).map_err(|error| unreadable(error, source))?;
    match foreign::at_top_level(&forms, text) {
        Some((span, error)) => Err(Signal::from(error).at(source, span)),
        None => Ok(forms),
    }
}

/// Reads a program without evaluating it.
///
/// # Errors
/// Returns the failure of a run of the program.
pub fn read(text: &str, name: &str) -> Result<Vec<Form>, Box<Failure>> {
    let source = Arc::new(Source::new(name, text));
    read_forms(text, &source).map_err(|signal| Box::new(diagnose(&signal).1))
}

/// Binds a name to the value of JSON text.
pub fn bind_json(machine: &mut Machine, name: &str, text: &str) -> Outcome<()> {
    machine.reserve(text.len() as u64)?;
    let value = json::parse(machine, text).map_err(|signal| no_json(name, signal))?;
    let index = machine.core.globals.index(name);
    machine.core.globals.set(index, crate::machine::Global { value: Some(value), ..Default::default() });
    // Commit the binding, but do not report it as a definition of the program.
    machine.core.commit(&Value::Nil);
    Ok(())
}

fn no_json(name: &str, signal: Signal) -> Signal {
    match signal.into_raised() {
        Raised::Error(mut error) => {
            Arc::make_mut(&mut error).message = format!("`{name}` is not JSON: {}", error.message);
            error.into()
        }
        Raised::Fault(fault) => fault.into(),
        Raised::Halt(halt) => halt.into(),
    }
}

fn unreadable(error: reader::ReadError, source: &Arc<Source>) -> Signal {
    let mut made = Error::new(error.code, error.message);
    made.suggestion = match foreign::advice(&source.text) {
        Some(advice) => Some(format!("this looks like another language, and programs here are Clojure: {advice}")),
        None => error.suggestion,
    };
    Fault { related: error.related, ..Fault::new(made, source, error.span) }.into()
}

/// The value of a program, as shown in its reply.
struct Shown {
    printed: Printed,
    /// The value as JSON, or the reason why there is none; `None` for a value that was cut.
    json: Option<Result<serde_json::Value, String>>,
}

fn show(machine: &mut Machine, value: &Value) -> Outcome<Shown> {
    let budget = machine.core.meter.limits.output as usize;
    // Showing an unknown result says that it is unknown.
    machine.unwatched(|machine| {
        let printed = print_within(value, budget, true, machine)?;
        let json = if printed.truncated.is_none() { Some(json::to_serde(machine, value, budget)?) } else { None };
        Ok(Shown { printed, json })
    })
}

/// Converts a signal to the status and failure of a reply.
pub fn diagnose(signal: &Signal) -> (Status, Failure) {
    match signal.raised() {
        Raised::Fault(fault) => {
            let (line, column) = fault.source.line_column(fault.span.start);
            let failure = Failure {
                line: Some(line),
                column: Some(column),
                trace: fault.trace.iter().map(trace_line).collect(),
                rendered: Diagnosis::of(fault).render(false),
                ..failure_of(&fault.error)
            };
            (Status::Error, failure)
        }
        Raised::Error(error) => {
            let message = foreign_text::message(shown(&error.message));
            let mut rendered = format!("{}: {message}", foreign_text::line(&error.code));
            if let Some(suggestion) = &error.suggestion {
                rendered.push_str(&format!("\n{}", foreign_text::message(suggestion)));
            }
            (Status::Error, Failure { rendered, ..failure_of(error) })
        }
        Raised::Halt(halt) => {
            let message = halt_message(halt);
            let (status, code, limit) = match halt {
                Halt::Limit { name, .. } => (Status::Limit, "LimitExceeded", Some((*name).to_string())),
                Halt::Cancelled => (Status::Cancelled, "Cancelled", None),
                Halt::Suspended => (Status::Suspended, "Suspended", None),
                Halt::Diverged(_) => (Status::Error, "ReplayDiverged", None),
                Halt::Unplanned(_) => (Status::Error, "PlanExceeded", None),
                Halt::Rehearsed(_) => (Status::Error, "RehearsedResult", None),
            };
            let rendered = format!("{code}: {message}");
            (status, Failure { error: code.to_string(), message, limit, rendered, ..Failure::default() })
        }
    }
}

fn failure_of(error: &Error) -> Failure {
    let data = (!error.data().is_nil()).then(|| {
        let Ok(printed) = print_within(error.data(), 2_000, true, &mut crate::value::walk::Free);
        printed.text
    });
    Failure {
        error: error.code.to_string(),
        message: shown(&error.message).to_string(),
        symbol: error.symbol.clone(),
        suggestion: error.suggestion.clone(),
        data,
        ..Failure::default()
    }
}
