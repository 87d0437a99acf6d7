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
        "Java's way to call a method: as `(.method x arguments …)`.",
        &[("(. \"ab\" toUpperCase)", "\"AB\"")],
    ),
    entry(
        "..",
        &["[x & methods]"],
        "Calls the methods one after the other, each on what the one before came to.",
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
        "Threads `x` through the steps under a name of its own.",
        &[("(as-> 1 n (+ n 1) [n n])", "[2 2]")],
    ),
    entry("begin", &["[& forms]"], "Scheme's name for `do`.", &[("(begin 1 2)", "2")]),
    entry(
        "case",
        &["[x & constants-and-values]"],
        "The value beside the constant that equals `x`; a last single form is the default.",
        &[("(case 2 1 :one (2 3) :few :many)", ":few")],
    ),
    entry(
        "comment",
        &["[& forms]"],
        "Nothing: the forms are read and left alone.",
        &[("(comment (undefined))", "nil")],
    ),
    entry(
        "cond",
        &["[& tests-and-values]"],
        "The value beside the first test that is true; Scheme's clauses `((test) value)` are understood too.",
        &[("(cond (> 1 2) :a :else :b)", ":b"), ("(cond ((> 1 2) :a) (else :b))", ":b")],
    ),
    entry(
        "cond->",
        &["[x & tests-and-steps]"],
        "Threads `x` first through those steps whose test is true.",
        &[("(cond-> 1 true inc false (* 100))", "2")],
    ),
    entry(
        "cond->>",
        &["[x & tests-and-steps]"],
        "Threads `x` last through those steps whose test is true.",
        &[("(cond->> [1 2] true (map inc))", "(2 3)")],
    ),
    entry(
        "condp",
        &["[pred x & tests-and-values]"],
        "The value beside the first test for which `(pred test x)` is true.",
        &[("(condp = 2 1 :one 2 :two)", ":two")],
    ),
    entry(
        "delay",
        &["[& body]"],
        "A value that is computed when it is first asked for with `force` or `@`.",
        &[("@(delay (+ 1 2))", "3")],
    ),
    entry(
        "dir",
        &["[]", "[name]"],
        "Lists the servers and namespaces, or what one of them has.",
        &[("(dir 'json)", "nil")],
    ),
    entry("do", &["[& forms]"], "Evaluates the forms in order; the last one's value.", &[("(do 1 2)", "2")]),
    entry(
        "doc",
        &["[name]", "[tool :schema]"],
        "Prints what a name is for: definition, tool, function or form; with `:schema` the JSON Schemas of a tool.",
        &[("(doc count)", "nil")],
    ),
    entry(
        "doseq",
        &["[bindings & body]"],
        "Evaluates the body for each item, for its effects; `:when`, `:while` and `:let` as in `for`.",
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
        "Threads `x` first through each step, for their effects; the value is `x`.",
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
        "The body's value for each item, nested from left to right; `:when`, `:while`, `:let`.",
        &[("(for [x [1 2 3] :when (odd? x)] (* x x))", "(1 9)")],
    ),
    entry(
        "for/list",
        &["[[clauses] & body]", "[[name coll & more] & body]"],
        "Racket's loop: the value of the body for each item of `[x xs]`, of several such clauses side by side, with `#:when test` and `#:unless test` between them; `for*/list` goes through all combinations. Its kin make something else of the values: `for/vector`, `for/set`, `for/hash` (of pairs), `for/sum`, `for/product`, `for/and`, `for/or`, `for/first`, `for/last`, `for/string`.",
        &[
            ("(for/list ([x [1 2 3]] #:when (odd? x)) (* x x))", "(1 9)"),
            ("(for/sum ([x [1 2]] [y [10 20]]) (* x y))", "50"),
        ],
    ),
    entry(
        "for/fold",
        &["[[[accumulator start] & more] [clauses] & body]"],
        "Racket's fold: the accumulator is what the body was in the round before; of several accumulators a vector.",
        &[("(for/fold ([sum 0]) ([x [1 2 3]]) (+ sum x))", "6")],
    ),
    entry(
        "if",
        &["[test then]", "[test then else]"],
        "Chooses; only nil and false are false.",
        &[("(if nil 1 2)", "2")],
    ),
    entry(
        "if-let",
        &["[[name value] then else]"],
        "Binds the value and chooses `then` if it is true.",
        &[("(if-let [x (first [])] x :none)", ":none")],
    ),
    entry("if-not", &["[test then else]"], "`if` the other way round.", &[("(if-not nil 1 2)", "1")]),
    entry(
        "if-some",
        &["[[name value] then else]"],
        "Binds the value and chooses `then` unless it is nil.",
        &[("(if-some [x false] [x] :none)", "[false]")],
    ),
    entry(
        "import",
        &["[& classes]"],
        "Accepted for classes whose functions are known here; they need no import.",
        &[("(import '(java.time LocalDate))", "nil")],
    ),
    entry("in-ns", &["[name]"], "The session's own namespace: there is no other.", &[("(in-ns 'app)", "user")]),
    entry(
        "alias",
        &["[alias namespace]"],
        "Makes a namespace known under another name, as `require` with `:as`.",
        &[("(alias 's 'clojure.string) (s/trim \" a \")", "\"a\"")],
    ),
    entry("lambda", &["[(parameters) & body]"], "Scheme's `fn`.", &[("((lambda (x) (* x x)) 3)", "9")]),
    entry(
        "lazy-cat",
        &["[& colls]"],
        "The collections one after another, each evaluated when it is reached.",
        &[("(def fibs (lazy-cat [0 1] (map + fibs (rest fibs)))) (take 6 fibs)", "(0 1 1 2 3 5)")],
    ),
    entry(
        "lazy-seq",
        &["[& body]"],
        "A sequence whose beginning is computed when it is asked for.",
        &[("(defn up [n] (lazy-seq (cons n (up (inc n))))) (take 3 (up 1))", "(1 2 3)")],
    ),
    entry(
        "let",
        &["[bindings & body]"],
        "Binds names for the body; patterns take values apart.",
        &[("(let [[a b] [1 2] {:keys [c]} {:c 3}] (+ a b c))", "6"), ("(let ((a 1) (b 2)) (+ a b))", "3")],
    ),
    entry(
        "letfn",
        &["[functions & body]"],
        "Binds functions that see each other.",
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
        "Binds names; `recur` goes round with new values.",
        &[("(loop [i 0 acc []] (if (< i 3) (recur (inc i) (conj acc i)) acc))", "[0 1 2]")],
    ),
    entry(
        "ns",
        &["[name & clauses]"],
        "Makes the aliases and names known that its `:require` and `:use` ask for, as `require` does.",
        &[("(ns app (:require [clojure.string :as s])) (s/join \"-\" [1 2])", "\"1-2\"")],
    ),
    entry("or", &["[& tests]"], "The first value that is true, else the last.", &[("(or nil 2)", "2")]),
    entry(
        "parallel",
        &["[{key call …}]", "[[call …]]"],
        "The map or vector with what the calls in it come to, their tool calls under way at once; the first error that is not caught ends the others.",
        &[("(parallel {:a (inc 1) :b (inc 2)})", "{:a 2, :b 3}"), ("(parallel [(inc 1) (inc 2)])", "[2 3]")],
    ),
    entry(
        "pcalls",
        &["[& calls]"],
        "The values of the calls in order, their tool calls under way at once.",
        &[("(pcalls (inc 1) (inc 2))", "(2 3)")],
    ),
    entry("progn", &["[& forms]"], "Common Lisp's name for `do`.", &[("(progn 1 2)", "2")]),
    entry("pvalues", &["[& expressions]"], "As `pcalls`.", &[("(pvalues (inc 1) (inc 2))", "(2 3)")]),
    entry("quote", &["[form]"], "The form itself, as data; also written `'form`.", &[("'(a 1)", "(a 1)")]),
    entry(
        "recur",
        &["[& values]"],
        "Goes round the innermost `loop` or function, from its last position.",
        &[("(loop [n 3] (if (pos? n) (recur (dec n)) n))", "0")],
    ),
    entry(
        "refer",
        &["[library & filters]"],
        "As `use`.",
        &[("(refer 'clojure.set :only '[union]) (union #{1} #{2})", "#{1 2}")],
    ),
    entry("refer-clojure", &["[& filters]"], "Nothing: Clojure's names are there.", &[("(refer-clojure)", "nil")]),
    entry(
        "require",
        &["[& libraries]"],
        "Makes an alias of a namespace known, and names with `:refer`, for this and later programs of the session; \
         everything is loaded already.",
        &[("(require '[clojure.set :as s :refer [union]]) (s/difference (union #{1} #{2}) #{1})", "#{2}")],
    ),
    entry("some->", &["[x & steps]"], "Threads as `->`, up to the first nil.", &[("(some-> {:a nil} :a inc)", "nil")]),
    entry(
        "some->>",
        &["[x & steps]"],
        "Threads as `->>`, up to the first nil.",
        &[("(some->> [1 2] (map inc))", "(2 3)")],
    ),
    entry(
        "syntax-quote",
        &["[form]"],
        "A template for a form, its names written with their namespaces; also written with a backquote.",
        &[("`(list a ~(+ 1 2))", "(clojure.core/list user/a 3)")],
    ),
    entry(
        "source",
        &["[name]"],
        "Prints the code of a function: of the session's as it was written, of the language's where it is written in the language itself.",
        &[("(source sum)", "nil")],
    ),
    entry(
        "time",
        &["[& forms]"],
        "The value of the forms; prints how long they took, in milliseconds of the host's clock.",
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
        "Makes the names of a namespace known without their prefix, but those that mean something else already.",
        &[("(use 'clojure.set) (union #{1} #{2})", "#{1 2}")],
    ),
    entry("when", &["[test & body]"], "The body's value if the test is true.", &[("(when true 1 2)", "2")]),
    entry(
        "when-first",
        &["[[name coll] & body]"],
        "Binds the first item of a collection that is not empty.",
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
        "Evaluates the body as long as the test is true.",
        &[("(def a (atom 3)) (while (pos? @a) (swap! a dec)) @a", "0")],
    ),
    entry("with-in-str", &["[s & body]"], "Lets `read` read `s`.", &[("(with-in-str \"1\" (read))", "1")]),
    entry(
        "with-out-str",
        &["[& body]"],
        "What the body prints, as a string.",
        &[("(with-out-str (print \"a\") (println 1))", "\"a1\\n\"")],
    ),
    entry(
        "with-precision",
        &["[digits & body]", "[digits :rounding mode & body]"],
        "The body's value, an exact decimal rounded to that many digits; halves go up unless a mode such as HALF_EVEN says otherwise.",
        &[("(with-precision 3 (/ 10M 3))", "3.33M"), ("(with-precision 2 :rounding DOWN (* 1.99M 1))", "1.9M")],
    ),
    entry(
        "defmulti",
        &["[name dispatch-fn & options]"],
        "Defines a function whose method is chosen by what the dispatch function makes of the arguments.",
        &[(
            "(defmulti area :shape) (defmethod area :square [s] (* (:side s) (:side s))) (area {:shape :square :side 3})",
            "9",
        )],
    ),
    entry(
        "defmethod",
        &["[multi value [args] & body]"],
        "Adds to a multimethod what it does for a dispatch value; `:default` is for all others.",
        &[(
            "(defmulti f even?) (defmethod f true [n] :even) (defmethod f :default [n] :odd) (map f [1 2])",
            "(:odd :even)",
        )],
    ),
    entry(
        "defprotocol",
        &["[name & signatures]"],
        "Defines functions that are implemented for each type apart, with `extend-type` or `defrecord`.",
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
        "Defines a kind of map with the constructors `(->Name field …)`, `(Name. field …)` and `(map->Name {…})`. In its methods the fields are in scope; `Object (toString [this] …)` says what `str` makes of it.",
        &[
            ("(defrecord Point [x y]) (:x (->Point 1 2))", "1"),
            ("(defrecord P [x]) (instance? P (map->P {:x 1}))", "true"),
        ],
    ),
    entry(
        "deftype",
        &["[name [fields] & protocols-and-methods]"],
        "As `defrecord`.",
        &[("(deftype Pair [a b]) (.-b (Pair. 1 2))", "2")],
    ),
    entry(
        "reify",
        &["[& protocols-and-methods]"],
        "An object that implements protocols by itself.",
        &[("(defprotocol Greets (greet [this])) (greet (reify Greets (greet [_] \"hello\")))", "\"hello\"")],
    ),
    entry("new", &["[name & args]"], "`(Name. args)`.", &[("(defrecord P [x]) (new P 1)", "#user.P{:x 1}")]),
    entry("and-let*", &["[[bindings] & body]"], "As `when-let*`.", &[("(and-let* ((a 1) (b 2)) (+ a b))", "3")]),
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
        "As `destructuring-bind`.",
        &[("(cl-destructuring-bind (a b) [1 2] (+ a b))", "3")],
    ),
    entry("cl-dolist", &["[(name coll) & body]"], "As `dolist`.", &[("(cl-dolist (x '(1 2)) (println x))", "nil")]),
    entry(
        "cl-flet",
        &["[((name (parameters) & body)) & body]"],
        "As `flet`.",
        &[("(cl-flet ((f (x) (* 2 x))) (f 4))", "8")],
    ),
    entry(
        "cl-labels",
        &["[((name (parameters) & body)) & body]"],
        "As `flet`.",
        &[("(cl-labels ((f (x) (* 2 x))) (f 4))", "8")],
    ),
    entry(
        "cl-loop",
        &["[bindings & body]"],
        "As `loop`; Common Lisp's words get an error that shows `for`.",
        &[("(cl-loop [i 0] (if (< i 3) (recur (inc i)) i))", "3")],
    ),
    entry(
        "cl-multiple-value-bind",
        &["[(names) values & body]"],
        "As `multiple-value-bind`.",
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
        "As `let-values`.",
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
    entry("prog1", &["[value & forms]"], "The first form's value, once all are evaluated.", &[("(prog1 1 2 3)", "1")]),
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
    entry("λ", &["[(parameters) & body]"], "As `lambda`.", &[("((λ (x) (* x x)) 3)", "9")]),
    entry(
        "null",
        &["[x]"],
        "Common Lisp's question whether a list is empty; as a value write `nil`.",
        &[("(null '())", "true")],
    ),
];
