//! The meanings of names, and the conversion between forms and values in both directions.

use super::Machine;
use super::bare::elsewhere;
use super::vars::session_name;
use crate::error::suggest::{closest, did_you_mean};
use crate::error::{Error, Outcome, Raised};
use crate::form::{Form, FormKind};
use crate::host::{Audience, Server};
use crate::registry::Function;
use crate::resolve::{Meaning, Names};
use crate::span::Span;
use crate::value::list::List;
use crate::value::map::{Map, kebab};
use crate::value::pattern::Pattern;
use crate::value::set::Set;
use crate::value::text::split_name;
use crate::value::walk::{Cursor, Pace};
use crate::value::{Annotated, Value};
use std::sync::Arc;

impl Names for Machine {
    fn charge(&mut self, steps: u64) -> Outcome<()> {
        Machine::charge(self, steps)
    }

    fn check_stack(&self) -> Outcome<()> {
        Machine::check_stack(self)
    }

    fn takes_shortcuts(&self) -> bool {
        self.core.registry.takes_shortcuts()
    }

    fn meaning(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<Meaning> {
        if self.is_session_macro(name) {
            return Err(no_value(name).into());
        }
        match self.meaning_of(name)? {
            Some(meaning) => Ok(meaning),
            None => match self.denied_by_bare_name(name) {
                Some(denied) => Err(denied.into()),
                None => Err(self.unknown(name, &scope()).into()),
            },
        }
    }

    fn var(&mut self, name: &str, scope: &dyn Fn() -> Vec<String>) -> Outcome<String> {
        match self.var_name(name)? {
            Some(name) => Ok(name),
            None => Err(self.unknown(name, &scope()).into()),
        }
    }

    fn define(&mut self, name: &str) -> u32 {
        // Later parts of the same form may use the name: `(do (def x 1) (inc x))`.
        self.core.coming.insert(name.to_string());
        self.core.globals.index(name)
    }

    fn name_of(&self, definition: u32) -> String {
        self.core.globals.name(definition).to_owned()
    }

    fn shadow(&mut self, name: &str) {
        self.core.shadowed.insert(name.to_string());
    }

    fn constant(&mut self, form: &Form) -> Outcome<Value> {
        value_of(self, form)
    }
}

impl Machine {
    /// Resolves a name outside all functions; returns `None` if it has no meaning, or only the one that
    /// [`Machine::meaning_of`] gives to a name without a namespace.
    ///
    /// # Errors
    /// Returns what the search for a tool of that name raises.
    pub(super) fn find_meaning(&mut self, name: &str) -> Outcome<Option<Meaning>> {
        let aliased = self.unaliased(name);
        let name = aliased.as_deref().unwrap_or(name);
        let plain = session_name(name);
        if let Some(at) = history_index(plain) {
            return Ok(Some(Meaning::Held(self.core.globals.history[at].clone())));
        }
        if let Some(index) = self.core.globals.find(plain) {
            return Ok(Some(Meaning::Global(index)));
        }
        if self.is_shadowed(plain) {
            return Ok(Some(Meaning::Global(self.core.globals.index(plain))));
        }
        if let Some(builtin) = self.core.registry.find(name) {
            return Ok(Some(Meaning::of(&self.core.registry, builtin)));
        }
        if let Some(value) = self.core.registry.constant(name) {
            return Ok(Some(Meaning::Constant(value)));
        }
        if self.core.coming.contains(plain) {
            return Ok(Some(Meaning::Global(self.core.globals.index(plain))));
        }
        if let Some(function) = self.core.registry.find_prelude(name) {
            return self.prelude_meaning(function).map(Some);
        }
        // Names for true in other Lisps, and names of types: ordinary names that definitions shadow.
        if let "t" | "else" = name {
            return Ok(Some(Meaning::Constant(Value::Bool(true))));
        }
        if let Some(constant) = self.core.registry.type_name(name) {
            return Ok(Some(Meaning::Constant(constant)));
        }
        if let Some(tool) = self.find_tool(name)? {
            return Ok(Some(Meaning::Tool(tool)));
        }
        // `Point/create`: Java's equivalent of `map->Point`.
        let from_map = name.strip_suffix("/create").map(|class| format!("map->{class}"));
        if let Some(index) = from_map.and_then(|name| self.core.globals.find(&name)) {
            return Ok(Some(Meaning::Global(index)));
        }
        if let Some(method) = self.core.registry.method(name) {
            return Ok(Some(Meaning::Constant(method)));
        }
        match without_package(name) {
            Some(short) => self.find_meaning(short),
            None => Ok(None),
        }
    }

    /// Returns whether the running form defines the name before the place that is being resolved.
    pub(super) fn is_shadowed(&self, name: &str) -> bool {
        self.core.shadowed.contains(name)
    }

    fn is_session_macro(&self, name: &str) -> bool {
        let index = self.core.globals.find(session_name(name));
        index.is_some_and(|index| self.core.globals.get(index).is_macro)
    }
}

/// The name without the package of its class: `Integer/parseInt` for `java.lang.Integer/parseInt`, `BigDecimal.` for
/// `java.math.BigDecimal.`; `None` for all other names.
fn without_package(name: &str) -> Option<&str> {
    const PACKAGES: &[&str] = &[
        "java.lang.",
        "java.math.",
        "java.util.regex.",
        "java.util.",
        "java.text.",
        "java.io.",
        "java.time.format.",
        "java.time.",
    ];
    let rest = PACKAGES.iter().find_map(|package| name.strip_prefix(package))?;
    let is_member = rest.starts_with(char::is_uppercase) && (rest.contains('/') || rest.ends_with('.'));
    is_member.then_some(rest)
}

/// The index in the history of `*1`, `*2`, `*3` or `*e`.
fn history_index(name: &str) -> Option<usize> {
    ["*1", "*2", "*3", "*e"].iter().position(|known| *known == name)
}

impl Machine {
    /// Returns a function of the prelude as the meaning of a name.
    pub(crate) fn prelude_meaning(&self, function: &Function) -> Outcome<Meaning> {
        let registry = &self.core.registry;
        match registry.compiled(function) {
            Some(closure) => Ok(Meaning::Prelude(function.qualified(), closure)),
            None => Err(super::internal_error().into()),
        }
    }

    /// The error for a name without a meaning.
    pub(crate) fn unknown(&mut self, name: &str, scope: &[String]) -> Error {
        // `clojure.string/length`, `s/length`: the advice on `str/length`.
        let own = self.unaliased(name);
        let (namespace, base) = split_name(own.as_deref().unwrap_or(name));
        let meant = namespace.map(|namespace| format!("{}/{base}", self.core.registry.namespace_meant(namespace)));
        let advice = crate::absent::advice(name).or_else(|| crate::absent::advice(meant.as_deref()?));
        if let Some(message) = advice {
            return Error::new("NotAvailable", format!("`{name}` does not exist here")).about(name).suggest(message);
        }
        if crate::expand::SPECIAL_FORMS.contains(&name) || crate::expand::macro_names().any(|n| n == name) {
            return no_value(name);
        }
        let host = self.core.host.clone();
        let servers = host.servers();
        if let Some(server) = servers.iter().find(|server| kebab(&server.name) == kebab(name)) {
            return Error::new("UnboundVariable", format!("`{name}` is a server, not a function")).about(name).suggest(
                format!(
                    "`(dir '{server})` lists its tools; one is called as `({server}/TOOL …)`",
                    server = server.name
                ),
            );
        }
        let error = Error::new("UnboundVariable", format!("`{name}` is not defined")).about(name);
        let globals: Vec<&str> = self.core.globals.iter().map(|global| global.name).collect();
        let catalogue = self.core.host.catalogue();
        let tools = &catalogue.tools;
        let qualified: Vec<String> =
            tools.iter().flat_map(|tool| [tool.name.clone(), format!("{}/{}", tool.server, tool.name)]).collect();
        let known = scope.iter().map(String::as_str).chain(globals).chain(qualified.iter().map(String::as_str));
        let registry = self.core.registry.clone();
        let unaliased = self.unaliased(name);
        let is_plain = crate::absent::kind_of_name(name).is_none() && unaliased.is_none();
        let server = server_part(name).filter(|server| is_plain && registry.namespace(server).is_none());
        if let Some(suggestion) = elsewhere(&registry, name, unaliased.as_deref()) {
            return match server {
                // It may be that of a tool.
                Some(server) => no_such_server(name, server, &servers, host.audience()).prefer(suggestion),
                None => error.suggest(suggestion),
            };
        }
        let mut builtins: Vec<&str> = crate::expand::macro_names().collect();
        if crate::absent::kind_of_name(name).is_none() {
            // `.join` is no correction of `jion`, and `str/join` is.
            let is_java = |name: &str| name.starts_with('.') || name.ends_with('.');
            builtins.extend(registry.names().filter(|known| is_java(name) || !is_java(known)));
            let bare = registry.bare_names().filter(|_| !name.contains('/'));
            builtins.extend(bare.map(|name| -> &str { name }));
        } else {
            builtins.extend(registry.names());
        }
        builtins.sort_unstable();
        // A name chosen by the program or its user is a likelier match than one of many builtins.
        let nearest = closest(name, known)
            .or_else(|| closest(name, builtins).map(|found| self.qualified_if_bare(found)))
            .filter(|found| !found.contains("__"));
        if let (None, Some(server)) = (nearest, server) {
            return no_such_server(name, server, &servers, host.audience());
        }
        unknown_but_near(name, error, nearest)
    }

    /// The error for an unknown method whose name is looked up at run time.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    pub(crate) fn unknown_method(&mut self, name: &str) -> Outcome<Error> {
        self.charge(METHODS)?;
        if let Some(message) = crate::absent::advice(name) {
            return Ok(Error::new("NotAvailable", format!("`{name}` does not exist here"))
                .about(name)
                .suggest(message));
        }
        let error = Error::new("UnboundVariable", format!("`{name}` is not defined")).about(name);
        let registry = self.core.registry.clone();
        let mut methods: Vec<&str> = registry.names().filter(|known| known.starts_with('.')).collect();
        methods.sort_unstable();
        Ok(unknown_but_near(name, error, closest(name, methods)))
    }
}

/// Fuel charged for the search for a similar method name.
const METHODS: u64 = 2_000;

/// The error for a name without a meaning, with the most similar known name as a suggestion.
fn unknown_but_near(name: &str, error: Error, nearest: Option<&str>) -> Error {
    match (nearest, crate::absent::kind_of_name(name)) {
        (Some(nearest), None) => error.suggest(did_you_mean(nearest)),
        (Some(nearest), Some(_)) if written_alike(name, nearest) => error.suggest(did_you_mean(nearest)),
        (_, Some(message)) => {
            Error::new("NotAvailable", format!("`{name}` does not exist here")).about(name).suggest(message)
        }
        (None, None) => error.suggest(format!(
            "define it first, `(def {name} …)` or `(let [{name} …] …)`; `(dir)` lists servers and functions, `(apropos \"{name}\")` searches them"
        )),
    }
}

/// The server part of a qualified tool name: `mail` in `mail/search` and in `mcp__mail__search`.
fn server_part(name: &str) -> Option<&str> {
    let long = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    let (server, tool) = long.or_else(|| name.split_once('/'))?;
    (!server.is_empty() && !tool.is_empty()).then_some(server)
}

/// The error for a qualified tool name whose server is not configured.
fn no_such_server(name: &str, server: &str, servers: &[Server], audience: Audience) -> Error {
    if servers.is_empty() {
        let (none, remedy) = match audience {
            Audience::Embedder => ("no tools are registered", format!("`Tools::tool(\"{name}\", …)` registers one")),
            Audience::User => (
                "none is configured",
                "servers are set in a configuration: `lispbox config import` imports those of the MCP clients on this machine, `--config FILE` names a file with `mcpServers`".to_owned(),
            ),
        };
        let message = format!("`{name}` is not defined: there is no server `{server}`, since {none}");
        return Error::new("UnboundVariable", message).about(name).suggest(remedy);
    }
    let known: Vec<String> = servers.iter().take(KNOWN_SERVERS).map(|known| format!("`{}`", known.name)).collect();
    let more = if servers.len() > KNOWN_SERVERS { ", …" } else { "" };
    let message = format!("`{name}` is not defined: there is no server `{server}`");
    let suggestion = format!("there are {}{more}; `(dir)` lists servers and namespaces", known.join(", "));
    Error::new("UnboundVariable", message).about(name).suggest(suggestion)
}

/// Maximum number of servers that an error lists.
const KNOWN_SERVERS: usize = 20;

/// The error for a macro or special form in the position of a value.
pub(super) fn no_value(name: &str) -> Error {
    Error::new("SyntaxError", format!("`{name}` is a form, not a value: it comes first in its brackets, `({name} …)`"))
        .about(name)
        .suggest(format!("where a function is wanted, wrap it: `(fn [x y] ({name} x y))`"))
}

/// True if both names are methods or neither is, and likewise for constructors and for qualified names.
fn written_alike(name: &str, other: &str) -> bool {
    name.starts_with('.') == other.starts_with('.')
        && name.ends_with('.') == other.ends_with('.')
        && name.contains('/') == other.contains('/')
}

/// Services for converting forms to values: charges fuel, compiles regexes and interprets tags.
pub trait Constants {
    /// Charges fuel for steps.
    ///
    /// # Errors
    /// Returns a halt if a limit is exceeded.
    fn pay(&mut self, steps: u64) -> Outcome<()>;

    /// Compiles a regex literal.
    ///
    /// # Errors
    /// Returns `InvalidRegex` if the pattern is invalid, or a halt if a limit is exceeded.
    fn regex(&mut self, pattern: &str) -> Outcome<Arc<Pattern>>;

    /// Converts a tagged form to a value.
    ///
    /// # Errors
    /// Returns `UnknownTag` unless the implementation knows the tag, or a halt if a limit is exceeded.
    fn tagged(&mut self, tag: &str, _form: &Form) -> Outcome<Value> {
        Err(Error::new("UnknownTag", format!("the tag `#{tag}` is not known here")).into())
    }
}

impl Constants for Machine {
    fn pay(&mut self, steps: u64) -> Outcome<()> {
        self.charge(steps)
    }

    fn regex(&mut self, pattern: &str) -> Outcome<Arc<Pattern>> {
        self.core.registry.regex()(self, pattern)
    }
}

/// Converts a form to data.
///
/// # Errors
/// Returns `InvalidRegex`, what tags raise, or a halt if a limit is exceeded.
pub fn value_of(payer: &mut dyn Constants, form: &Form) -> Outcome<Value> {
    let mut value = plain_value_of(payer, form)?;
    if let Some(metadata) = &form.metadata
        && let Value::Map(metadata) = plain_value_of(payer, metadata)?
    {
        match &mut value {
            Value::List(list) => {
                let items = list.as_slice().unwrap_or_default().to_vec();
                *list = Arc::new(List::with_metadata(items, Some(metadata)));
            }
            Value::Vector(vector) => Arc::make_mut(vector).set_metadata(Some(metadata)),
            Value::Map(map) => Arc::make_mut(map).set_metadata(Some(metadata)),
            Value::Set(set) => Arc::make_mut(set).set_metadata(Some(metadata)),
            Value::Symbol(name) => value = Value::Annotated(Arc::new(Annotated { name: name.clone(), metadata })),
            _ => {}
        }
    }
    Ok(value)
}

fn plain_value_of(payer: &mut dyn Constants, form: &Form) -> Outcome<Value> {
    payer.pay(1)?;
    Ok(match &form.kind {
        FormKind::Nil => Value::Nil,
        FormKind::Bool(value) => Value::Bool(*value),
        FormKind::Int(value) => Value::Int(*value),
        FormKind::BigInt(value) => Value::BigInt(Arc::new(value.clone())),
        FormKind::Decimal(value) => Value::Decimal(Arc::new(value.clone())),
        FormKind::Time(value) => Value::Time(Arc::new(value.clone())),
        FormKind::Float(value) => Value::Float(*value),
        FormKind::Char(value) => Value::Char(*value),
        FormKind::Str(text) => {
            payer.pay(text.len() as u64 / 64)?;
            Value::string(text)
        }
        FormKind::Keyword(name) => Value::keyword(name),
        FormKind::Symbol(name) => Value::symbol(name),
        FormKind::Regex(pattern) => Value::Regex(payer.regex(pattern)?),
        FormKind::List(items) => Value::list(values_of(payer, items)?),
        FormKind::Vector(items) => Value::vector(values_of(payer, items)?),
        FormKind::Map(items) => {
            let values = values_of(payer, items)?;
            let mut map = Map::default();
            let mut rest = values.into_iter();
            while let (Some(key), Some(value)) = (rest.next(), rest.next()) {
                map.insert(key, value);
            }
            Value::Map(Arc::new(map))
        }
        FormKind::Set(items) => Value::Set(Arc::new(values_of(payer, items)?.into_iter().collect::<Set>())),
        FormKind::Tagged(tag, form) => payer.tagged(tag, form)?,
    })
}

fn values_of(payer: &mut dyn Constants, forms: &[Form]) -> Outcome<Vec<Value>> {
    forms.iter().map(|form| value_of(payer, form)).collect()
}

/// Converts data, such as the result of a macro, to a form located at `span`.
///
/// # Errors
/// Returns `SyntaxError` for values without a form, such as functions, or a halt if a limit is exceeded.
pub fn form_of(machine: &mut Machine, value: &Value, span: Span) -> Outcome<Form> {
    Copying { machine, span, bytes: 0, asked: 0 }.form(value, 1_000)
}

/// A conversion of data to forms. Forms share nothing, so a shared value is copied once per occurrence. Fuel is
/// charged for the copies, and their memory is checked before they are made.
struct Copying<'m> {
    machine: &'m mut Machine,
    span: Span,
    /// Bytes of the forms so far.
    bytes: u64,
    /// The number of bytes up to which memory has been checked.
    asked: u64,
}

impl Copying<'_> {
    /// Checks the memory for forms, and for the copies that the expander and the resolver make of them.
    fn take(&mut self, bytes: usize) -> Outcome<()> {
        const COPIES: u64 = 3;
        const AT_ONCE: u64 = 16 << 10;
        self.bytes += bytes as u64;
        if self.bytes >= self.asked {
            self.asked = self.bytes + AT_ONCE;
            self.machine.reserve(self.asked.saturating_mul(COPIES))?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Outcome<String> {
        self.machine.charge(text.len() as u64 / 64)?;
        self.take(text.len())?;
        Ok(text.to_string())
    }

    fn form(&mut self, value: &Value, levels: u32) -> Outcome<Form> {
        self.machine.charge(1)?;
        self.take(size_of::<Form>())?;
        if levels == 0 {
            return Err(Error::new("SyntaxError", "a macro returned code that is nested too deeply").into());
        }
        let span = self.span;
        let kind = match value {
            Value::Nil => FormKind::Nil,
            Value::Bool(value) => FormKind::Bool(*value),
            Value::Int(value) => FormKind::Int(*value),
            Value::BigInt(value) => {
                self.take(value.bits() as usize / 8)?;
                FormKind::BigInt((**value).clone())
            }
            Value::Decimal(value) => {
                self.take(value.as_bigint_and_exponent().0.bits() as usize / 8)?;
                FormKind::Decimal((**value).clone())
            }
            Value::Time(value) => FormKind::Time((**value).clone()),
            Value::Float(value) => FormKind::Float(*value),
            Value::Char(value) => FormKind::Char(*value),
            Value::Str(text) => FormKind::Str(self.text(text.as_str())?),
            Value::Keyword(name) => FormKind::Keyword(self.text(name.as_str())?),
            Value::Symbol(name) => FormKind::Symbol(self.text(name.as_str())?),
            Value::Annotated(symbol) => FormKind::Symbol(self.text(symbol.name.as_str())?),
            Value::Regex(regex) => FormKind::Regex(self.text(regex.as_str())?),
            Value::Builtin(builtin) => FormKind::Symbol(builtin.qualified()),
            Value::Native(native) => FormKind::Symbol(native.about.qualified()),
            Value::Var(name) => FormKind::List(vec![Form::symbol("var", span), Form::symbol(name.as_str(), span)]),
            Value::List(_) | Value::Lazy(_) => FormKind::List(self.forms(value, levels)?),
            Value::Vector(_) => FormKind::Vector(self.forms(value, levels)?),
            Value::Set(_) => FormKind::Set(self.forms(value, levels)?),
            Value::Map(map) => {
                let mut items = Vec::new();
                for (key, value) in map.iter() {
                    items.push(self.form(key, levels - 1)?);
                    items.push(self.form(value, levels - 1)?);
                }
                FormKind::Map(items)
            }
            other => {
                return Err(Error::expected("code made of lists, symbols and literals from a macro", other).into());
            }
        };
        let metadata = match super::metadata_of(self.machine, value) {
            Some(metadata) => match self.form(&Value::Map(metadata), levels - 1) {
                Ok(form) => Some(Box::new(form)),
                Err(signal) if matches!(signal.raised(), Raised::Halt(_)) => return Err(signal),
                // Metadata may hold any value; values that are not code are omitted.
                Err(_) => None,
            },
            None => None,
        };
        Ok(Form { metadata, ..Form::new(kind, span) })
    }

    fn forms(&mut self, value: &Value, levels: u32) -> Outcome<Vec<Form>> {
        let mut cursor = Cursor::over(value.clone()).unwrap_or(Cursor::End);
        let mut forms = Vec::new();
        while let Some(item) = cursor.next(self.machine)? {
            self.machine.step(1)?;
            forms.push(self.form(&item, levels - 1)?);
        }
        Ok(forms)
    }
}
