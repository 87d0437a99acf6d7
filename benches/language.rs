//! Wall-clock time of the parts of the language on the local machine.
//!
//! `cargo bench --bench language`, or `cargo bench --bench language -- JSON` for benchmarks whose name contains this
//! text. An item is the unit in the name: a call, a look-up, a record.

mod programs;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use lispbox::lang::internal::reader;
use lispbox::lang::{Request, Session};
use programs::{DEFINITIONS, Program, answered, engine, host, part, request};

fn main() {
    divan::main();
}

/// Maximum seconds for each measurement.
const LONGEST: f64 = 0.5;

#[divan::bench(args = part("evaluation"), max_time = LONGEST)]
fn evaluation(bencher: Bencher, program: &Program) {
    run(bencher, program);
}

#[divan::bench(args = part("collections"), max_time = LONGEST)]
fn collections(bencher: Bencher, program: &Program) {
    run(bencher, program);
}

#[divan::bench(args = part("sequences"), max_time = LONGEST)]
fn sequences(bencher: Bencher, program: &Program) {
    run(bencher, program);
}

#[divan::bench(args = part("text"), max_time = LONGEST)]
fn text(bencher: Bencher, program: &Program) {
    run(bencher, program);
}

#[divan::bench(args = part("formats"), max_time = LONGEST)]
fn formats(bencher: Bencher, program: &Program) {
    run(bencher, program);
}

fn run(bencher: Bencher, program: &Program) {
    let mut session = program.session();
    bencher
        .counter(ItemsCount::new(program.operations))
        .with_inputs(|| (program.request(), host()))
        .bench_local_values(|(request, host)| session.eval(request, host));
}

/// Parsing of text to forms, without a session.
#[divan::bench_group(max_time = LONGEST)]
mod reading {
    use super::*;

    #[divan::bench]
    fn program_of_100_lines(bencher: Bencher) {
        read(bencher, DEFINITIONS);
    }

    #[divan::bench]
    fn megabyte_of_data(bencher: Bencher) {
        let record = "{:id 17 :sender {:name \"Customer 17\" :email \"customer-17@example.org\"} :size 12.25}\n";
        read(bencher, &record.repeat(1_000_000 / record.len()));
    }

    fn read(bencher: Bencher, text: &str) {
        assert!(reader::read(text).is_ok());
        bencher.counter(BytesCount::of_str(text)).bench_local(|| reader::read(text));
    }
}

/// The interface for Rust programs, beside that through text.
#[divan::bench_group(max_time = LONGEST)]
mod embedding {
    use super::*;
    use lispbox::lang::{Engine, Value, World};
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Serialize};
    use std::collections::HashMap;

    /// The number of calls of a function in a program.
    const CALLS: usize = 100_000;

    #[divan::bench]
    fn calls_of_a_typed_function(bencher: Bencher) {
        calls(bencher, "my/double");
    }

    #[divan::bench]
    fn calls_of_a_function_of_values(bencher: Bencher) {
        calls(bencher, "my/same");
    }

    #[divan::bench]
    fn calls_of_a_builtin(bencher: Bencher) {
        calls(bencher, "identity");
    }

    fn calls(bencher: Bencher, function: &str) {
        let mut builder = Engine::builder();
        builder.function("my/double", |n: i64| n * 2);
        builder.function("my/same", |value: Value| value);
        let engine = builder.build().expect("the names are free");
        let text = format!("(loop [i 0] (if (< i {CALLS}) (do ({function} i) (recur (inc i))) i))");
        let program = engine.compile(&text).expect("it is read");
        let (mut session, world) = (engine.session(), World::default());
        bencher.counter(ItemsCount::new(CALLS)).bench_local(|| session.run(&program).eval::<i64>(&world));
    }

    #[divan::bench]
    fn least_program_compiled(bencher: Bencher) {
        let engine = engine();
        let program = engine.compile("(+ 1 1)").expect("it is read");
        let (mut session, world) = (engine.session(), World::default());
        bencher.bench_local(|| session.run(&program).eval::<i64>(&world));
    }

    #[derive(Clone, Serialize)]
    struct Mail {
        id: u64,
        sender: String,
        subject: String,
        labels: Vec<&'static str>,
        size: f64,
        unread: bool,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the conversion is measured")]
    struct Summary {
        count: u64,
        largest: f64,
        senders: HashMap<String, u64>,
    }

    const SUMMARY: &str =
        "{:count (count data) :largest (apply max (map :size data)) :senders (frequencies (map :sender data))}";

    fn mails() -> Vec<Mail> {
        let mail = |id: u64| Mail {
            id,
            sender: format!("customer-{}@example.org", id % 20),
            subject: format!("Order {id} of this week, with a few remarks"),
            labels: vec!["inbox", "paid"],
            size: id as f64 * 1.5,
            unread: id.is_multiple_of(2),
        };
        (0..100).map(mail).collect()
    }

    /// A program that does little, so that its data and its result are most of the work.
    const FIRST: &str = "(select-keys (first data) [:id :sender :size])";

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only the conversion is measured")]
    struct First {
        id: u64,
        sender: String,
        size: f64,
    }

    #[divan::bench]
    fn first_of_mails_by_serde(bencher: Bencher) {
        by_serde::<First>(bencher, FIRST);
    }

    #[divan::bench]
    fn first_of_mails_by_text(bencher: Bencher) {
        by_text::<First>(bencher, FIRST);
    }

    #[divan::bench]
    fn summary_of_mails_by_serde(bencher: Bencher) {
        by_serde::<Summary>(bencher, SUMMARY);
    }

    #[divan::bench]
    fn summary_of_mails_by_text(bencher: Bencher) {
        by_text::<Summary>(bencher, SUMMARY);
    }

    fn by_serde<T: DeserializeOwned>(bencher: Bencher, program: &str) {
        let (mails, engine) = (mails(), engine());
        let program = engine.compile(program).expect("it is read");
        let (mut session, world) = (engine.session(), World::default());
        bencher.bench_local(|| session.run(&program).data(&mails).eval::<T>(&world).expect("it fits").done());
    }

    fn by_text<T: DeserializeOwned>(bencher: Bencher, program: &str) {
        let (mails, mut session) = (mails(), engine().session());
        bencher.bench_local(|| {
            let data = serde_json::to_string(&mails).expect("it is data");
            let reply = session.eval(Request { data: Some(data), ..request(program) }, host());
            serde_json::from_value::<T>(reply.json.expect("it is data")).expect("it fits")
        });
    }

    #[divan::bench]
    fn fork(bencher: Bencher) {
        let mut session = sessions::with_records();
        bencher.bench_local(|| session.fork());
    }
}

/// Operations around programs: sessions and their snapshots.
#[divan::bench_group(max_time = LONGEST)]
mod sessions {
    use super::*;
    use std::fmt;

    #[divan::bench]
    fn least_program(bencher: Bencher) {
        let mut session = engine().session();
        assert_eq!(answered(session.eval(request("(+ 1 1)"), host())), "2");
        bencher.bench_local(|| session.eval(request("(+ 1 1)"), host()));
    }

    #[divan::bench]
    fn least_program_in_a_new_session(bencher: Bencher) {
        let engine = engine();
        bencher.bench_local(|| {
            let mut session = engine.session();
            (session.eval(request("(+ 1 1)"), host()), session)
        });
    }

    #[divan::bench]
    fn megabyte_bound(bencher: Bencher) {
        let mut session = engine().session();
        let record = serde_json::json!({"id": 17, "name": "Customer 17", "tags": ["new", "paid"], "size": 12.25});
        let records = serde_json::Value::Array(vec![record; 15_000]).to_string();
        bencher
            .counter(BytesCount::of_str(&records))
            .bench_local(|| session.bind("records", &records, host()).expect("it is JSON"));
    }

    #[divan::bench(args = KINDS, sample_count = 10)]
    fn written(bencher: Bencher, kind: &Kind) {
        let mut session = kind.session();
        bencher.bench_local(|| session.encode().expect("it encodes"));
    }

    /// Takes at most twice as long as writing.
    #[divan::bench(args = KINDS, sample_count = 10)]
    fn read(bencher: Bencher, kind: &Kind) {
        let text = kind.session().encode().expect("it encodes");
        let engine = engine();
        bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
            let mut session = engine.session();
            session.decode(&text).expect("it decodes");
            session
        });
    }

    /// What a session consists of.
    pub struct Kind {
        name: &'static str,
        /// Defines a hundred thousand entries.
        data: &'static str,
        /// The number of functions.
        functions: usize,
    }

    const fn data(name: &'static str, data: &'static str) -> Kind {
        Kind { name, data, functions: 0 }
    }

    const RECORDS: Kind = Kind {
        name: "records",
        data: "(def records (mapv (fn [i] {:id i
                                        :sender (str \"customer-\" (mod i 500) \"@example.org\")
                                        :labels [:inbox :paid]
                                        :size (/ (mod (* i 7919) 10007) 4.0)
                                        :unread (even? i)})
                               (range 100000)))",
        functions: 50,
    };

    const KINDS: &[Kind] = &[
        RECORDS,
        data("a map of strings", "(def m (into {} (map (fn [i] [(str \"key-\" i) i]) (range 100000))))"),
        data("a map of integers", "(def m (into {} (map (fn [i] [(* 7 i) i]) (range 100000))))"),
        data("a set of strings", "(def s (into #{} (map (fn [i] (str \"key-\" i)) (range 100000))))"),
        data("a set of integers", "(def s (into #{} (map (fn [i] (* 7 i)) (range 100000))))"),
        data("vectors", "(def v (mapv (fn [i] [i [(inc i) [i \"a\"]]]) (range 100000)))"),
        Kind { name: "functions", data: "", functions: 500 },
    ];

    impl fmt::Display for Kind {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.name)
        }
    }

    impl Kind {
        fn session(&self) -> Session {
            let function = |i: usize| {
                format!(
                    "(defn total-{i} \"The sum of sizes over {i}.\" [records limit]
                       (let [large (filter #(> (:size %) {i}) records)
                             {{:keys [id sender] :or {{id 0}}}} (first large)]
                         (if (and (seq large) (< (count large) limit))
                           (->> large (map :size) (reduce + 0))
                           (str \"none of \" id \" by \" sender))))"
                )
            };
            let functions: Vec<String> = (0..self.functions).map(function).collect();
            let mut session = engine().session();
            for program in [self.data, &functions.join("\n")] {
                answered(session.eval(request(program), host()));
            }
            session
        }
    }

    /// A session with a hundred thousand records and fifty functions.
    pub fn with_records() -> Session {
        RECORDS.session()
    }
}
