//! The evaluation of a program form by form, each top-level form as a transaction, and the description of its failure.

use crate::builtin::settling;
use crate::error::render::{Diagnosis, halt_message, shown, trace_line};
use crate::error::{Error, Fault, Halt, Outcome, Raised, Signal};
use crate::failure::Failure;
use crate::form::Form;
use crate::machine::Machine;
use crate::meter;
use crate::plan::{self, Input, Plan};
use crate::preview::{self, Preview, Reach};
use crate::reply::{EarlierValue, Mark, Reply, Spent, Status};
use crate::span::Source;
use crate::value::Value;
use crate::value::print::{Printer, print_within};
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
    let ended = run_forms(machine, evaluated, bind, finish, reply);
    if ended.is_ok() {
        note_mistakes(machine, evaluated);
    }
    match ended {
        Ok(None) => {}
        Ok(Some(Shown { printed, json })) => {
            reply.value = Some(printed.text);
            reply.truncated = printed.truncated;
            reply.more = printed.more;
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
    if core.meter.limits.preview.is_some() {
        let (whole, part) = core.meter.limits.shown_within();
        let taken = spent_on(&reply.earlier) + reply.value.as_ref().map_or(0, String::len);
        if reply.prints.len() > whole.saturating_sub(taken) {
            reply.prints = preview::shortened(&reply.prints, part.min(whole.saturating_sub(taken)));
        }
    }
    if core.prints_cut > 0 {
        reply.prints.push_str(&format!("… [{} more bytes were printed]", core.prints_cut));
    }
    reply.calls = std::mem::take(&mut core.calls);
    reply.notes = std::mem::take(&mut core.notes);
    let (total, compute) = core.meter.times(&core.host);
    let peak = core.meter.peak_memory.max(meter::live()).max(live_before);
    reply.spent = Spent {
        fuel: core.meter.fuel_spent(),
        memory_bytes: peak,
        depth: core.meter.peak_depth,
        compute_ms: compute.as_millis() as u64,
        total_ms: total.as_millis() as u64,
    };
}

/// Adds the notes on look-ups and comparisons of a program that has ended.
fn note_mistakes(machine: &mut Machine, evaluated: &Evaluated<'_>) {
    let core = &mut *machine.core;
    if !core.look_ups.has_notes() {
        return;
    }
    // The forms before the one at which a run was resumed have looked up keys as well.
    let is_whole = evaluated.from.is_none_or(|mark| mark.form == 0);
    for note in core.look_ups.notes(&evaluated.source.text, &core.globals, is_whole) {
        core.note(note);
    }
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
    let shows_values = finish.is_none();
    let mut end = |machine: &mut Machine, value: &Value, spent: usize| -> Outcome<()> {
        match &mut finish {
            Some(finish) => finish(machine, value)?,
            None => shown = Some(show(machine, value, spent)?),
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
        let shows_earlier = shows_values && !is_last && !form.is_definition();
        let spent = spent_on(&reply.earlier);
        let is_print = is_last && form.is_print();
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
                end(machine, &value, spent)?;
            }
            let earlier = if shows_earlier { show_earlier(machine, &value, spent)? } else { Earlier::Nothing };
            machine.core.check_session()?;
            Ok((value, earlier))
        });
        match result {
            Ok((result, earlier)) => {
                reply.is_print = is_print;
                match earlier {
                    Earlier::Nothing => {}
                    Earlier::Shown(value) => reply.earlier.push(value),
                    Earlier::Omitted => reply.earlier_omitted += 1,
                }
                for name in machine.core.commit(&result) {
                    if !reply.defined.contains(&name) {
                        reply.defined.push(name);
                    }
                }
                last = result;
            }
            Err(signal) => {
                drop(last);
                let signal = with_holders(machine, signal, ordinal + 1);
                let undone = machine.core.undo();
                if matches!(signal.raised(), Raised::Halt(Halt::Suspended)) {
                    reply.mark = Some(Box::new(begun.mark(machine, reply)));
                } else if let Some(note) = undone_note(&undone) {
                    machine.core.note(note);
                }
                return Err(signal.at(source, span));
            }
        }
    }
    if count == 0 {
        end(machine, &last, 0)?;
    }
    let history = &mut machine.core.globals.history;
    history[2] = std::mem::take(&mut history[1]);
    history[1] = std::mem::take(&mut history[0]);
    history[0] = last;
    Ok(shown)
}

/// Says which atoms, or other cells with a name, lose what the failed form has put into them.
fn undone_note(names: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let named = names.iter().take(NAMED).map(|name| format!("`{}`", foreign_text::symbol(name)));
    let named = named.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => None,
        1 => Some(format!("{named} is as it was before the form that failed")),
        2..=NAMED => Some(format!("{named} are as they were before the form that failed")),
        count => Some(format!("{named} and {} more are as they were before the form that failed", count - NAMED)),
    }
}

/// Says of an exceeded limit of memory what holds it.
fn with_holders(machine: &Machine, signal: Signal, form: usize) -> Signal {
    let Raised::Halt(Halt::Limit { name: name @ ("memory" | "session"), allowed, spent }) = signal.raised() else {
        return signal;
    };
    let own =
        if *name == "memory" { format!("what form {form} computes") } else { format!("the value of form {form}") };
    let held = machine.core.holders(&own);
    meter::limit(name, allowed.clone(), format!("{spent} (held by {held})")).into()
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
    core.notes.clone_from(&mark.notes);
    reply.defined.clone_from(&mark.defined);
    reply.earlier.clone_from(&mark.earlier);
    reply.earlier_omitted = mark.earlier_omitted;
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
    notes: usize,
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
            notes: core.notes.len(),
        }
    }

    /// Returns the place at which the suspended run is resumed, and undoes what the form has printed and the names that
    /// it has generated: nothing holds one of them.
    fn mark(&self, machine: &mut Machine, reply: &Reply) -> Mark {
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
            defined: reply.defined.clone(),
            earlier: reply.earlier.clone(),
            earlier_omitted: reply.earlier_omitted,
            calls: core.calls[..self.calls].to_vec(),
            notes: core.notes[..self.notes].to_vec(),
            inputs: Vec::new(),
            turn: 0,
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

/// A printed value.
struct Printed {
    text: String,
    /// A description of the part that is shown, if it is not the whole.
    truncated: Option<String>,
    /// Programs that show more of the value, if it is `*1`.
    more: Vec<String>,
}

/// Prints a value in full if it takes at most `whole` bytes, and otherwise its preview in `part` bytes. Lazy parts that
/// are not computed yet are shown only if it `computes` them.
fn printed(machine: &mut Machine, value: &Value, (whole, part): (usize, usize), computes: bool) -> Outcome<Printed> {
    if let Some(Value::Str(line)) = settling::summary(value) {
        return Ok(Printed { text: line.as_str().to_owned(), truncated: None, more: Vec::new() });
    }
    let mut printer = Printer::new(whole, true);
    let mut reach = Reach::new(machine, computes);
    if printer.print(value, &mut reach)? {
        let truncated = reach.is_open.then(|| "as far as it is computed".to_string());
        return Ok(Printed { text: printer.into_text(), truncated, more: Vec::new() });
    }
    let Preview { text, extent, more } = preview::preview(machine, value, part, computes)?;
    Ok(Printed { text, truncated: Some(extent), more })
}

/// Shows the value of a program, whose earlier values take `spent` bytes.
fn show(machine: &mut Machine, value: &Value, spent: usize) -> Outcome<Shown> {
    let limits = &machine.core.meter.limits;
    let output = limits.output;
    let (whole, part) = limits.shown_within();
    let is_preview = (whole as u64) < output;
    let prints = if is_preview { machine.core.prints.len().min(whole / 4) } else { 0 };
    let whole = whole.saturating_sub(spent + prints);
    // Showing an unknown result says that it is unknown.
    machine.unwatched(|machine| {
        let mut printed = printed(machine, value, (whole, part.min(whole)), true)?;
        if printed.truncated.is_some() && is_preview {
            printed.more.push(format!("`limits {{\"output\": \"{}\"}}`", meter::bytes(output)));
        }
        let budget = output as usize;
        let json = if printed.truncated.is_none() { Some(json::to_serde(machine, value, budget)?) } else { None };
        Ok(Shown { printed, json })
    })
}

/// The minimum room in which a value before the last is shown, in bytes.
const SHOWN_EARLIER: usize = 64;

/// The outcome of showing the value of a form before the last.
enum Earlier {
    /// It is not meant to be shown.
    Nothing,
    Shown(EarlierValue),
    /// There is no room for it.
    Omitted,
}

/// Shows the value of a form before the last; those before it take `spent` bytes. Together, such values take at most half
/// of the room. Nil and vars, which definitions return, are not shown. Nothing is computed for it: the program has not asked
/// for the rest of a lazy sequence.
fn show_earlier(machine: &mut Machine, value: &Value, spent: usize) -> Outcome<Earlier> {
    if matches!(value, Value::Nil | Value::Var(_)) {
        return Ok(Earlier::Nothing);
    }
    let room = (machine.core.meter.limits.shown_within().0 / 2).saturating_sub(spent);
    if room < SHOWN_EARLIER {
        return Ok(Earlier::Omitted);
    }
    let Printed { text: value, truncated, .. } =
        machine.unwatched(|machine| printed(machine, value, (room, room / 2), false))?;
    Ok(Earlier::Shown(EarlierValue { value, truncated }))
}

/// Returns the room that values take in a reply, in bytes.
fn spent_on(earlier: &[EarlierValue]) -> usize {
    earlier.iter().map(|earlier| earlier.value.len() + earlier.truncated.as_ref().map_or(0, String::len) + 1).sum()
}

/// Converts a signal to the status and failure of a reply.
pub fn diagnose(signal: &Signal) -> (Status, Failure) {
    match signal.raised() {
        Raised::Fault(fault) => {
            let (line, column) = fault.source.line_column(fault.span.start);
            let failure = Failure {
                source: Some(fault.source.name.to_string()),
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
                Halt::Repeated(_) => (Status::Error, "EffectRepeated", None),
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
