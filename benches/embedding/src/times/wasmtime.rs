//! wasmtime: one component, compiled once, of which each user has an instance. A program cannot come as text later: its
//! guest has the programs of [`Subject`] as functions.

use wasmtime::component::{Component, Func, InstancePre, Linker, TypedFunc};
use wasmtime::{Config, Engine, Store, StoreLimits, StoreLimitsBuilder};

use super::{BONUS, CALLS, MEMORY, Order, Quote, STEPS, Subject, Suspend, quote};
use crate::Failed;

const GUEST: &str = r#"
    (component
        (type $quote' (record (field "customer" string) (field "amount" s64) (field "express" bool)))
        (import "quotation" (type $quotation (eq $quote')))
        (type $price' (record (field "net" s64) (field "shipping" s64) (field "note" string)))
        (import "price" (type $price (eq $price')))
        (import "quote" (func $quote (param "order" $quotation) (result $price)))
        (type $order'
            (record (field "id" u64) (field "customer" string) (field "amount" s64) (field "paid" bool)))
        (export $order "order" (type $order'))
        (core module $memory
            (memory (export "memory") 1)
            (data (i32.const 0) "ann")
            (global $free (export "free") (mut i32) (i32.const 1024))
            (func (export "allocate") (param i32 i32 i32 i32) (result i32)
                (global.get $free)
                (global.set $free
                    (i32.and (i32.add (global.get $free) (i32.add (local.get 3) (i32.const 7))) (i32.const -8)))))
        (core instance $m (instantiate $memory))
        (core func $quote'' (canon lower (func $quote)
            (memory (core memory $m "memory")) (realloc (core func $m "allocate"))))
        (core module $guest
            (import "host" "quote" (func $quote (param i32 i32 i64 i32 i32)))
            (import "memory" "memory" (memory 1))
            (import "memory" "free" (global $free (mut i32)))
            (global $bonus (mut i64) (i64.const 0))
            (func (export "define") (param i64) (global.set $bonus (local.get 0)))
            (func (export "run") (param $order i32) (param $orders i32) (result i64)
                (local $end i32) (local $total i64)
                (local.set $total (global.get $bonus))
                (local.set $end (i32.add (local.get $order) (i32.mul (local.get $orders) (i32.const 32))))
                (block $done
                    (loop $next
                        (br_if $done (i32.ge_u (local.get $order) (local.get $end)))
                        (if (i32.load8_u offset=24 (local.get $order))
                            (then (local.set $total
                                (i64.add (local.get $total) (i64.load offset=16 (local.get $order))))))
                        (local.set $order (i32.add (local.get $order) (i32.const 32)))
                        (br $next)))
                (global.set $free (i32.const 1024))
                (local.get $total))
            (func (export "calls") (param $most i64) (result i64)
                (local $n i64) (local $total i64)
                (block $done
                    (loop $next
                        (br_if $done (i64.ge_s (local.get $n) (local.get $most)))
                        (call $quote
                            (i32.const 0) (i32.const 3) (local.get $n) (i32.const 0) (i32.const 8))
                        (local.set $total (i64.add (local.get $total)
                            (i64.add (i64.load (i32.const 8)) (i64.load (i32.const 16)))))
                        (global.set $free (i32.const 1024))
                        (local.set $n (i64.add (local.get $n) (i64.const 1)))
                        (br $next)))
                (local.get $total)))
        (core instance $i (instantiate $guest
            (with "host" (instance (export "quote" (func $quote'')))) (with "memory" (instance $m))))
        (func (export "define") (param "bonus" s64) (canon lift (core func $i "define")))
        (func (export "run") (param "orders" (list $order)) (result s64)
            (canon lift (core func $i "run")
                (memory (core memory $m "memory")) (realloc (core func $m "allocate"))))
        (func (export "calls") (param "most" s64) (result s64) (canon lift (core func $i "calls"))))"#;

/// The engine, and the component that is ready to be instantiated.
pub struct Wasmtime {
    engine: Engine,
    guest: InstancePre<StoreLimits>,
}

/// An instance, and its functions.
pub struct Session {
    store: Store<StoreLimits>,
    define: TypedFunc<(i64,), ()>,
    run: Func,
    calls: TypedFunc<(i64,), (i64,)>,
}

impl Subject for Wasmtime {
    type Session = Session;

    const SUSPEND: Result<Suspend<Self>, &'static str> =
        Err("a run on a stack of its own can be suspended, but the stack cannot be written out");

    const NOTES: &'static [&'static str] = &[
        "run, tool call: the guest is compiled once, by hand from WebAssembly text; a program cannot come as text later",
    ];

    fn new() -> Result<Self, Failed> {
        let engine = Engine::new(Config::new().consume_fuel(true))?;
        let mut linker = Linker::new(&engine);
        linker.root().func_wrap("quote", |_, (order,): (Quote,)| Ok((quote(&order),)))?;
        let guest = linker.instantiate_pre(&Component::new(&engine, GUEST)?)?;
        Ok(Wasmtime { engine, guest })
    }

    fn session(&self) -> Result<Session, Failed> {
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        let instance = self.guest.instantiate(&mut store)?;
        Ok(Session {
            define: instance.get_typed_func(&mut store, "define")?,
            run: instance.get_func(&mut store, "run").ok_or("no function")?,
            calls: instance.get_typed_func(&mut store, "calls")?,
            store,
        })
    }

    fn define(&self, session: &mut Session) -> Result<(), Failed> {
        session.store.set_fuel(STEPS.into())?;
        Ok(session.define.call(&mut session.store, (BONUS,))?)
    }

    fn run(&self, session: &mut Session, orders: &[Order]) -> Result<i64, Failed> {
        session.store.set_fuel(STEPS.into())?;
        let run = session.run.typed::<(&[Order],), (i64,)>(&session.store)?;
        Ok(run.call(&mut session.store, (orders,))?.0)
    }

    fn calls(&self, session: &mut Session) -> Result<i64, Failed> {
        session.store.set_fuel(STEPS.into())?;
        Ok(session.calls.call(&mut session.store, (CALLS,))?.0)
    }
}
