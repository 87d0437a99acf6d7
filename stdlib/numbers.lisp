;;; Numbers for people

(defn round-to
  "Rounds to `digits` decimal places; negative `digits` round to tens, hundreds and so on."
  {:arglists [[x digits]]
   :examples [["(round-to 3.14159 2)" "3.14"] ["(round-to 1250 -2)" "1300"] ["(round-to 7 2)" "7"]]
   :aliases [round-number]}
  [x digits]
  (cond
    (neg? digits) (let [unit (long (math/pow 10 (- digits)))] (* unit (math/round (double (/ x unit)))))
    (integer? x) x
    (decimal? x) (bigdec (format (str "%." digits "f") x))
    :else (parse-double (format (str "%." digits "f") x))))

(defn clamp
  "Limits a number to the range from `least` to `most`."
  {:examples [["(clamp 12 0 10)" "10"] ["(clamp 5 0 10)" "5"]]}
  [x least most]
  (max least (min most x)))

(defn percent
  "The percentage of `part` in `whole`, rounded to `digits` (1) decimal places; nil if `whole` is 0."
  {:arglists [[part whole] [part whole digits]]
   :examples [["(percent 1 3)" "33.3"] ["(percent 1 3 0)" "33.0"] ["(percent 1 0)" "nil"]]
   :aliases [percentage]}
  ([part whole] (percent part whole 1))
  ([part whole digits] (if (zero? whole) nil (round-to (double (/ (* 100 part) whole)) digits))))

;; The text of a number with a point for decimals and nothing between its digits; nil where the
;; separators contradict each other. A separator that comes last and is no group of three is the point.
(defn- plain-digits [text]
  (let [comma (str/last-index-of text ",")
        point (str/last-index-of text ".")]
    (cond
      (and comma point) (if (< comma point)
                          (str/replace text "," "")
                          (-> text (str/replace "." "") (str/replace "," ".")))
      (and comma (re-matches #"[^,]{1,3}(,\d{3})+" text)) (str/replace text "," "")
      (and comma (= comma (str/index-of text ","))) (str/replace text "," ".")
      (and point (re-matches #"[^.]{1,3}(\.\d{3}){2,}" text)) (str/replace text "." "")
      comma nil
      :else text)))

(defn parse-number
  "Parses a number with currency, separators or percent: `$1,234.50`, `1.234,50 €`, `(12)`, `15%`; else nil.
   Whole numbers become integers; a number is returned unchanged."
  {:arglists [[text]]
   :examples [["(map parse-number [\"$1,234.50\" \"1.234,50 €\" \"(12)\" \"15%\" \"n/a\"])" "(1234.5 1234.5 -12 15 nil)"]
              ["(parse-number 7)" "7"]]
   :aliases [->number to-number parse-amount]}
  [text]
  (cond
    (number? text) text
    (not (string? text)) nil
    :else
    (let [bare (-> text
                   (str/replace #"[\s\u00a0\u202f_'’]" "")
                   (str/replace #"^[A-Z]{3}|[A-Z]{3}$" "")
                   (str/replace #"[$€£¥₹%]" ""))
          [_ open sign number close] (re-matches #"(\()?([-+−])?([\d.,]*\d[\d.,]*)(\))?" bare)
          digits (if number (plain-digits number) nil)
          value (cond
                  (nil? digits) (parse-double bare)
                  (re-find #"\." digits) (parse-double digits)
                  :else (or (parse-long digits) (parse-double digits)))]
      (cond
        (nil? value) nil
        (or (and open close) (contains? #{"-" "−"} sign)) (- value)
        :else value))))

(defn format-bytes
  "A number of bytes as human-readable text."
  {:examples [["(format-bytes 1536)" "\"1.5 KB\""] ["(format-bytes 20)" "\"20 B\""]]
   :aliases [human-bytes]}
  [bytes]
  (loop [size bytes, units ["B" "KB" "MB" "GB" "TB"]]
    (if (or (< size 1024) (= 1 (count units)))
      (str (if (integer? size) size (format "%.1f" (double size))) " " (first units))
      (recur (double (/ size 1024)) (rest units)))))

(defn parseFloat
  "The number at the beginning of a text, as in JavaScript; `##NaN` if there is none."
  {:examples [["(parseFloat \"12.5 EUR\")" "12.5"] ["(parseFloat \"x\")" "##NaN"] ["(parseFloat 3)" "3"]]
   :aliases [js/parseFloat Number/parseFloat Number.parseFloat]}
  [x]
  (if (number? x)
    x
    (let [digits (re-find #"^\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?" (str x))]
      (if (nil? digits) ##NaN (parse-double (str/trim digits))))))

(defn parseInt
  "The integer at the beginning of a text, as in JavaScript; `##NaN` if there is none."
  {:arglists [[x] [x radix]]
   :examples [["(parseInt \"42px\")" "42"] ["(parseInt \"99999999999999999999\")" "99999999999999999999N"] ["(parseInt \"x\")" "##NaN"] ["(parseInt 3.7)" "3"]]
   :aliases [js/parseInt Number/parseInt Number.parseInt]}
  ([x] (parseInt x 10))
  ([x radix]
   (cond
     (not= radix 10) (throw (ex-info "`parseInt` reads decimal numbers: expected 10 as its radix; `(Integer/parseInt text radix)` reads others" {:radix radix}))
     (number? x) (long x)
     :else (let [digits (re-find #"^\s*[-+]?\d+" (str x))]
             (if (nil? digits) ##NaN (or (parse-long (str/trim digits)) (bigint (str/trim digits))))))))

(defn isNaN
  "True if JavaScript converts the value to NaN."
  {:examples [["(isNaN ##NaN)" "true"] ["(isNaN 1)" "false"] ["(isNaN \"x\")" "true"]]
   :aliases [js/isNaN Number/isNaN Number.isNaN]}
  [x]
  (cond
    (number? x) (NaN? x)
    (nil? x) false
    (boolean? x) false
    :else (nil? (parse-double (str/trim (str x))))))
