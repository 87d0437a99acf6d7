;; Records what real Clojure answers to the programs of tests/clojure/*.md:
;;
;;   clojure tests/clojure/record.clj tests/clojure/*.md            writes the answers behind `;=>`
;;   clojure tests/clojure/record.clj --check tests/clojure/*.md    exits 1 where a record is stale
;;
;; Each program runs in a namespace `user` of its own, with the aliases str, set, walk, math and edn.
;; Its answer is what its last form prints as, or `error`. A program whose answer differs from run to run,
;; shows an object's address, has no end or more than 2,000 characters is refused: it can be no example.
(ns corpus.record
  (:require [clojure.string :as str] [clojure.set] [clojure.walk] [clojure.math] [clojure.edn] [clojure.data] [clojure.test]))

(def aliases '{str clojure.string, set clojure.set, walk clojure.walk, math clojure.math, edn clojure.edn})
(def seconds 10)
(def longest 2000)

(defn forget
  "Takes away what the program before may have left outside its namespace."
  []
  (doseq [space (map ns-name (all-ns))
          :when (not (re-find #"^(clojure|corpus)\." (str space)))]
    (remove-ns space)
    (dosync (alter @#'clojure.core/*loaded-libs* disj space)))
  (alter-var-root #'clojure.core/global-hierarchy (constantly (make-hierarchy))))

(defn evaluate [program]
  (forget)
  (let [silent (java.io.StringWriter.)]
    (binding [*ns* (create-ns 'user)
              *out* silent
              *err* silent
              clojure.test/*test-out* silent
              *in* (clojure.lang.LineNumberingPushbackReader. (java.io.StringReader. ""))
              *print-namespace-maps* false]
      (refer 'clojure.core)
      (doseq [[short full] aliases] (alias short full))
      ;; A name that ends in .cljc makes the compiler read `#?(…)`.
      (let [value (clojure.lang.Compiler/load (java.io.StringReader. program) "program.cljc" "program.cljc")]
        (binding [*print-length* longest] (pr-str value))))))

(defn answer
  "What the program prints as, `error`, or `{:refused reason}`."
  [program]
  (let [result (promise)
        run #(deliver result (try (evaluate program) (catch ThreadDeath e (throw e)) (catch Throwable _ "error")))
        thread (doto (Thread. ^Runnable run) (.setDaemon true) (.start))
        printed (deref result (* 1000 seconds) nil)]
    (cond
      (nil? printed) (do (.stop thread) {:refused (str "no answer in " seconds " s")})
      (str/includes? printed "#object[") {:refused (str "prints an object: " printed)}
      (str/includes? printed "\n") {:refused "the answer has more than one line"}
      (> (count printed) longest) {:refused (str "the answer has " (count printed) " characters")}
      :else printed)))

(defn steady-answer
  "As `answer`, twice."
  [program]
  (let [one (answer program)
        two (when (string? one) (answer program))]
    (if (and two (not= one two)) {:refused (str "two runs differ: " one " and " two)} one)))

(defn record
  "The lines of a file with its answers filled in, and what is wrong with it, each with its line number."
  [lines check?]
  (loop [[line & more] lines, at 1, inside? false, program [], written [], wrong []]
    (cond
      (nil? line)
      [written wrong]

      (str/starts-with? line "```")
      (recur more (inc at) (= line "```clojure") [] (conj written line)
             (cond-> wrong
               (not (str/blank? (str/join program))) (conj [at "a program without `;=>`"])))

      (or (not inside?) (str/starts-with? (str/triml line) ";lispbox=>"))
      (recur more (inc at) inside? program (conj written line) wrong)

      (str/includes? line ";=>")
      (let [mark (str/index-of line ";=>")
            old (str/trim (subs line (+ mark 3)))
            program (str/join "\n" (conj program (subs line 0 mark)))
            new (if check? (answer program) (steady-answer program))]
        (recur more (inc at) inside? []
               (conj written (if (map? new) line (str (subs line 0 mark) ";=> " new)))
               (cond-> wrong
                 (map? new) (conj [at (str "refused, " (:refused new))])
                 (and check? (string? new) (not= old new)) (conj [at (str "recorded " old ", Clojure says " new)]))))

      :else
      (recur more (inc at) inside? (conj program line) (conj written line) wrong))))

(defn main [arguments]
  (let [check? (boolean (some #{"--check"} arguments))
        failures (atom 0)]
    (doseq [file (remove #{"--check"} arguments)]
      (let [old (slurp file)
            [lines wrong] (record (str/split-lines old) check?)
            new (str (str/join "\n" lines) "\n")]
        (doseq [[at message] wrong] (println (str file ":" at ": " message)))
        (swap! failures + (count wrong))
        (when-not (or check? (= old new)) (spit file new))))
    (flush)
    (System/exit (if (zero? @failures) 0 1))))

(main *command-line-args*)
