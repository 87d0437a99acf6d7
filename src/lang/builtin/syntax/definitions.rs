//! The documentation of forms that define names or rebind them temporarily.

use super::{SyntaxEntry, entry};

/// The forms defined in this file, by name.
pub const TABLE: &[SyntaxEntry] = &[
    entry(
        "binding",
        &["[[name value …] & body]"],
        "Evaluates the body with definitions dynamically bound to other values, then restores them.",
        &[("(def ^:dynamic *level* 1) (defn level [] *level*) [(binding [*level* 2] (level)) (level)]", "[2 1]")],
    ),
    entry(
        "bound-fn",
        &["[[parameters] & body]"],
        "A function that runs with the bindings of `binding` at its creation.",
        &[("(def ^:dynamic *x* 1) ((binding [*x* 2] (bound-fn [n] (+ n *x*))) 10)", "12")],
    ),
    entry("cl-defun", &["[name (parameters) & body]"], "Like `defun`.", &[("(cl-defun f (x) x) (f 1)", "1")]),
    entry(
        "declare",
        &["[& names]"],
        "Defines names that have no value yet.",
        &[(
            "(declare is-even) (defn is-odd [n] (if (= n 0) false (is-even (dec n)))) (defn is-even [n] (if (= n 0) true (is-odd (dec n)))) (is-even 4)",
            "true",
        )],
    ),
    entry(
        "def",
        &["[name]", "[name value]", "[name doc value]"],
        "Defines a name for this and later programs of the session, and returns its var.\n\
         Metadata before the name, `(def ^{:unit :eur} price 5)`, is returned by `(meta #'price)`.",
        &[("(def answer 42)", "#'answer"), ("(def answer \"The answer.\" 42) answer", "42")],
    ),
    entry(
        "defconst",
        &["[name value]", "[name value doc]"],
        "Emacs Lisp's `def`.",
        &[("(defconst answer 42) answer", "42")],
    ),
    entry(
        "defconstant",
        &["[name value]", "[name value doc]"],
        "Common Lisp's `def`.",
        &[("(defconstant answer 42) answer", "42")],
    ),
    entry(
        "define",
        &["[name value]", "[(name & parameters) & body]"],
        "Scheme's definition; inside a body it is local to it.",
        &[("(define (twice x) (* 2 x)) (twice 4)", "8")],
    ),
    entry(
        "defmacro",
        &["[name [parameters] & body]"],
        "Defines a macro: a function from forms to a form. In its body `&form` is the whole call, and `&env` a map \
         whose keys are the local names in scope, or nil.",
        &[("(defmacro unless-nil [x y] `(if (nil? ~x) nil ~y)) (unless-nil 1 :some)", ":some")],
    ),
    entry(
        "defn",
        &["[name doc? attributes? [parameters] & body]"],
        "Defines a function; several arities as `([x] …) ([x y] …)`.",
        &[
            ("(defn area [w h] (* w h)) (area 2 3)", "6"),
            ("(defn area \"Of a rectangle.\" [w h] (* w h)) (:doc (meta #'area))", "\"Of a rectangle.\""),
        ],
    ),
    entry(
        "defn-",
        &["[name [parameters] & body]"],
        "Like `defn`, with `:private` in its metadata.",
        &[("(defn- f [x] x) (f 1)", "1")],
    ),
    entry("defonce", &["[name value]"], "Defines a name unless it has a value.", &[("(def a 1) (defonce a 2) a", "1")]),
    entry(
        "defparameter",
        &["[name value]", "[name value doc]"],
        "Common Lisp's `def`.",
        &[("(defparameter *limit* 10 \"most\") *limit*", "10")],
    ),
    entry(
        "defun",
        &["[name (parameters) & body]"],
        "Common Lisp's `defn`.",
        &[("(defun area (w h) (* w h)) (area 2 3)", "6")],
    ),
    entry(
        "defvar",
        &["[name]", "[name value]", "[name value doc]"],
        "Common Lisp's `defonce`.",
        &[("(defvar *n* 1) (defvar *n* 2) *n*", "1")],
    ),
    entry(
        "set!",
        &["[name value]"],
        "Sets the value of a name bound by an enclosing `binding`; other names cannot be assigned.",
        &[("(def ^:dynamic *n* 1) (binding [*n* 2] (set! *n* (inc *n*)) *n*)", "3")],
    ),
    entry(
        "var",
        &["[name]"],
        "The var of a name, also written `#'name`: callable as a function that follows redefinitions; `@#'name` is its \
         value.",
        &[("(map #'inc [1 2])", "(2 3)"), ("(def x 1) [#'x @#'x (meta #'x)]", "[#'x 1 {:name x}]")],
    ),
    entry(
        "with-bindings",
        &["[values-by-var & body]"],
        "Evaluates the body while vars are bound to the values of a map.",
        &[("(def ^:dynamic *x* 1) (with-bindings {#'*x* 2} *x*)", "2")],
    ),
    entry(
        "with-local-vars",
        &["[[name value …] & body]"],
        "Evaluates the body with local vars, which `@` reads and `var-set` changes.",
        &[("(with-local-vars [n 1] (var-set n (+ @n 1)) @n)", "2")],
    ),
    entry(
        "with-redefs",
        &["[[name value …] & body]"],
        "Like `binding`, but for all branches of `pmap`: evaluates the body with definitions temporarily replaced.",
        &[("(defn fetch [] :real) (with-redefs [fetch (fn [] :mock)] (fetch))", ":mock")],
    ),
];
