//! wasmtime. Its guests are usually compiled from another language; without a compiler, they are WebAssembly text here,
//! whose lines count. Numbers are passed to core modules, structs and strings to components.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use wasmtime::component::{self, Component, ComponentType, Lift, Lower};
use wasmtime::{Config, Engine, Instance, Linker, Module, Store, StoreLimitsBuilder, Trap, UpdateDeadline};

use crate::{DEADLINE, Done, Outcome, mails};

/// A closure becomes an import of the module.
pub fn typed_function() -> Outcome {
    let guest = r#"
        (module
            (import "host" "double" (func $double (param i64) (result i64)))
            (func (export "run") (result i64) (call $double (i64.const 21))))"#;
    let calls = Arc::new(AtomicU64::new(0));
    let counter = calls.clone();
    let engine = Engine::default();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "double", move |n: i64| {
        counter.fetch_add(1, Relaxed);
        n * 2
    })?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Module::new(&engine, guest)?)?;
    let run = instance.get_typed_func::<(), i64>(&mut store, "run")?;
    assert_eq!(run.call(&mut store, ())?, 42);
    assert_eq!(calls.load(Relaxed), 1);
    Ok(Done::Yes)
}

/// Derived conversions of the component model.
pub fn structs() -> Outcome {
    #[derive(ComponentType, Lower)]
    #[component(record)]
    struct Mail {
        id: u64,
        sender: String,
        labels: Vec<String>,
        sent: Option<String>,
    }
    #[derive(ComponentType, Debug, Lift, PartialEq)]
    #[component(record)]
    struct Summary {
        count: u64,
        senders: Vec<String>,
    }
    let guest = r#"
        (component
            (type $mail' (record
                (field "id" u64) (field "sender" string) (field "labels" (list string)) (field "sent" (option string))))
            (export $mail "mail" (type $mail'))
            (type $summary' (record (field "count" u64) (field "senders" (list string))))
            (export $summary "summary" (type $summary'))
            (core module $guest
                (memory (export "memory") 1)
                (global $free (mut i32) (i32.const 1024))
                (func $allocate (export "allocate") (param i32 i32 i32 i32) (result i32)
                    (global.get $free)
                    (global.set $free
                        (i32.and (i32.add (global.get $free) (i32.add (local.get 3) (i32.const 7))) (i32.const -8))))
                (func (export "summarize") (param $mail i32) (param $mails i32) (result i32)
                    (local $end i32) (local $senders i32) (local $count i32) (local $sender i32)
                    (local.set $end (i32.add (local.get $mail) (i32.mul (local.get $mails) (i32.const 40))))
                    (local.set $senders (call $allocate
                        (i32.const 0) (i32.const 0) (i32.const 4) (i32.mul (local.get $mails) (i32.const 8))))
                    (block $done
                        (loop $next
                            (br_if $done (i32.ge_u (local.get $mail) (local.get $end)))
                            (if (i32.and
                                    (i32.load8_u offset=24 (local.get $mail))
                                    (i32.gt_u (i32.load offset=20 (local.get $mail)) (i32.const 0)))
                                (then
                                    (local.set $sender
                                        (i32.add (local.get $senders) (i32.mul (local.get $count) (i32.const 8))))
                                    (i64.store (local.get $sender) (i64.load offset=8 (local.get $mail)))
                                    (local.set $count (i32.add (local.get $count) (i32.const 1)))))
                            (local.set $mail (i32.add (local.get $mail) (i32.const 40)))
                            (br $next)))
                    (i64.store (i32.const 0) (i64.extend_i32_u (local.get $count)))
                    (i32.store (i32.const 8) (local.get $senders))
                    (i32.store (i32.const 12) (local.get $count))
                    (i32.const 0)))
            (core instance $i (instantiate $guest))
            (func (export "summarize") (param "mails" (list $mail)) (result $summary)
                (canon lift (core func $i "summarize")
                    (memory (core memory $i "memory")) (realloc (core func $i "allocate")))))"#;
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let instance = component::Linker::new(&engine).instantiate(&mut store, &Component::new(&engine, guest)?)?;
    let summarize = instance.get_typed_func::<(Vec<Mail>,), (Summary,)>(&mut store, "summarize")?;
    let (summary,) = summarize.call(&mut store, (mails!(),))?;
    assert_eq!(summary, Summary { count: 1, senders: vec!["ann".to_string()] });
    Ok(Done::Yes)
}

/// The guest runs on a stack of its own, which is suspended while the call waits.
pub fn async_tool() -> Outcome {
    let guest = r#"
        (component
            (import "fetch" (func $fetch (param "name" string) (result string)))
            (core module $memory
                (memory (export "memory") 1)
                (data (i32.const 0) "rust")
                (func (export "allocate") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
            (core instance $m (instantiate $memory))
            (core func $fetch' (canon lower (func $fetch)
                (memory (core memory $m "memory")) (realloc (core func $m "allocate"))))
            (core module $guest
                (import "host" "fetch" (func $fetch (param i32 i32 i32)))
                (func (export "run") (result i32)
                    (call $fetch (i32.const 0) (i32.const 4) (i32.const 8))
                    (i32.const 8)))
            (core instance $i (instantiate $guest (with "host" (instance (export "fetch" (func $fetch'))))))
            (func (export "run") (result string)
                (canon lift (core func $i "run") (memory (core memory $m "memory")))))"#;
    let engine = Engine::default();
    let component = Component::new(&engine, guest)?;
    let mut linker = component::Linker::new(&engine);
    linker
        .root()
        .func_wrap_async("fetch", |_, (name,): (String,)| Box::new(async { Ok((crate::fetch(name).await,)) }))?;
    let mut store = Store::new(&engine, ());
    let answer = Runtime::new()?.block_on(async {
        let instance = linker.instantiate_async(&mut store, &component).await?;
        let run = instance.get_typed_func::<(), (String,)>(&mut store, "run")?;
        run.call_async(&mut store, ()).await
    });
    assert_eq!(answer?.0, "page of rust");
    Ok(Done::Yes)
}

/// Compiled code compares an epoch, which a thread of the host advances.
pub fn deadline() -> Outcome {
    let endless = r#"(module (func (export "run") (loop $again (br $again))))"#;
    let napping = r#"
        (module
            (import "host" "nap" (func $nap))
            (func (export "run") (loop $again (call $nap) (br $again))))"#;
    let engine = Engine::new(Config::new().epoch_interruption(true))?;
    let weak = engine.weak();
    thread::spawn(move || {
        while let Some(engine) = weak.upgrade() {
            engine.increment_epoch();
            drop(engine);
            thread::sleep(DEADLINE / 10);
        }
    });
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "nap", crate::nap)?;
    for guest in [endless, napping] {
        let mut store = Store::new(&engine, ());
        store.set_epoch_deadline(10);
        let instance = linker.instantiate(&mut store, &Module::new(&engine, guest)?)?;
        let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
        let error = run.call(&mut store, ()).unwrap_err();
        assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
    }
    Ok(Done::Yes)
}

/// The host advances the epoch, and a callback of the store reads a flag.
pub fn cancel() -> Outcome {
    let guest = r#"(module (func (export "run") (loop $again (br $again))))"#;
    let engine = Engine::new(Config::new().epoch_interruption(true))?;
    let mut store = Store::new(&engine, ());
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = cancelled.clone();
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| match flag.load(Relaxed) {
        true => Ok(UpdateDeadline::Interrupt),
        false => Ok(UpdateDeadline::Continue(1)),
    });
    let instance = Instance::new(&mut store, &Module::new(&engine, guest)?, &[])?;
    let run = instance.get_typed_func::<(), ()>(&mut store, "run")?;
    crate::soon(move || {
        cancelled.store(true, Relaxed);
        engine.increment_epoch();
    });
    let error = run.call(&mut store, ()).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
    Ok(Done::Yes)
}

/// Fuel, and a limit of the store on its memories.
pub fn limits() -> Outcome {
    let endless = r#"(module (func (export "run") (loop $again (br $again))))"#;
    let growing = r#"
        (module
            (memory 1)
            (func (export "run") (loop $again (drop (memory.grow (i32.const 1))) (br $again))))"#;
    let engine = Engine::new(Config::new().consume_fuel(true))?;
    let run = |guest| {
        let limits = StoreLimitsBuilder::new().memory_size(32 << 20).trap_on_grow_failure(true).build();
        let mut store = Store::new(&engine, limits);
        store.limiter(|limits| limits);
        store.set_fuel(1_000_000)?;
        let instance = Instance::new(&mut store, &Module::new(&engine, guest)?, &[])?;
        instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ())
    };
    assert_eq!(run(endless).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::OutOfFuel));
    assert!(format!("{:?}", run(growing).unwrap_err()).contains("forcing trap when growing memory"));
    Ok(Done::Yes)
}

/// The host copies the compiled module and the memory.
pub fn keep_and_restore() -> Outcome {
    let guest = r#"
        (module
            (memory (export "memory") 1)
            (data (i32.const 0) "\02\00\00\00\03\00\00\00\05\00\00\00")
            (func (export "push") (param $n i32)
                (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
                (i32.store (i32.shl (i32.load (i32.const 0)) (i32.const 2)) (local.get $n)))
            (func (export "total") (param $more i32) (result i32)
                (local $left i32)
                (local.set $left (i32.load (i32.const 0)))
                (loop $next
                    (local.set $more
                        (i32.add (local.get $more) (i32.load (i32.shl (local.get $left) (i32.const 2)))))
                    (local.set $left (i32.sub (local.get $left) (i32.const 1)))
                    (br_if $next (local.get $left)))
                (local.get $more)))"#;
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let module = Module::new(&engine, guest)?;
    let instance = Instance::new(&mut store, &module, &[])?;
    instance.get_typed_func::<i32, ()>(&mut store, "push")?.call(&mut store, 8)?;
    let memory = instance.get_memory(&mut store, "memory").ok_or("no memory")?;
    let kept = (module.serialize()?, memory.data(&store).to_vec());

    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    // SAFETY: the bytes are those of `serialize`.
    let module = unsafe { Module::deserialize(&engine, &kept.0)? };
    let instance = Instance::new(&mut store, &module, &[])?;
    let memory = instance.get_memory(&mut store, "memory").ok_or("no memory")?;
    let missing = kept.1.len() - memory.data_size(&store);
    memory.grow(&mut store, (missing / 65_536) as u64)?;
    memory.data_mut(&mut store).copy_from_slice(&kept.1);
    assert_eq!(instance.get_typed_func::<i32, i32>(&mut store, "total")?.call(&mut store, 1)?, 17);
    Ok(Done::Partly("only the memories that the module exports; its other globals and its tables are lost"))
}

/// The host copies the memory of the instance.
pub fn fork() -> Outcome {
    let guest = r#"
        (module
            (memory (export "memory") 1)
            (data (i32.const 0) "\08\00\00\00")
            (func (export "add") (param $n i32) (result i32)
                (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (local.get $n)))
                (i32.load (i32.const 0))))"#;
    let engine = Engine::default();
    let module = Module::new(&engine, guest)?;
    let new = |state: Option<&[u8]>| -> wasmtime::Result<_> {
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[])?;
        let memory = instance.get_memory(&mut store, "memory").expect("exported above");
        if let Some(state) = state {
            let missing = state.len() - memory.data_size(&store);
            memory.grow(&mut store, (missing / 65_536) as u64)?;
            memory.data_mut(&mut store).copy_from_slice(state);
        }
        let add = instance.get_typed_func::<i32, i32>(&mut store, "add")?;
        Ok((store, memory, add))
    };
    let (mut store, memory, add) = new(None)?;
    add.call(&mut store, 10)?;
    let (mut other, _, add_to_other) = new(Some(memory.data(&store)))?;
    assert_eq!(add.call(&mut store, 1)?, 19);
    assert_eq!(add_to_other.call(&mut other, 2)?, 20);
    Ok(Done::Partly("only the memories that the module exports, as in `keep_and_restore`"))
}

/// A module is compiled and linked, and instantiated for each run.
pub fn compile_once() -> Outcome {
    let guest = r#"
        (module
            (func (export "run") (param i64) (result i64)
                (i64.add (i64.mul (local.get 0) (i64.const 2)) (i64.const 1))))"#;
    let engine = Engine::default();
    let script = Linker::new(&engine).instantiate_pre(&Module::new(&engine, guest)?)?;
    for n in 0..1_000 {
        let mut store = Store::new(&engine, ());
        let run = script.instantiate(&mut store)?.get_typed_func::<i64, i64>(&mut store, "run")?;
        assert_eq!(run.call(&mut store, n)?, n * 2 + 1);
    }
    Ok(Done::Yes)
}

/// One function wraps any tool of a component.
pub fn record_calls() -> Outcome {
    use component::Val;
    struct Call {
        name: &'static str,
        arguments: String,
        size: usize,
        time: Duration,
    }
    let guest = r#"
        (component
            (import "search" (func $search (param "query" string) (param "limit" s64) (result string)))
            (core module $memory
                (memory (export "memory") 1)
                (data (i32.const 0) "rustlua")
                (func (export "allocate") (param i32 i32 i32 i32) (result i32) (i32.const 1024)))
            (core instance $m (instantiate $memory))
            (core func $search' (canon lower (func $search)
                (memory (core memory $m "memory")) (realloc (core func $m "allocate"))))
            (core module $guest
                (import "host" "search" (func $search (param i32 i32 i64 i32)))
                (func (export "run")
                    (call $search (i32.const 0) (i32.const 4) (i64.const 2) (i32.const 8))
                    (call $search (i32.const 4) (i32.const 3) (i64.const 1) (i32.const 8))))
            (core instance $i (instantiate $guest (with "host" (instance (export "search" (func $search'))))))
            (func (export "run") (canon lift (core func $i "run"))))"#;
    let (log, calls) = mpsc::channel();
    let recorded = |name, tool: fn(&[Val]) -> wasmtime::Result<Val>| {
        let log = log.clone();
        move |_: wasmtime::StoreContextMut<'_, ()>,
              _: component::types::ComponentFunc,
              arguments: &[Val],
              results: &mut [Val]| {
            let start = Instant::now();
            results[0] = tool(arguments)?;
            let arguments = arguments.iter().map(Val::to_wave).collect::<wasmtime::Result<Vec<_>>>()?.join(",");
            let size = results[0].to_wave()?.len();
            let _ = log.send(Call { name, arguments, size, time: start.elapsed() });
            Ok(())
        }
    };
    let engine = Engine::default();
    let mut linker = component::Linker::new(&engine);
    linker.root().func_new(
        "search",
        recorded("search", |arguments| match arguments {
            [Val::String(query), Val::S64(limit)] => Ok(Val::String(crate::search(query, *limit))),
            other => wasmtime::bail!("search takes a text and a number, not {other:?}"),
        }),
    )?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Component::new(&engine, guest)?)?;
    instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ())?;
    let calls: Vec<Call> = calls.try_iter().collect();
    assert_eq!(calls.len(), 2);
    assert_eq!((calls[0].name, &*calls[0].arguments, calls[0].size), ("search", r#""rust",2"#, 20));
    assert!(calls[1].time < Duration::from_secs(1));
    Ok(Done::Yes)
}

/// wasmtime passes the panic through the guest; the host catches it.
pub fn panic_in_tool() -> Outcome {
    fn message(panic: Box<dyn Any + Send>) -> String {
        let text = panic.downcast::<String>().map(|text| *text);
        text.or_else(|panic| panic.downcast::<&str>().map(|text| text.to_string())).unwrap_or_default()
    }
    let guest = r#"
        (module
            (import "host" "broken" (func $broken (result i64)))
            (func (export "break") (result i64) (call $broken))
            (func (export "add") (result i64) (i64.add (i64.const 1) (i64.const 1))))"#;
    let engine = Engine::default();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "broken", || -> i64 { panic!("the disk is full") })?;
    let script = linker.instantiate_pre(&Module::new(&engine, guest)?)?;
    let call = |name| {
        let mut store = Store::new(&engine, ());
        script.instantiate(&mut store)?.get_typed_func::<(), i64>(&mut store, name)?.call(&mut store, ())
    };
    let run = |name| match catch_unwind(AssertUnwindSafe(|| call(name))) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => Err(message(panic)),
    };
    assert_eq!(run("break"), Err("the disk is full".to_string()));
    assert_eq!(run("add"), Ok(2));
    Ok(Done::Yes)
}

/// The threads share the compiled module.
pub fn two_threads() -> Outcome {
    let guest = r#"
        (module
            (import "host" "meet" (func $meet))
            (func (export "run") (param i64) (result i64)
                (call $meet)
                (i64.mul (local.get 0) (i64.const 2))))"#;
    let both = Barrier::new(2);
    let engine = Engine::default();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "meet", move || crate::meet(&both))?;
    let script = linker.instantiate_pre(&Module::new(&engine, guest)?)?;
    let run = |n| {
        let mut store = Store::new(&engine, ());
        script.instantiate(&mut store)?.get_typed_func::<i64, i64>(&mut store, "run")?.call(&mut store, n)
    };
    let (one, two) = thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| run(1)), scope.spawn(|| run(2)));
        (one.join().unwrap(), two.join().unwrap())
    });
    assert_eq!((one?, two?), (2, 4));
    Ok(Done::Yes)
}
