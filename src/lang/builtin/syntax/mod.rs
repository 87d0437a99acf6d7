//! The documentation of special forms and macros, with examples that run as tests like those of the builtins.

mod checks;
mod definitions;

/// The documentation of one form.
pub struct SyntaxEntry {
    /// Name of the form.
    pub name: &'static str,
    /// Argument lists, without the name.
    pub arguments: &'static [&'static str],
    /// Description of the form.
    pub doc: &'static str,
    /// Pairs of a program and its printed result.
    pub examples: &'static [(&'static str, &'static str)],
}

const fn entry(
    name: &'static str,
    arguments: &'static [&'static str],
    doc: &'static str,
    examples: &'static [(&'static str, &'static str)],
) -> SyntaxEntry {
    SyntaxEntry { name, arguments, doc, examples }
}

/// Returns all forms.
pub fn all<'a>() -> impl Iterator<Item = &'a SyntaxEntry> {
    TABLE.iter().chain(definitions::TABLE).chain(checks::TABLE)
}

/// The forms that define nothing, by name.
const TABLE: &[SyntaxEntry] = &[
    entry(
        "->",
        &["[x & steps]"],
        "Threads `x` through the steps as their first argument.",
        &[("(-> {:a 1} (assoc :b 2) :b)", "2")],
    ),
    entry(
        "->>",
        &["[x & steps]"],
        "Threads `x` through the steps as their last argument.",
        &[("(->> [1 2 3] (map inc) (filter odd?))", "(3)")],
    ),
    entry(
        "and",
        &["[& tests]"],
        "The first value that is false or nil, else the last.",
        &[("(and 1 2)", "2"), ("(and nil 2)", "nil")],
    ),
    entry(
        ".",
        &["[x method & arguments]"],
        "Java's method call: like `(.method x arguments …)`.",
        &[("(. \"ab\" toUpperCase)", "\"AB\"")],
    ),
    entry(
        "..",
        &["[x & methods]"],
        "Chains method calls, each on the result of the previous one.",
        &[("(.. \" ab \" trim (substring 1))", "\"b\"")],
    ),
    entry(
        "apropos",
        &["[word]"],
        "Searches tools, definitions and functions by name and description.",
        &[("(apropos \"no-such-thing-at-all\")", "nil")],
    ),
    entry(
        "as->",
        &["[x name & steps]"],
        "Threads `x` through the steps, bound to `name` in each.",
        &[("(as-> 1 n (+ n 1) [n n])", "[2 2]")],
    ),
    entry("begin", &["[& forms]"], "Scheme's name for `do`.", &[("(begin 1 2)", "2")]),
    entry(
        "case",
        &["[x & constants-and-values]"],
        "The value paired with the constant equal to `x`; a single last form is the default.",
        &[("(case 2 1 :one (2 3) :few :many)", ":few")],
    ),
    entry(
        "comment",
        &["[& forms]"],
        "Returns nil; the forms are read but not evaluated.",
        &[("(comment (undefined))", "nil")],
    ),
    entry(
        "cond",
        &["[& tests-and-values]"],
        "The value paired with the first true test; Scheme's clauses `((test) value)` are accepted too.",
        &[("(cond (> 1 2) :a :else :b)", ":b"), ("(cond ((> 1 2) :a) (else :b))", ":b")],
    ),
    entry(
        "cond->",
        &["[x & tests-and-steps]"],
        "Threads `x` as in `->` through the steps whose test is true.",
        &[("(cond-> 1 true inc false (* 100))", "2")],
    ),
    entry(
        "cond->>",
        &["[x & tests-and-steps]"],
        "Threads `x` as in `->>` through the steps whose test is true.",
        &[("(cond->> [1 2] true (map inc))", "(2 3)")],
    ),
    entry(
        "condp",
        &["[pred x & tests-and-values]"],
        "The value paired with the first test for which `(pred test x)` is true.",
        &[("(condp = 2 1 :one 2 :two)", ":two")],
    ),
    entry(
        "delay",
        &["[& body]"],
        "A value that is computed once, on first use of `force` or `@`.",
        &[("@(delay (+ 1 2))", "3")],
    ),
    entry(
        "dir",
        &["[]", "[name]"],
        "Lists the servers and namespaces, or the contents of one.",
        &[("(dir 'json)", "nil")],
    ),
    entry("do", &["[& forms]"], "Evaluates the forms in order; returns the last one's value.", &[("(do 1 2)", "2")]),
    entry(
        "doc",
        &["[name]", "[tool :schema]"],
        "Prints the documentation of a definition, tool, function or form; with `:schema`, the JSON Schemas of a tool.",
        &[("(doc count)", "nil")],
    ),
    entry(
        "doseq",
        &["[bindings & body]"],
        "Evaluates the body for each item, for side effects; `:when`, `:while` and `:let` as in `for`.",
        &[("(doseq [x [1 2]] (println x))", "nil")],
    ),
    entry(
        "dotimes",
        &["[[name n] & body]"],
        "Evaluates the body `n` times, the name counting from 0.",
        &[("(def a (atom 0)) (dotimes [i 4] (swap! a + i)) @a", "6")],
    ),
    entry(
        "doto",
        &["[x & steps]"],
        "Calls each step with `x` as the first argument, for side effects; returns `x`.",
        &[("(doto 1 (+ 2))", "1")],
    ),
    entry(
        "fn",
        &["[[parameters] & body]", "[name [parameters] & body]"],
        "A function.",
        &[("((fn [x & more] [x more]) 1 2 3)", "[1 (2 3)]")],
    ),
    entry(
        "for",
        &["[bindings body]"],
        "List comprehension: the body's value for each item, nested left to right; `:when`, `:while`, `:let`.",
        &[("(for [x [1 2 3] :when (odd? x)] (* x x))", "(1 9)")],
    ),
    entry(
        "for/list",
        &["[[clauses] & body]", "[[name coll & more] & body]"],
        "Racket's loop: the value of the body for each item of `[x xs]`, with several such clauses in parallel, and \
         `#:when test` and `#:unless test` between them; `for*/list` nests them, for all combinations. Variants \
         collect differently: `for/vector`, `for/set`, `for/hash` (of pairs), `for/sum`, `for/product`, `for/and`, \
         `for/or`, `for/first`, `for/last`, `for/string`.",
        &[
            ("(for/list ([x [1 2 3]] #:when (odd? x)) (* x x))", "(1 9)"),
            ("(for/sum ([x [1 2]] [y [10 20]]) (* x y))", "50"),
        ],
    ),
    entry(
        "for/fold",
        &["[[[accumulator start] & more] [clauses] & body]"],
        "Racket's fold: the accumulator is the body's value in the previous iteration; several accumulators are a \
         vector.",
        &[("(for/fold ([sum 0]) ([x [1 2 3]]) (+ sum x))", "6")],
    ),
    entry(
        "if",
        &["[test then]", "[test then else]"],
        "Conditional; only nil and false are false.",
        &[("(if nil 1 2)", "2")],
    ),
    entry(
        "if-let",
        &["[[name value] then else]"],
        "Binds the value and evaluates `then` if it is true.",
        &[("(if-let [x (first [])] x :none)", ":none")],
    ),
    entry("if-not", &["[test then else]"], "`if` with the test negated.", &[("(if-not nil 1 2)", "1")]),
    entry(
        "if-some",
        &["[[name value] then else]"],
        "Binds the value and evaluates `then` unless it is nil.",
        &[("(if-some [x false] [x] :none)", "[false]")],
    ),
    entry(
        "import",
        &["[& classes]"],
        "Accepted for classes whose functions are known here; they need no import.",
        &[("(import '(java.time LocalDate))", "nil")],
    ),
    entry("in-ns", &["[name]"], "The session's own namespace; the name is ignored.", &[("(in-ns 'app)", "user")]),
    entry(
        "alias",
        &["[alias namespace]"],
        "Defines an alias of a namespace, as `require` with `:as`.",
        &[("(alias 's 'clojure.string) (s/trim \" a \")", "\"a\"")],
    ),
    entry("lambda", &["[(parameters) & body]"], "Scheme's `fn`.", &[("((lambda (x) (* x x)) 3)", "9")]),
    entry(
        "lazy-cat",
        &["[& colls]"],
        "Concatenates the collections lazily, each evaluated when reached.",
        &[("(def fibs (lazy-cat [0 1] (map + fibs (rest fibs)))) (take 6 fibs)", "(0 1 1 2 3 5)")],
    ),
    entry(
        "lazy-seq",
        &["[& body]"],
        "A lazy sequence, whose body is evaluated on first use.",
        &[("(defn up [n] (lazy-seq (cons n (up (inc n))))) (take 3 (up 1))", "(1 2 3)")],
    ),
    entry(
        "let",
        &["[bindings & body]"],
        "Binds names for the body; patterns destructure values.",
        &[("(let [[a b] [1 2] {:keys [c]} {:c 3}] (+ a b c))", "6"), ("(let ((a 1) (b 2)) (+ a b))", "3")],
    ),
    entry(
        "letfn",
        &["[functions & body]"],
        "Binds mutually recursive functions.",
        &[(
            "(letfn [(e? [n] (if (zero? n) true (o? (dec n)))) (o? [n] (if (zero? n) false (e? (dec n))))] (e? 10))",
            "true",
        )],
    ),
    entry(
        "letrec",
        &["[((name value) …) & body]"],
        "Scheme's `letfn`.",
        &[("(letrec ((f (lambda (n) (if (= n 0) 1 (* n (f (- n 1))))))) (f 5))", "120")],
    ),
    entry(
        "loop",
        &["[bindings & body]"],
        "Binds names; `recur` repeats the body with new values.",
        &[("(loop [i 0 acc []] (if (< i 3) (recur (inc i) (conj acc i)) acc))", "[0 1 2]")],
    ),
    entry(
        "ns",
        &["[name & clauses]"],
        "Defines the aliases and names that its `:require` and `:use` clauses request, as `require` does.",
        &[("(ns app (:require [clojure.string :as s])) (s/join \"-\" [1 2])", "\"1-2\"")],
    ),
    entry("or", &["[& tests]"], "The first value that is true, else the last.", &[("(or nil 2)", "2")]),
    entry(
        "parallel",
        &["[{key call …}]", "[[call …]]"],
        "The map or vector with the results of the calls in it, whose tool calls run concurrently; the first uncaught \
         error cancels the others.",
        &[("(parallel {:a (inc 1) :b (inc 2)})", "{:a 2, :b 3}"), ("(parallel [(inc 1) (inc 2)])", "[2 3]")],
    ),
    entry(
        "pcalls",
        &["[& calls]"],
        "The values of the calls in order; their tool calls run concurrently.",
        &[("(pcalls (inc 1) (inc 2))", "(2 3)")],
    ),
    entry("progn", &["[& forms]"], "Common Lisp's name for `do`.", &[("(progn 1 2)", "2")]),
    entry("pvalues", &["[& expressions]"], "Like `pcalls`.", &[("(pvalues (inc 1) (inc 2))", "(2 3)")]),
    entry("quote", &["[form]"], "The form itself, as data; also written `'form`.", &[("'(a 1)", "(a 1)")]),
    entry(
        "recur",
        &["[& values]"],
        "Repeats the innermost `loop` or function with new values, from tail position.",
        &[("(loop [n 3] (if (pos? n) (recur (dec n)) n))", "0")],
    ),
    entry(
        "refer",
        &["[library & filters]"],
        "Like `use`.",
        &[("(refer 'clojure.set :only '[union]) (union #{1} #{2})", "#{1 2}")],
    ),
    entry("refer-clojure", &["[& filters]"], "No effect: Clojure's names are built in.", &[("(refer-clojure)", "nil")]),
    entry(
        "require",
        &["[& libraries]"],
        "Defines an alias of a namespace, and names with `:refer`, for this and later programs of the session; \
         everything is already loaded.",
        &[("(require '[clojure.set :as s :refer [union]]) (s/difference (union #{1} #{2}) #{1})", "#{2}")],
    ),
    entry("some->", &["[x & steps]"], "Like `->`, but stops at the first nil.", &[("(some-> {:a nil} :a inc)", "nil")]),
    entry(
        "some->>",
        &["[x & steps]"],
        "Like `->>`, but stops at the first nil.",
        &[("(some->> [1 2] (map inc))", "(2 3)")],
    ),
    entry(
        "syntax-quote",
        &["[form]"],
        "A template for a form, with namespace-qualified names; also written with a backquote.",
        &[("`(list a ~(+ 1 2))", "(clojure.core/list user/a 3)")],
    ),
    entry(
        "source",
        &["[name]"],
        "Prints the source of a function: of the session as it was written, of the language if it is written in the \
         language itself.",
        &[("(source sum)", "nil")],
    ),
    entry(
        "time",
        &["[& forms]"],
        "The value of the forms; prints the elapsed time in milliseconds of the host's clock.",
        &[("(time 1)", "1")],
    ),
    entry(
        "try",
        &["[& body (catch Class e & handler) (finally & last)]"],
        "Evaluates the body; the handler runs if something is thrown or fails. Limits are never caught.",
        &[("(try (throw (ex-info \"no\" {:a 1})) (catch Exception e (:a (ex-data e))))", "1")],
    ),
    entry("unless", &["[test & body]"], "Common Lisp's `when-not`.", &[("(unless nil 1)", "1")]),
    entry(
        "use",
        &["[& libraries]"],
        "Makes the names of a namespace available without prefix, except those that already have another meaning.",
        &[("(use 'clojure.set) (union #{1} #{2})", "#{1 2}")],
    ),
    entry("when", &["[test & body]"], "The body's value if the test is true.", &[("(when true 1 2)", "2")]),
    entry(
        "when-first",
        &["[[name coll] & body]"],
        "Evaluates the body with the first item bound, if there is one.",
        &[("(when-first [x [1 2]] x)", "1")],
    ),
    entry(
        "when-let",
        &["[[name value] & body]"],
        "Binds the value and evaluates the body if it is true.",
        &[("(when-let [x 1] (inc x))", "2")],
    ),
    entry("when-not", &["[test & body]"], "The body's value unless the test is true.", &[("(when-not nil 1)", "1")]),
    entry(
        "when-some",
        &["[[name value] & body]"],
        "Binds the value and evaluates the body unless it is nil.",
        &[("(when-some [x false] [x])", "[false]")],
    ),
    entry(
        "while",
        &["[test & body]"],
        "Evaluates the body while the test is true.",
        &[("(def a (atom 3)) (while (pos? @a) (swap! a dec)) @a", "0")],
    ),
    entry("with-in-str", &["[s & body]"], "Lets `read` read `s`.", &[("(with-in-str \"1\" (read))", "1")]),
    entry(
        "with-out-str",
        &["[& body]"],
        "The output of the body, as a string.",
        &[("(with-out-str (print \"a\") (println 1))", "\"a1\\n\"")],
    ),
    entry(
        "with-precision",
        &["[digits & body]", "[digits :rounding mode & body]"],
        "The body's value, an exact decimal rounded to `digits` digits; halves round up unless a mode such as \
         HALF_EVEN is given.",
        &[("(with-precision 3 (/ 10M 3))", "3.33M"), ("(with-precision 2 :rounding DOWN (* 1.99M 1))", "1.9M")],
    ),
    entry(
        "defmulti",
        &["[name dispatch-fn & options]"],
        "Defines a multimethod, which chooses its method by the value of the dispatch function on the arguments.",
        &[(
            "(defmulti area :shape) (defmethod area :square [s] (* (:side s) (:side s))) (area {:shape :square :side 3})",
            "9",
        )],
    ),
    entry(
        "defmethod",
        &["[multi value [args] & body]"],
        "Adds a method for a dispatch value to a multimethod; `:default` is for all other values.",
        &[(
            "(defmulti f even?) (defmethod f true [n] :even) (defmethod f :default [n] :odd) (map f [1 2])",
            "(:odd :even)",
        )],
    ),
    entry(
        "defprotocol",
        &["[name & signatures]"],
        "Defines functions that are implemented separately for each type, with `extend-type` or `defrecord`.",
        &[(
            "(defprotocol Named (title [x])) (extend-type String Named (title [s] (str \"Mr \" s))) (title \"X\")",
            "\"Mr X\"",
        )],
    ),
    entry(
        "extend-type",
        &["[type & protocols-and-methods]"],
        "Implements protocols for a type.",
        &[("(defprotocol Sized (size [x])) (extend-type nil Sized (size [_] 0)) (size nil)", "0")],
    ),
    entry(
        "extend-protocol",
        &["[protocol & types-and-methods]"],
        "Implements a protocol for several types.",
        &[(
            "(defprotocol Sized (size [x])) (extend-protocol Sized String (size [s] (count s)) Number (size [n] n)) [(size \"abc\") (size 7)]",
            "[3 7]",
        )],
    ),
    entry(
        "defrecord",
        &["[name [fields] & protocols-and-methods]"],
        "Defines a kind of map with the constructors `(->Name field …)`, `(Name. field …)` and `(map->Name {…})`. In \
         its methods the fields are in scope; `Object (toString [this] …)` defines its `str`.",
        &[
            ("(defrecord Point [x y]) (:x (->Point 1 2))", "1"),
            ("(defrecord P [x]) (instance? P (map->P {:x 1}))", "true"),
        ],
    ),
    entry(
        "deftype",
        &["[name [fields] & protocols-and-methods]"],
        "Like `defrecord`.",
        &[("(deftype Pair [a b]) (.-b (Pair. 1 2))", "2")],
    ),
    entry(
        "reify",
        &["[& protocols-and-methods]"],
        "An anonymous object that implements protocols.",
        &[("(defprotocol Greets (greet [this])) (greet (reify Greets (greet [_] \"hello\")))", "\"hello\"")],
    ),
    entry("new", &["[name & args]"], "`(Name. args)`.", &[("(defrecord P [x]) (new P 1)", "#user.P{:x 1}")]),
    entry("and-let*", &["[[bindings] & body]"], "Like `when-let*`.", &[("(and-let* ((a 1) (b 2)) (+ a b))", "3")]),
    entry("begin0", &["[value & forms]"], "Racket's name for `prog1`.", &[("(begin0 1 2)", "1")]),
    entry(
        "case-lambda",
        &["[((parameters) & body) & clauses]"],
        "Scheme's function of several arities.",
        &[("((case-lambda ((x) 1) ((x y) 2)) :a :b)", "2")],
    ),
    entry(
        "cl-destructuring-bind",
        &["[(names) value & body]"],
        "Like `destructuring-bind`.",
        &[("(cl-destructuring-bind (a b) [1 2] (+ a b))", "3")],
    ),
    entry("cl-dolist", &["[(name coll) & body]"], "Like `dolist`.", &[("(cl-dolist (x '(1 2)) (println x))", "nil")]),
    entry(
        "cl-flet",
        &["[((name (parameters) & body)) & body]"],
        "Like `flet`.",
        &[("(cl-flet ((f (x) (* 2 x))) (f 4))", "8")],
    ),
    entry(
        "cl-labels",
        &["[((name (parameters) & body)) & body]"],
        "Like `flet`.",
        &[("(cl-labels ((f (x) (* 2 x))) (f 4))", "8")],
    ),
    entry(
        "cl-loop",
        &["[bindings & body]"],
        "Like `loop`; Common Lisp's keywords raise an error that shows `for`.",
        &[("(cl-loop [i 0] (if (< i 3) (recur (inc i)) i))", "3")],
    ),
    entry(
        "cl-multiple-value-bind",
        &["[(names) values & body]"],
        "Like `multiple-value-bind`.",
        &[("(cl-multiple-value-bind (a b) (values 1 2) (+ a b))", "3")],
    ),
    entry(
        "destructuring-bind",
        &["[(names) value & body]"],
        "Common Lisp's `let` with a pattern.",
        &[("(destructuring-bind (a (b &rest c)) [1 [2 3 4]] (list a b c))", "(1 2 (3 4))")],
    ),
    entry(
        "dolist",
        &["[(name coll) & body]", "[(name coll result) & body]"],
        "Common Lisp's `doseq`.",
        &[("(dolist (x '(1 2)) (println x))", "nil")],
    ),
    entry(
        "flet",
        &["[((name (parameters) & body)) & body]"],
        "Common Lisp's `letfn`.",
        &[("(flet ((f (x) (* 2 x))) (f 4))", "8")],
    ),
    entry(
        "if-let*",
        &["[bindings then else]"],
        "`if-let` with several bindings, all of which must be true.",
        &[("(if-let* [a 1 b nil] :both :not)", ":not")],
    ),
    entry(
        "labels",
        &["[((name (parameters) & body)) & body]"],
        "Common Lisp's `letfn`.",
        &[("(labels ((f (n) (if (= n 0) 1 (* n (f (- n 1)))))) (f 5))", "120")],
    ),
    entry(
        "let*-values",
        &["[(((names) values)) & body]"],
        "Like `let-values`.",
        &[("(let*-values (((a b) (values 1 2)) ((c) (list (+ a b)))) c)", "3")],
    ),
    entry(
        "let-values",
        &["[(((names) values)) & body]"],
        "Scheme's `let` for functions of several values, which are vectors here.",
        &[("(let-values (((a b) (values 1 2))) (+ a b))", "3")],
    ),
    entry(
        "multiple-value-bind",
        &["[(names) values & body]"],
        "Common Lisp's `let` for functions of several values, which are vectors here.",
        &[("(multiple-value-bind (a b) (values 1 2) (+ a b))", "3")],
    ),
    entry(
        "prog1",
        &["[value & forms]"],
        "Evaluates all forms; returns the first one's value.",
        &[("(prog1 1 2 3)", "1")],
    ),
    entry(
        "receive",
        &["[(names) values & body]"],
        "Scheme's `multiple-value-bind`.",
        &[("(receive (a b) (values 1 2) (+ a b))", "3")],
    ),
    entry(
        "when-let*",
        &["[bindings & body]"],
        "`when-let` with several bindings, all of which must be true.",
        &[("(when-let* [a 1 b 2] (+ a b))", "3")],
    ),
    entry("λ", &["[(parameters) & body]"], "Like `lambda`.", &[("((λ (x) (* x x)) 3)", "9")]),
    entry("null", &["[x]"], "Common Lisp's test for an empty list; as a value write `nil`.", &[("(null '())", "true")]),
];
