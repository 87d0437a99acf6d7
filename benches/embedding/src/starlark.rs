//! starlark-rust. A script has neither `while` nor recursion, so that an endless one is a very long loop.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use starlark::any::ProvidesStaticType;
use starlark::environment::{FrozenModule, Globals, GlobalsBuilder, Module};
use starlark::eval::Evaluator;
use starlark::starlark_module;
use starlark::syntax::{AstModule, Dialect};
use starlark::values::UnpackValue;
use starlark::values::none::NoneType;
use tokio::runtime::{Handle, Runtime};

use crate::{DEADLINE, Done, Failed, Outcome, mails};

/// A function; what a closure would capture is passed through the evaluator.
pub fn typed_function() -> Outcome {
    #[derive(Debug, Default, ProvidesStaticType)]
    struct Calls(Cell<u64>);
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn double(n: i64, eval: &mut Evaluator) -> anyhow::Result<i64> {
            let Calls(calls) = eval.extra.and_then(|extra| extra.downcast_ref()).expect("set by the host");
            calls.set(calls.get() + 1);
            Ok(n * 2)
        }
    }
    let calls = Calls::default();
    let globals = GlobalsBuilder::standard().with(tools).build();
    let script = AstModule::parse("script", "double(21)".to_string(), &Dialect::Standard)?;
    Module::with_temp_heap(|module| -> Outcome {
        let mut evaluator = Evaluator::new(&module);
        evaluator.extra = Some(&calls);
        assert_eq!(i64::unpack_value(evaluator.eval_module(script, &globals)?)?, Some(42));
        assert_eq!(calls.0.get(), 1);
        Ok(Done::Partly("takes functions, not closures: the capture is passed through `Evaluator::extra`"))
    })
}

/// serde converts the structs to JSON values, which become dictionaries, and back.
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
    let script = r#"
kept = [mail for mail in mails if mail["sent"] != None and mail["labels"]]
{"count": len(kept), "senders": [mail["sender"] for mail in kept]}
"#;
    let script = AstModule::parse("script", script.to_string(), &Dialect::Standard)?;
    Module::with_temp_heap(|module| -> Outcome {
        module.set("mails", module.heap().alloc(serde_json::to_value(mails!())?));
        let answer = Evaluator::new(&module).eval_module(script, &Globals::standard())?;
        let summary: Summary = serde_json::from_value(answer.to_json_value()?)?;
        assert_eq!(summary, Summary { count: 1, senders: vec!["ann".to_string()] });
        Ok(Done::Yes)
    })
}

/// The tool blocks a thread of the pool for blocking work, on which the script runs.
pub fn async_tool() -> Outcome {
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn fetch(name: String) -> anyhow::Result<String> {
            Ok(Handle::current().block_on(crate::fetch(name)))
        }
    }
    let globals = GlobalsBuilder::standard().with(tools).build();
    let script = AstModule::parse("script", r#"fetch("rust")"#.to_string(), &Dialect::Standard)?;
    let runtime = Runtime::new()?;
    let running = runtime.spawn_blocking(move || {
        Module::with_temp_heap(|module| {
            let answer = Evaluator::new(&module).eval_module(script, &globals)?;
            starlark::Result::Ok(answer.unpack_str().map(str::to_string))
        })
    });
    assert_eq!(runtime.block_on(running)??.as_deref(), Some("page of rust"));
    Ok(Done::Partly("no asynchronous evaluation: the script and its call block a thread"))
}

/// A callback every 1,000 calls and rounds compares the clock; a tool does so itself.
pub fn deadline() -> Outcome {
    #[derive(Debug, ProvidesStaticType)]
    struct End(Instant);
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn nap(eval: &mut Evaluator) -> anyhow::Result<NoneType> {
            crate::nap();
            let End(end) = eval.extra.and_then(|extra| extra.downcast_ref()).expect("set by the host");
            if Instant::now() < *end { Ok(NoneType) } else { Err(anyhow::anyhow!("out of time")) }
        }
    }
    let globals = GlobalsBuilder::standard().with(tools).build();
    for body in ["pass", "nap()"] {
        let script = format!("def run():\n  for n in range(2000000000):\n    {body}\nrun()");
        let script = AstModule::parse("script", script, &Dialect::Standard)?;
        let end = End(Instant::now() + DEADLINE);
        let result = Module::with_temp_heap(|module| {
            let mut evaluator = Evaluator::new(&module);
            evaluator.extra = Some(&end);
            evaluator.set_check_cancelled(Box::new(|| Instant::now() > end.0));
            evaluator.eval_module(script, &globals).map(drop).map_err(|error| match Instant::now() > end.0 {
                true => "timeout".to_string(),
                false => error.to_string(),
            })
        });
        assert_eq!(result, Err("timeout".to_string()));
    }
    Ok(Done::Partly("looks at the clock only every 1,000 calls and rounds, so that slow tools have to do so too"))
}

/// A callback every 1,000 calls and rounds reads a flag.
pub fn cancel() -> Outcome {
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    let script = "def run():\n  for n in range(2000000000):\n    pass\nrun()";
    let script = AstModule::parse("script", script.to_string(), &Dialect::Standard)?;
    crate::soon(move || flag.store(true, Relaxed));
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.set_check_cancelled(Box::new(|| cancelled.load(Relaxed)));
        let error = evaluator.eval_module(script, &Globals::standard()).unwrap_err();
        assert!(error.to_string().contains("Evaluation cancelled"));
    });
    Ok(Done::Yes)
}

/// The evaluator counts calls and rounds, and compares the size of its heap every 1,000 of them.
pub fn limits() -> Outcome {
    let run = |body| {
        let script = format!("def run():\n  all = []\n  for n in range(2000000000):\n    {body}\nrun()");
        let script = AstModule::parse("script", script, &Dialect::Standard)?;
        Module::with_temp_heap(|module| {
            let mut evaluator = Evaluator::new(&module);
            evaluator.set_max_tick_count(1_000_000)?;
            evaluator.set_max_heap_size(32 << 20)?;
            evaluator.eval_module(script, &Globals::standard()).map(drop)
        })
    };
    assert!(run("pass").unwrap_err().to_string().contains("limit of 1000000 ticks"));
    assert!(run("all.append([n])").unwrap_err().to_string().contains("Heap memory limit"));
    Ok(Done::Partly(
        "the size of the heap is compared every 1,000 calls and rounds, and omits the contents of dictionaries",
    ))
}

/// The data is written as JSON; the functions are kept as source text.
pub fn keep_and_restore() -> Outcome {
    let data = "inbox = [3, 5]";
    let functions = "def total(more):\n  for n in inbox:\n    more += n\n  return more";
    let parse = |script: &str| AstModule::parse("script", script.to_string(), &Dialect::Standard);
    let globals = Globals::standard();
    let kept = Module::with_temp_heap(|module| -> Result<String, Failed> {
        for script in [data, functions, "inbox.append(8)"] {
            Evaluator::new(&module).eval_module(parse(script)?, &globals)?;
        }
        let data = module.get("inbox").expect("defined above").to_json_value()?;
        Ok(serde_json::to_string(&(functions, data))?)
    })?;

    let (functions, data): (String, serde_json::Value) = serde_json::from_str(&kept)?;
    Module::with_temp_heap(|module| -> Outcome {
        module.set("inbox", module.heap().alloc(data));
        Evaluator::new(&module).eval_module(parse(&functions)?, &globals)?;
        let answer = Evaluator::new(&module).eval_module(parse("total(1)")?, &globals)?;
        assert_eq!(answer.unpack_i32(), Some(17));
        Ok(Done::Partly("data by name as JSON; the host keeps the source text of functions, apart from that of data"))
    })
}

/// The state is frozen, and imported by both continuations.
pub fn fork() -> Outcome {
    let parse = |script: &str| AstModule::parse("script", script.to_string(), &Dialect::Standard);
    let globals = Globals::standard();
    let base = Module::with_temp_heap(|module| -> starlark::Result<FrozenModule> {
        let script = "inbox = [3, 5]\ndef total(inbox):\n  sum = 0\n  for n in inbox:\n    sum += n\n  return sum";
        Evaluator::new(&module).eval_module(parse(script)?, &globals)?;
        Ok(module.freeze()?)
    })?;
    let fork = |script: &str| {
        Module::with_temp_heap(|module| -> Result<Option<i32>, Failed> {
            module.import_public_symbols(&base);
            Ok(Evaluator::new(&module).eval_module(parse(script)?, &globals)?.unpack_i32())
        })
    };
    assert_eq!(fork("inbox = inbox + [1]\ntotal(inbox)")?, Some(9));
    assert_eq!(fork("inbox = inbox + [2]\ntotal(inbox)")?, Some(10));
    Ok(Done::Partly("the state is frozen: a continuation cannot change data in place, and functions see the old data"))
}

/// A module is frozen, and its function called.
pub fn compile_once() -> Outcome {
    let script = AstModule::parse("script", "def run(n):\n  return n * 2 + 1".to_string(), &Dialect::Standard)?;
    let module = Module::with_temp_heap(|module| -> starlark::Result<FrozenModule> {
        Evaluator::new(&module).eval_module(script, &Globals::standard())?;
        Ok(module.freeze()?)
    })?;
    let run = module.get("run")?;
    for n in 0..1_000 {
        Module::with_temp_heap(|module| -> Result<(), Failed> {
            let heap = module.heap();
            let run = heap.access_owned_frozen_value(&run);
            let answer = Evaluator::new(&module).eval_function(run, &[heap.alloc(n)], &[])?;
            assert_eq!(answer.unpack_i32(), Some(n * 2 + 1));
            Ok(())
        })?;
    }
    Ok(Done::Yes)
}

/// Every tool records its own calls, in a log that is passed through the evaluator.
pub fn record_calls() -> Outcome {
    #[derive(Debug)]
    struct Call {
        name: &'static str,
        arguments: String,
        size: usize,
        time: Duration,
    }
    #[derive(Debug, Default, ProvidesStaticType)]
    struct Log(RefCell<Vec<Call>>);
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn search(query: &str, limit: i64, eval: &mut Evaluator) -> anyhow::Result<String> {
            let start = Instant::now();
            let result = crate::search(query, limit);
            let Log(calls) = eval.extra.and_then(|extra| extra.downcast_ref()).expect("set by the host");
            let (arguments, size) = (format!("[{query:?},{limit}]"), result.len());
            calls.borrow_mut().push(Call { name: "search", arguments, size, time: start.elapsed() });
            Ok(result)
        }
    }
    let log = Log::default();
    let globals = GlobalsBuilder::standard().with(tools).build();
    let script = "search(\"rust\", 2)\nsearch(\"lua\", 1)".to_string();
    let script = AstModule::parse("script", script, &Dialect::Standard)?;
    Module::with_temp_heap(|module| {
        let mut evaluator = Evaluator::new(&module);
        evaluator.extra = Some(&log);
        evaluator.eval_module(script, &globals).map(drop)
    })?;
    let calls = log.0.take();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].name, &*calls[0].arguments, calls[0].size), ("search", r#"["rust",2]"#, 18));
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// The host catches the panic, which unwinds through the evaluator.
pub fn panic_in_tool() -> Outcome {
    fn message(panic: Box<dyn Any + Send>) -> String {
        let text = panic.downcast::<String>().map(|text| *text);
        text.or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string())).unwrap_or_default()
    }
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn broken() -> anyhow::Result<NoneType> {
            panic!("the disk is full")
        }
    }
    let globals = GlobalsBuilder::standard().with(tools).build();
    let eval = |script: &str| {
        let script = AstModule::parse("script", script.to_string(), &Dialect::Standard)?;
        Module::with_temp_heap(|module| Ok(Evaluator::new(&module).eval_module(script, &globals)?.unpack_i32()))
    };
    let run = |script| match catch_unwind(AssertUnwindSafe(|| eval(script))) {
        Ok(result) => result.map_err(|error: starlark::Error| error.to_string()),
        Err(panic) => Err(message(panic)),
    };
    assert_eq!(run("broken()"), Err("the disk is full".to_string()));
    assert_eq!(run("1 + 1"), Ok(Some(2)));
    Ok(Done::Yes)
}

/// The threads share the frozen module.
pub fn two_threads() -> Outcome {
    #[derive(Debug, ProvidesStaticType)]
    struct Both(Barrier);
    #[starlark_module]
    fn tools(builder: &mut GlobalsBuilder) {
        fn meet(eval: &mut Evaluator) -> anyhow::Result<NoneType> {
            let Both(both) = eval.extra.and_then(|extra| extra.downcast_ref()).expect("set by the host");
            crate::meet(both);
            Ok(NoneType)
        }
    }
    let globals = GlobalsBuilder::standard().with(tools).build();
    let script = "def run(n):\n  meet()\n  return n * 2".to_string();
    let script = AstModule::parse("script", script, &Dialect::Standard)?;
    let module = Module::with_temp_heap(|module| -> starlark::Result<FrozenModule> {
        Evaluator::new(&module).eval_module(script, &globals)?;
        Ok(module.freeze()?)
    })?;
    let script = module.get("run")?;
    let both = Both(Barrier::new(2));
    let run = |n: i32| {
        Module::with_temp_heap(|module| {
            let heap = module.heap();
            let mut evaluator = Evaluator::new(&module);
            evaluator.extra = Some(&both);
            let answer = evaluator.eval_function(heap.access_owned_frozen_value(&script), &[heap.alloc(n)], &[]);
            answer.map(|answer| answer.unpack_i32())
        })
    };
    let (one, two) = thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| run(1)), scope.spawn(|| run(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (Some(2), Some(4)));
    Ok(Done::Yes)
}
