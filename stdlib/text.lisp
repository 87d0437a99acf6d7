;;; Text for people

(defn truncate
  "Shortens a text to at most `n` characters, ending in `…` if cut. A number alone is truncated to an integer."
  {:arglists [[text n] [number]]
   :examples [["(truncate \"a long subject\" 7)" "\"a long…\""] ["(truncate \"short\" 7)" "\"short\""] ["(truncate -2.7)" "-2"]]
   :aliases [str/truncate ellipsis]}
  ([number] (long number))
  ([text n]
   (let [[text n] (if (number? text) [n text] [text n])]
     (cond
       (nil? text) nil
       (<= (count (str text)) n) (str text)
       (< n 1) ""
       :else (str (str/trimr (subs (str text) 0 (dec n))) "…")))))

(defn str/squish
  "Trims a text and collapses each run of whitespace to one space."
  {:examples [["(str/squish \"  two\\n  words \")" "\"two words\""]]
   :aliases [squish normalize-whitespace collapse-whitespace str/collapse-whitespace]}
  [text]
  (if (nil? text) nil (str/trim (str/replace text #"[\s\u00a0]+" " "))))

(defn str/pad-left
  "Pads a text on the left with spaces, or `fill`, to `width` characters."
  {:arglists [[text width] [text width fill]]
   :examples [["(str/pad-left 7 3)" "\"  7\""] ["(str/pad-left 7 3 0)" "\"007\""]]
   :aliases [pad-left left-pad str/pad-start str/left-pad]}
  ([text width] (str/pad-left text width " "))
  ([text width fill] (str (apply str (repeat (- width (count (str text))) fill)) text)))

(defn str/pad-right
  "Pads a text on the right with spaces, or `fill`, to `width` characters."
  {:arglists [[text width] [text width fill]]
   :examples [["(str/pad-right \"ab\" 4 \".\")" "\"ab..\""]]
   :aliases [pad-right right-pad str/pad-end str/right-pad]}
  ([text width] (str/pad-right text width " "))
  ([text width fill] (str text (apply str (repeat (- width (count (str text))) fill)))))

(defn pluralize
  "A number with its noun: singular for 1, else the plural, given or with `s`."
  {:arglists [[n noun] [n one many]]
   :examples [["(pluralize 1 \"email\")" "\"1 email\""] ["(pluralize 0 \"reply\" \"replies\")" "\"0 replies\""]]}
  ([n noun] (pluralize n noun (str noun "s")))
  ([n one many] (str n " " (if (== 1 n) one many))))

(defn email-address
  "The address in `Ann <ann@example.com>`, in lower case; of a map, its `:email` or `:address`; nil if there is none."
  {:examples [["(email-address \"Ann <Ann@Example.com>\")" "\"ann@example.com\""]
              ["(email-address {:name \"Ann\" :email \"ann@example.com\"})" "\"ann@example.com\""]
              ["(email-address \"nobody\")" "nil"]]}
  [x]
  (cond
    (map? x) (email-address (or (:email x) (:address x)))
    (string? x) (let [found (re-find #"[^\s<>,;:\"()]+@[^\s<>,;:\"()]+" x)]
                  (if (nil? found) nil (str/lower-case found)))
    :else nil))

(defn email-domain
  "The domain after the `@` of an address, in lower case; nil if there is none."
  {:examples [["(email-domain \"Ann <ann@Example.com>\")" "\"example.com\""]]}
  [x]
  (let [address (email-address x)]
    (if (nil? address) nil (subs address (inc (str/index-of address "@"))))))

(defn munge
  "A name as a Java identifier: `a-b?` is `a_b_QMARK_`; a symbol stays a symbol."
  {:examples [["(munge \"a-b?\")" "\"a_b_QMARK_\""] ["(munge 'a/b)" "a_SLASH_b"]]}
  [s]
  (let [text (str/escape (str s)
                         {\- "_" \: "_COLON_" \+ "_PLUS_" \> "_GT_" \< "_LT_" \= "_EQ_" \~ "_TILDE_" \! "_BANG_"
                          \@ "_CIRCA_" \# "_SHARP_" \' "_SINGLEQUOTE_" \" "_DOUBLEQUOTE_" \% "_PERCENT_"
                          \^ "_CARET_" \& "_AMPERSAND_" \* "_STAR_" \| "_BAR_" \{ "_LBRACE_" \} "_RBRACE_"
                          \[ "_LBRACK_" \] "_RBRACK_" \/ "_SLASH_" \\ "_BSLASH_" \? "_QMARK_"})]
    (if (symbol? s) (symbol text) text)))

(defn String.
  "A string: of the characters or the bytes (in UTF-8) in a vector, from `offset` on and `count` of them if given; a copy of a string."
  {:arglists [[] [x] [bytes charset] [chars offset count]]
   :examples [["(String. (char-array [\\a \\b]))" "\"ab\""] ["(String. \"ab\")" "\"ab\""] ["(String. (.getBytes \"é\") \"UTF-8\")" "\"é\""]]}
  ([] "")
  ([x] (if (sequential? x) (if (every? int? x) (text-of-bytes* x) (apply str x)) (str x)))
  ([bytes charset]
   (if (contains? #{"utf-8" "utf8" "us-ascii"} (str/lower-case (str charset)))
     (text-of-bytes* bytes)
     (throw (IllegalArgumentException. (str "expected \"UTF-8\" as the charset of `String.`, got " (pr-str charset))))))
  ([chars offset count] (String. (take count (drop offset chars)))))

(defn String/valueOf
  "The text of a value, `null` for nil; of a vector of characters, these."
  {:examples [["(String/valueOf 5)" "\"5\""] ["(String/valueOf (char-array \"ab\"))" "\"ab\""]]}
  [x]
  (cond
    (nil? x) "null"
    (and (vector? x) (seq x) (every? char? x)) (apply str x)
    :else (str x)))

(defn StringReader.
  "The text itself: functions that read take a text."
  {:examples [["(csv/read-csv (java.io.StringReader. \"a,b\"))" "[[\"a\" \"b\"]]"]]}
  [s]
  (if (string? s) s (throw (ClassCastException. (str "`StringReader.` expected a string, got " (pr-str s))))))

(defn String/CASE_INSENSITIVE_ORDER
  "A comparator of strings that ignores case."
  {:examples [["(sort String/CASE_INSENSITIVE_ORDER [\"b\" \"A\"])" "(\"A\" \"b\")"]]}
  [a b]
  (.compareToIgnoreCase a b))

(defn .concat
  "A string with another at its end; the items of a collection with those of others, as in JavaScript."
  {:arglists [[s other] [coll & colls]]
   :examples [["(.concat \"ab\" \"c\")" "\"abc\""] ["(.concat [1] [2 3])" "[1 2 3]"]]}
  [x & others]
  (cond
    (not (string? x)) (into (vec x) cat others)
    (every? some? others) (apply str x others)
    :else (throw (NullPointerException. "`.concat` expected a string, got nil"))))
