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

;; A text without a percent sign or currency at its beginning, and without one at its end. Signs are those of Unicode
;; (Sc) except cents, dollars may have letters before them, codes are those of ISO 4217.
(defn- without-unit [text]
  (-> text
      (str/replace-first #"^(?:%|(?:[A-Z][A-Za-z]{0,2})? ?[$£¤¥֏؋৲৳৻૱௹฿៛₠-⃁꠸﷼﹩＄￡￥￦]|zł|Kč|[Kk]r\.?|Ft|Rs\.?|Rp\.?|RM|Bs\.?|Fr\.?|SFr\.?|FCFA|CFA|DM|TL|[KTU]Sh|Dhs?|DH|S/\.?|B/\.|lei|руб\.?|р\.|грн\.?|лв\.?|ден\.?|дин\.?|din\.|元|円|圓|원|R|AED|AFN|ALL|AMD|ANG|AOA|ARS|AUD|AWG|AZN|BAM|BBD|BDT|BGN|BHD|BIF|BMD|BND|BOB|BOV|BRL|BSD|BTN|BWP|BYN|BZD|CAD|CDF|CHE|CHF|CHW|CLF|CLP|CNH|CNY|COP|COU|CRC|CUC|CUP|CVE|CZK|DEM|DJF|DKK|DOP|DZD|EGP|ERN|ESP|ETB|EUR|FIM|FJD|FKP|FRF|GBP|GEL|GHS|GIP|GMD|GNF|GRD|GTQ|GYD|HKD|HNL|HRK|HTG|HUF|IDR|IEP|ILS|INR|IQD|IRR|ISK|ITL|JMD|JOD|JPY|KES|KGS|KHR|KMF|KPW|KRW|KWD|KYD|KZT|LAK|LBP|LKR|LRD|LSL|LTL|LVL|LYD|MAD|MDL|MGA|MKD|MMK|MNT|MOP|MRU|MUR|MVR|MWK|MXN|MXV|MYR|MZN|NAD|NGN|NIO|NLG|NOK|NPR|NZD|OMR|PAB|PEN|PGK|PHP|PKR|PLN|PTE|PYG|QAR|RON|RSD|RUB|RWF|SAR|SBD|SCR|SDG|SEK|SGD|SHP|SLE|SLL|SOS|SRD|SSP|STN|SVC|SYP|SZL|THB|TJS|TMT|TND|TOP|TRY|TTD|TWD|TZS|UAH|UGX|USD|USN|UYI|UYU|UYW|UZS|VED|VES|VND|VUV|WST|XAF|XAG|XAU|XBT|XCD|XCG|XOF|XPD|XPF|XPT|YER|ZAR|ZMW|ZWG|ZWL) *([^A-Za-z]|$)" "$1")
      (str/replace-first #"([^A-Za-z]) *(?:%|(?:[A-Z][A-Za-z]{0,2})?[$£¤¥֏؋৲৳৻૱௹฿៛₠-⃁꠸﷼﹩＄￡￥￦]|zł|Kč|[Kk]r\.?|Ft|Rs\.?|Rp\.?|RM|Bs\.?|Fr\.?|SFr\.?|FCFA|CFA|DM|TL|[KTU]Sh|Dhs?|DH|S/\.?|B/\.|lei|руб\.?|р\.|грн\.?|лв\.?|ден\.?|дин\.?|din\.|元|円|圓|원|AED|AFN|ALL|AMD|ANG|AOA|ARS|AUD|AWG|AZN|BAM|BBD|BDT|BGN|BHD|BIF|BMD|BND|BOB|BOV|BRL|BSD|BTN|BWP|BYN|BZD|CAD|CDF|CHE|CHF|CHW|CLF|CLP|CNH|CNY|COP|COU|CRC|CUC|CUP|CVE|CZK|DEM|DJF|DKK|DOP|DZD|EGP|ERN|ESP|ETB|EUR|FIM|FJD|FKP|FRF|GBP|GEL|GHS|GIP|GMD|GNF|GRD|GTQ|GYD|HKD|HNL|HRK|HTG|HUF|IDR|IEP|ILS|INR|IQD|IRR|ISK|ITL|JMD|JOD|JPY|KES|KGS|KHR|KMF|KPW|KRW|KWD|KYD|KZT|LAK|LBP|LKR|LRD|LSL|LTL|LVL|LYD|MAD|MDL|MGA|MKD|MMK|MNT|MOP|MRU|MUR|MVR|MWK|MXN|MXV|MYR|MZN|NAD|NGN|NIO|NLG|NOK|NPR|NZD|OMR|PAB|PEN|PGK|PHP|PKR|PLN|PTE|PYG|QAR|RON|RSD|RUB|RWF|SAR|SBD|SCR|SDG|SEK|SGD|SHP|SLE|SLL|SOS|SRD|SSP|STN|SVC|SYP|SZL|THB|TJS|TMT|TND|TOP|TRY|TTD|TWD|TZS|UAH|UGX|USD|USN|UYI|UYU|UYW|UZS|VED|VES|VND|VUV|WST|XAF|XAG|XAU|XBT|XCD|XCG|XOF|XPD|XPF|XPT|YER|ZAR|ZMW|ZWG|ZWL)$" "$1")
      str/trim))

;; The text of a number with a point for decimals and nothing between its digits; nil if its separators are no grouping:
;; a group has three digits, or two before the last in Indian numbers, and a number has one kind of grouping.
(defn- plain-digits [text]
  (let [[_ whole mark] (re-matches #"(.*\d)([,.])(?:--?|[–—])" text)]
    (cond
      whole (let [digits (plain-digits (str whole mark "0"))] (if digits (subs digits 0 (- (count digits) 2)) nil))
      (re-matches #"(?:[1-9][0-9]{0,2}|0[0-9]{1,2}),[0-9]{3}" text) (str/replace text "," "")
      (re-matches #"[0-9]+[.,]?|[0-9]*[.,][0-9]+" text) (str/replace text "," ".")
      (re-matches #"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]*)?" text) (str/replace text "," "")
      (re-matches #"[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?:\.[0-9]*)?" text) (str/replace text "," "")
      (re-matches #"[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?" text) (-> text (str/replace "." "") (str/replace "," "."))
      (re-matches #"[0-9]{1,3}(?:(?: [0-9]{3})+|(?:['’][0-9]{3})+|(?:_[0-9]{3})+)(?:[.,][0-9]*)?" text)
      (-> text (str/replace #"[ '’_]" "") (str/replace "," "."))
      :else nil)))

;; The sign at the beginning of a text and the text after it.
(defn- sign-and-rest [text]
  (rest (re-matches #"([-+−]?) *(.*)" text)))

(defn parse-number
  "Parses one number with a currency, separators or percent: `$1,234.50`, `1.234,50 €`, `R$ 5`, `(12)`, `15%`. Any other
   text is nil, such as two numbers, or digits grouped other than by three.
   Whole numbers become integers; a number is returned unchanged."
  {:arglists [[text]]
   :examples [["(map parse-number [\"$1,234.50\" \"1.234,50 €\" \"(12)\" \"15%\" \"n/a\"])" "(1234.5 1234.5 -12 15 nil)"]
              ["(map parse-number [\"45,00 zł\" \"1 234\" \"12 34\"])" "(45.0 1234 nil)"]
              ["(parse-number 7)" "7"]]
   :aliases [->number to-number parse-amount]}
  [text]
  (cond
    (number? text) text
    (not (string? text)) nil
    :else
    (let [[outer text] (-> text (str/replace #"[\s\u00a0\u2007\u2009\u202f]" " ") str/trim sign-and-rest)
          text (without-unit text)
          [_ enclosed] (re-matches #"\( *(.*?) *\)" text)
          [inner text] (sign-and-rest (without-unit (or enclosed text)))
          text (without-unit text)
          digits (plain-digits text)
          value (cond
                  (and (not= "" outer) (or enclosed (not= "" inner))) nil
                  (re-matches #"[0-9]+(?:\.[0-9]+)?[eE][-+]?[0-9]+" text) (parse-double text)
                  (nil? digits) nil
                  (re-find #"\." digits) (parse-double digits)
                  :else (or (parse-long digits) (bigint digits)))]
      (cond
        (nil? value) nil
        (or enclosed (contains? #{"-" "−"} (str outer inner))) (- value)
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

(defn BigInteger.
  "The integer that a string denotes, optionally in another radix."
  {:arglists [[s] [s radix]]
   :examples [["(BigInteger. \"123\")" "123"] ["(BigInteger. \"ff\" 16)" "255"]]}
  ([s] (BigInteger. s 10))
  ([s radix]
   (let [number (string->number s radix)]
     (if (integer? number)
       number
       (throw (NumberFormatException. (str "`BigInteger.` expected the digits of an integer, got " (pr-str s))))))))

(defn .divide
  "The quotient: of integers without its fraction, as of Java's `BigInteger`, of others exact or as a double."
  {:examples [["(.divide 7 2)" "3"] ["(.divide 1M 4M)" "0.25M"]]}
  [a b]
  (if (and (integer? a) (integer? b)) (quot a b) (/ a b)))

(defn .add
  "The sum of two numbers. Collections do not change: `(conj xs x)` gives another one."
  {:examples [["(.add 2M 3M)" "5M"]]}
  [a b]
  (if (number? a)
    (+' a b)
    (throw (UnsupportedOperationException. "`.add` adds numbers; collections do not change: `(conj xs x)` gives one with the item, `(swap! state conj x)` keeps it in an atom"))))

(defn .pow
  "The power of an integer or a decimal by a whole number."
  {:examples [["(.pow (biginteger 2) 10)" "1024"] ["(.pow 1.5M 2)" "2.25M"]]}
  [x n]
  (if (decimal? x) (reduce *' 1M (repeat n x)) (expt x n)))

(defn- plain
  "An integer as `BigInteger` prints it."
  [x]
  (if (<= Long/MIN_VALUE x Long/MAX_VALUE) (long x) x))

(defn .modInverse
  "The inverse of an integer modulo `m`."
  {:examples [["(.modInverse (biginteger 3) 11)" "4"]]}
  [x m]
  (if (pos? m)
    (loop [a m b (mod x m) u 0 v 1]
      (cond
        (not (zero? b)) (let [q (quot a b)] (recur b (-' a (*' q b)) v (-' u (*' q v))))
        (= a 1) (plain (mod u m))
        :else (throw (ArithmeticException. (str x " has no inverse modulo " m)))))
    (throw (ArithmeticException. (str "`.modInverse` expected a positive modulus, got " m)))))

(defn .modPow
  "The power of an integer by an exponent, modulo `m`."
  {:examples [["(.modPow (biginteger 4) 13 497)" "445"] ["(.modPow (biginteger 3) -1 11)" "4"]]}
  [x exponent m]
  (if (pos? m)
    (loop [result (mod 1 m)
           base (if (neg? exponent) (.modInverse x m) (mod x m))
           left (abs exponent)]
      (if (zero? left)
        (plain result)
        (recur (if (odd? left) (mod (*' result base) m) result) (mod (*' base base) m) (quot left 2))))
    (throw (ArithmeticException. (str "`.modPow` expected a positive modulus, got " m)))))

(defn .bitLength
  "The number of bits of an integer, without its sign."
  {:examples [["(.bitLength (biginteger 255))" "8"] ["(.bitLength (biginteger 0))" "0"]]}
  [x]
  (let [bits (if (neg? x) (-' (-' x) 1) x)]
    (if (zero? bits) 0 (count (.toString bits 2)))))

(defn .bitCount
  "The number of bits of an integer that differ from its sign."
  {:examples [["(.bitCount (biginteger 255))" "8"]]}
  [x]
  (count (filter #{\1} (.toString (if (neg? x) (-' (-' x) 1) x) 2))))

(defn- shifted
  "An integer shifted left by `n` bits, or right, rounded down, by `(- n)`."
  [x n]
  (let [factor (expt 2 (abs n))]
    (plain (cond
             (not (neg? n)) (*' x factor)
             (neg? x) (quot (-' (+' x 1) factor) factor)
             :else (quot x factor)))))

(defn .shiftLeft
  "An integer shifted left by `n` bits."
  {:examples [["(.shiftLeft (biginteger 1) 40)" "1099511627776"]]}
  [x n]
  (shifted x n))

(defn .shiftRight
  "An integer shifted right by `n` bits, rounded down."
  {:examples [["(.shiftRight (biginteger 1024) 3)" "128"] ["(.shiftRight (biginteger -5) 1)" "-3"]]}
  [x n]
  (shifted x (- n)))

(defn .isProbablePrime
  "True if the integer is prime, or passes as one a test that errs for no number below 3·10²⁴ (Miller and Rabin, with the first 13 primes)."
  {:arglists [[x] [x certainty]]
   :examples [["(.isProbablePrime (biginteger 97) 10)" "true"] ["(.isProbablePrime (biginteger 91) 10)" "false"]]}
  ([x] (.isProbablePrime x 100))
  ([x certainty]
   (let [primes [2 3 5 7 11 13 17 19 23 29 31 37 41]
         n (abs x)]
     (cond
       (< n 2) false
       (some #(= n %) primes) true
       (some #(zero? (mod n %)) primes) false
       :else (let [[twos rest] (loop [twos 0 rest (-' n 1)] (if (even? rest) (recur (inc twos) (quot rest 2)) [twos rest]))
                   passes? (fn [base]
                             (loop [power (.modPow base rest n) left twos]
                               (cond
                                 (= power (-' n 1)) true
                                 (= power 1) (= left twos)
                                 (<= left 1) false
                                 :else (recur (mod (*' power power) n) (dec left)))))]
               (every? passes? primes))))))
