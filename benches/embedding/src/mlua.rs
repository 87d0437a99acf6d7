//! mlua with Lua 5.4, built from the sources that it brings.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use mlua::debug::{DebugEvent, HookTriggers};
use mlua::{Error, Function, Lua, LuaSerdeExt, MultiValue, Value, VmState};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::{DEADLINE, Done, Outcome, mails};

/// A closure becomes a function of the script.
pub fn typed_function() -> Outcome {
    let calls = Rc::new(Cell::new(0));
    let counter = calls.clone();
    let lua = Lua::new();
    let double = move |n: i64| {
        counter.set(counter.get() + 1);
        n * 2
    };
    lua.globals().set("double", Function::wrap_raw(double))?;
    assert_eq!(lua.load("double(21)").eval::<i64>()?, 42);
    assert_eq!(calls.get(), 1);
    Ok(Done::Yes)
}

/// serde converts the structs to tables and back.
pub fn structs() -> Outcome {
    #[derive(Serialize)]
    struct Mail {
        id: u64,
        sender: String,
        labels: Vec<String>,
        sent: Option<String>,
    }
    #[derive(Debug, Deserialize, PartialEq)]
    struct Summary {
        count: u64,
        senders: Vec<String>,
    }
    let lua = Lua::new();
    lua.globals().set("null", lua.null())?;
    lua.globals().set("mails", lua.to_value(&mails!())?)?;
    let script = "
        local senders = {}
        for _, mail in ipairs(mails) do
            if mail.sent ~= null and #mail.labels > 0 then table.insert(senders, mail.sender) end
        end
        return { count = #senders, senders = senders }";
    let summary: Summary = lua.from_value(lua.load(script).eval()?)?;
    assert_eq!(summary, Summary { count: 1, senders: vec!["ann".to_string()] });
    Ok(Done::Yes)
}

/// The script is a coroutine, which yields while the call waits.
pub fn async_tool() -> Outcome {
    let lua = Lua::new();
    lua.globals().set("fetch", Function::wrap_raw_async(crate::fetch))?;
    let running = lua.load("fetch('rust')").eval_async::<String>();
    assert_eq!(Runtime::new()?.block_on(running)?, "page of rust");
    Ok(Done::Yes)
}

/// A hook compares the clock every 1,000 instructions and at each return, also that of a `pcall` that caught its error.
pub fn deadline() -> Outcome {
    for script in ["while true do pcall(function() while true do end end) end", "while true do nap() end"] {
        let end = Instant::now() + DEADLINE;
        let lua = Lua::new();
        lua.globals().set("nap", Function::wrap_raw(crate::nap))?;
        let triggers = HookTriggers::new().on_returns().every_nth_instruction(1_000);
        lua.set_global_hook(triggers, move |_, _| match Instant::now() < end {
            true => Ok(VmState::Continue),
            false => Err(Error::external(io::Error::from(ErrorKind::TimedOut))),
        })?;
        let error = lua.load(script).exec().unwrap_err();
        assert_eq!(error.downcast_ref::<io::Error>().map(io::Error::kind), Some(ErrorKind::TimedOut));
    }
    Ok(Done::Yes)
}

/// A hook reads a flag every 1,000 instructions and at each return.
pub fn cancel() -> Outcome {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let lua = Lua::new();
    let triggers = HookTriggers::new().on_returns().every_nth_instruction(1_000);
    lua.set_global_hook(triggers, move |_, _| match flag.load(Relaxed) {
        false => Ok(VmState::Continue),
        true => Err(Error::external(io::Error::from(ErrorKind::Interrupted))),
    })?;
    crate::soon(move || cancelled.store(true, Relaxed));
    let error = lua.load("while true do pcall(function() while true do end end) end").exec().unwrap_err();
    assert_eq!(error.downcast_ref::<io::Error>().map(io::Error::kind), Some(ErrorKind::Interrupted));
    Ok(Done::Yes)
}

/// The allocator of Lua bounds the memory; a hook counts instructions.
pub fn limits() -> Outcome {
    let lua = Lua::new();
    lua.set_memory_limit(32 << 20)?;
    let left = Cell::new(10_000_000);
    let triggers = HookTriggers::new().on_returns().every_nth_instruction(1_000);
    lua.set_global_hook(triggers, move |_, debug| {
        if debug.event() == DebugEvent::Count {
            left.set(left.get() - 1_000);
        }
        if left.get() > 0 { Ok(VmState::Continue) } else { Err(Error::runtime("too many instructions")) }
    })?;
    let error = lua.load("local all = {} while true do table.insert(all, {}) end").exec().unwrap_err();
    assert!(matches!(error, Error::MemoryError(_)));
    let error = lua.load("while true do pcall(function() while true do end end) end").exec().unwrap_err();
    assert!(error.to_string().contains("too many instructions"));
    Ok(Done::Yes)
}

/// serde writes the table; the function is written as bytecode.
pub fn keep_and_restore() -> Outcome {
    let lua = Lua::new();
    let script = "
        inbox = { 3, 5 }
        function total(sum)
            for _, n in ipairs(inbox) do sum = sum + n end
            return sum
        end";
    lua.load(script).exec()?;
    lua.load("table.insert(inbox, 8)").exec()?;
    let inbox = serde_json::to_string(&lua.globals().get::<Value>("inbox")?)?;
    let total = lua.globals().get::<Function>("total")?.dump(true);

    let lua = Lua::new();
    // Not `serde_json::Value`: with its feature `arbitrary_precision`, which starlark turns on, numbers become tables.
    lua.globals().set("inbox", serde_json::from_str::<Vec<i64>>(&inbox)?)?;
    lua.globals().set("total", lua.load(total).into_function()?)?;
    assert_eq!(lua.load("total(1)").eval::<i64>()?, 17);
    Ok(Done::Partly("by name, one by one; a function loses the local variables that it has captured"))
}

/// The state is written out and read into a second one.
pub fn fork() -> Outcome {
    let lua = Lua::new();
    let script = "
        inbox = { 3, 5 }
        function total()
            local sum = 0
            for _, n in ipairs(inbox) do sum = sum + n end
            return sum
        end";
    lua.load(script).exec()?;
    let inbox: Vec<i64> = lua.globals().get("inbox")?;
    let total = lua.globals().get::<Function>("total")?.dump(false);
    let other = Lua::new();
    other.globals().set("inbox", inbox)?;
    other.globals().set("total", other.load(total).into_function()?)?;
    assert_eq!(lua.load("table.insert(inbox, 1) return total()").eval::<i64>()?, 9);
    assert_eq!(other.load("table.insert(inbox, 2) return total()").eval::<i64>()?, 10);
    Ok(Done::Partly("a state cannot be copied: a second one is filled by name, as in `keep_and_restore`"))
}

/// A chunk is compiled to a function.
pub fn compile_once() -> Outcome {
    let lua = Lua::new();
    let script = lua.load("local n = ... return n * 2 + 1").into_function()?;
    for n in 0..1_000 {
        assert_eq!(script.call::<i64>(n)?, n * 2 + 1);
    }
    Ok(Done::Yes)
}

/// One function wraps any tool.
pub fn record_calls() -> Outcome {
    struct Call {
        name: &'static str,
        arguments: String,
        size: usize,
        time: Duration,
    }
    let lua = Lua::new();
    let calls: Rc<RefCell<Vec<Call>>> = Rc::default();
    let recorded = |name, tool: Function| {
        let log = calls.clone();
        lua.create_function(move |_, arguments: MultiValue| {
            let written = serde_json::to_string(&Vec::from_iter(&arguments)).map_err(Error::external)?;
            let start = Instant::now();
            let result: Value = tool.call(arguments)?;
            let size = serde_json::to_string(&result).map_err(Error::external)?.len();
            log.borrow_mut().push(Call { name, arguments: written, size, time: start.elapsed() });
            Ok(result)
        })
    };
    let search = lua.create_function(|_, (query, limit): (String, i64)| Ok(crate::search(&query, limit)))?;
    lua.globals().set("search", recorded("search", search)?)?;
    lua.load("search('rust', 2) search('lua', 1)").exec()?;
    let calls = calls.take();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].name, &*calls[0].arguments, calls[0].size), ("search", r#"["rust",2]"#, 20));
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// mlua passes the panic through Lua; the host catches it.
pub fn panic_in_tool() -> Outcome {
    fn message(panic: Box<dyn Any + Send>) -> String {
        let text = panic.downcast::<String>().map(|text| *text);
        text.or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string())).unwrap_or_default()
    }
    let lua = Lua::new();
    lua.globals().set("broken", lua.create_function(|_, ()| -> mlua::Result<i64> { panic!("the disk is full") })?)?;
    let run = |script| match catch_unwind(AssertUnwindSafe(|| lua.load(script).eval::<i64>())) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(message(panic)),
    };
    assert_eq!(run("broken()"), Err("the disk is full".to_string()));
    assert_eq!(run("1 + 1"), Ok(2));
    Ok(Done::Yes)
}

/// Each thread has its own state, into which it loads the bytecode.
pub fn two_threads() -> Outcome {
    let script = Lua::new().load("meet() return ... * 2").into_function()?.dump(false);
    let both = Arc::new(Barrier::new(2));
    let run = |n: i64| -> mlua::Result<i64> {
        let lua = Lua::new();
        let both = both.clone();
        lua.globals().set("meet", Function::wrap_raw(move || crate::meet(&both)))?;
        lua.load(&script).call(n)
    };
    let (one, two) = thread::scope(|scope| {
        let run = |n| run(n).map_err(|error| error.to_string());
        let (one, two) = (scope.spawn(move || run(1)), scope.spawn(move || run(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (2, 4));
    Ok(Done::Yes)
}
