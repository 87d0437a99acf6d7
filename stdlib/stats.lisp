;;; Statistics
;;
;; Each function takes numbers, or a selector and items. `numbers*` makes a vector of numbers of that,
;; and says so when something else comes.

(defn sum
  "The total of numbers, or of a selector's values over items; 0 if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(sum [1 2 3])" "6"]
              ["(sum :size [{:size 2} {:size 5}])" "7"]
              ["(sum [{:size 2}] :size)" "2"]]
   :aliases [stats/sum]}
  ([coll] (reduce + 0 (numbers* coll)))
  ([f coll] (reduce + 0 (numbers* f coll))))

(defn- grouped [f group value coll]
  (let [[group value coll] (arranged* group value coll)]
    (update-vals (group-by group coll) #(f (numbers* value %)))))

(defn- total [numbers] (reduce + 0 numbers))

(defn sum-by
  "The total of a selector's values over items.
   With two selectors: a map from each value of the first to the total of that group."
  {:arglists [[f coll] [group f coll]]
   :examples [["(sum-by :total [{:total 2} {:total 5}])" "7"]
              ["(sum-by :customer :total [{:customer \"a\" :total 2} {:customer \"b\" :total 1} {:customer \"a\" :total 5}])"
               "{\"a\" 7, \"b\" 1}"]]
   :aliases [stats/sum-by]}
  ([f coll] (reduce + 0 (numbers* f coll)))
  ([group f coll] (grouped total group f coll)))

(defn- mean-of [numbers]
  (if (empty? numbers) nil (/ (reduce + numbers) (count numbers))))

(defn stats/mean
  "The average of numbers, or of a selector's values; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/mean [1 2 6])" "3"] ["(stats/mean :ms [{:ms 10} {:ms 25}])" "17.5"]]
   :aliases [mean average avg stats/average stats/avg]}
  ([coll] (mean-of (numbers* coll)))
  ([f coll] (mean-of (numbers* f coll))))

(defn mean-by
  "The average of a selector's values over items; nil if empty.
   With two selectors: a map from each value of the first to the average of that group."
  {:arglists [[f coll] [group f coll]]
   :examples [["(mean-by :ms [{:ms 10} {:ms 25}])" "17.5"]
              ["(mean-by :host :ms [{:host \"a\" :ms 10} {:host \"a\" :ms 30}])" "{\"a\" 20}"]]
   :aliases [stats/mean-by average-by stats/average-by]}
  ([f coll] (mean-of (numbers* f coll)))
  ([group f coll] (grouped mean-of group f coll)))

(defn stats/min
  "The least of numbers, or of a selector's values; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/min [3 1 2])" "1"] ["(stats/min :ms [])" "nil"]]
   :aliases [stats/minimum minimum]}
  ([coll] (let [numbers (numbers* coll)] (if (empty? numbers) nil (reduce min numbers))))
  ([f coll] (let [numbers (numbers* f coll)] (if (empty? numbers) nil (reduce min numbers)))))

(defn stats/max
  "The greatest of numbers, or of a selector's values; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/max [3 1 2])" "3"] ["(stats/max :ms [{:ms 1} {:ms 4}])" "4"]]
   :aliases [stats/maximum maximum]}
  ([coll] (let [numbers (numbers* coll)] (if (empty? numbers) nil (reduce max numbers))))
  ([f coll] (let [numbers (numbers* f coll)] (if (empty? numbers) nil (reduce max numbers)))))

;; What stands at a place of sorted numbers; between two of them in proportion.
(defn- at-place [place sorted]
  (let [below (long (math/floor place))
        low (nth sorted below)]
    (if (== place below)
      low
      (+ low (* (- place below) (- (nth sorted (inc below)) low))))))

(defn- percentile-of [p sorted]
  (cond
    (not (number? p)) (expected* "a number from 0 to 100" p "as in `(stats/percentile 95 coll)`")
    (not (<= 0 p 100)) (expected* "a number from 0 to 100" p "as in `(stats/percentile 95 coll)`")
    (< 0 p 1) (expected* "a number from 0 to 100" p "for a fraction write `(stats/quantile 0.95 coll)`")
    (empty? sorted) nil
    :else (at-place (/ (* p (dec (count sorted))) 100) sorted)))

(defn- sorted-numbers [args]
  (vec (sort (if (= 1 (count args)) (numbers* (first args)) (numbers* (first args) (second args))))))

(defn stats/median
  "The middle one of numbers, or of a selector's values; the mean of two middle ones; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/median [5 1 9])" "5"] ["(stats/median [1 2 3 10])" "2.5"]]
   :aliases [median]}
  ([coll] (percentile-of 50 (sorted-numbers [coll])))
  ([f coll] (percentile-of 50 (sorted-numbers [f coll]))))

(defn stats/percentile
  "The value below which `p` percent of numbers, or of a selector's values, lie; interpolated linearly; nil if empty."
  {:arglists [[p coll] [p f coll]]
   :examples [["(stats/percentile 90 [1 2 3 4 5 6 7 8 9 10 11])" "10"]
              ["(stats/percentile [10 20] 25)" "12.5"]
              ["(stats/percentile 50 :ms [{:ms 1} {:ms 3}])" "2.0"]]
   :aliases [percentile]}
  ([p coll] (percentile-of (if (number? p) p coll) (sorted-numbers (if (number? p) [coll] [p]))))
  ([a b c] (percentile-of (first (filter number? [a b c])) (sorted-numbers (vec (remove number? [a b c]))))))

(defn stats/percentiles
  "A map from each of several percentages to its percentile."
  {:arglists [[ps coll] [ps f coll]]
   :examples [["(stats/percentiles [50 100] [1 2 3])" "{50 2, 100 3}"]]}
  ([ps coll] (let [sorted (sorted-numbers [coll])]
               (into {} (map (fn [p] [p (percentile-of p sorted)])) ps)))
  ([ps f coll] (let [sorted (sorted-numbers [f coll])]
                 (into {} (map (fn [p] [p (percentile-of p sorted)])) ps))))

(defn stats/quantile
  "Like `stats/percentile`, with a fraction from 0 to 1."
  {:arglists [[q coll] [q f coll]]
   :examples [["(stats/quantile 0.5 [1 2 3])" "2"]]
   :aliases [quantile]}
  ([q coll]
   (let [[q coll] (if (number? q) [q coll] [coll q])
         sorted (sorted-numbers [coll])]
     (cond
       (not (and (number? q) (<= 0 q 1))) (expected* "a number from 0 to 1" q "as in `(stats/quantile 0.95 coll)`")
       (empty? sorted) nil
       :else (at-place (* q (dec (count sorted))) sorted))))
  ([q f coll]
   (let [sorted (sorted-numbers [f coll])]
     (cond
       (not (and (number? q) (<= 0 q 1))) (expected* "a number from 0 to 1" q "as in `(stats/quantile 0.95 f coll)`")
       (empty? sorted) nil
       :else (at-place (* q (dec (count sorted))) sorted)))))

(defn stats/mode
  "The most frequent item, or value of a selector; the first if several tie; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/mode [1 2 2 3])" "2"] ["(stats/mode :from [{:from \"a\"} {:from \"b\"} {:from \"b\"}])" "\"b\""]]
   :aliases [mode]}
  ([coll] (first (extreme pos? second (frequencies coll))))
  ([f coll] (let [[f coll] (arranged* f coll)]
              (first (extreme pos? second (frequencies (map f coll)))))))

;; The sum of the squared distances from the mean.
(defn- squares [numbers]
  (let [mean (mean-of numbers)]
    (reduce (fn [total x] (+ total (* (- x mean) (- x mean)))) 0 numbers)))

(defn- variance-of [numbers]
  (if (< (count numbers) 2) nil (/ (squares numbers) (dec (count numbers)))))

(defn- deviation-of [numbers]
  (if (< (count numbers) 2) nil (math/sqrt (variance-of numbers))))

(defn stats/variance
  "The variance of a sample: squared distances from the mean over n - 1; nil for fewer than two."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/variance [2 4 6])" "4"]]
   :aliases [variance]}
  ([coll] (variance-of (numbers* coll)))
  ([f coll] (variance-of (numbers* f coll))))

(defn stats/stdev
  "The standard deviation of a sample (n - 1); nil for fewer than two."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/stdev [2 4 6])" "2.0"] ["(stats/stdev [1])" "nil"]]
   :aliases [stdev stddev stats/stddev stats/standard-deviation standard-deviation]}
  ([coll] (deviation-of (numbers* coll)))
  ([f coll] (deviation-of (numbers* f coll))))

(defn stats/pvariance
  "The variance of a whole population: squared distances from the mean over n; nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/pvariance [1 3])" "1"]]}
  ([coll] (let [numbers (numbers* coll)] (if (empty? numbers) nil (/ (squares numbers) (count numbers)))))
  ([f coll] (let [numbers (numbers* f coll)] (if (empty? numbers) nil (/ (squares numbers) (count numbers))))))

(defn stats/pstdev
  "The standard deviation of a whole population (n); nil if empty."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/pstdev [1 3])" "1.0"]]}
  ([coll] (let [numbers (numbers* coll)] (if (empty? numbers) nil (math/sqrt (/ (squares numbers) (count numbers))))))
  ([f coll] (let [numbers (numbers* f coll)]
              (if (empty? numbers) nil (math/sqrt (/ (squares numbers) (count numbers)))))))

(defn- summary-of [numbers]
  (let [sorted (vec (sort numbers))]
    {:count (count sorted)
     :sum (total sorted)
     :mean (mean-of sorted)
     :min (first sorted)
     :median (percentile-of 50 sorted)
     :p95 (percentile-of 95 sorted)
     :max (peek sorted)
     :stdev (deviation-of sorted)}))

(defn stats/summary
  "A map of count, sum, mean, minimum, median, 95th percentile, maximum and standard deviation."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/summary [1 2 3])"
               "{:count 3, :sum 6, :mean 2, :min 1, :median 2, :p95 2.9, :max 3, :stdev 1.0}"]]}
  ([coll] (summary-of (numbers* coll)))
  ([f coll] (summary-of (numbers* f coll))))

(defn- bins [n numbers]
  (cond
    (empty? numbers) []
    (some #(or (NaN? %) (infinite? %)) numbers)
    (expected* "finite numbers" (first (filter #(or (NaN? %) (infinite? %)) numbers))
               "leave it out: `(remove #(or (NaN? %) (infinite? %)) coll)`")
    :else
    (let [least (reduce min numbers)
          width (/ (- (reduce max numbers) least) n)]
      (if (zero? width)
        [{:from least :to least :count (count numbers)}]
        (let [counts (frequencies (map #(min (dec n) (long (math/floor (/ (- % least) width)))) numbers))]
          (mapv (fn [at]
                  {:from (+ least (* at width)) :to (+ least (* (inc at) width)) :count (get counts at 0)})
                (range n)))))))

(defn stats/histogram
  "The number of values in each of `n` (10) ranges of equal width, from the least to the greatest."
  {:arglists [[coll] [n coll] [n f coll]]
   :examples [["(stats/histogram 2 [0 1 2 10])" "[{:from 0, :to 5, :count 3} {:from 5, :to 10, :count 1}]"]
              ["(map :count (stats/histogram (range 100)))" "(10 10 10 10 10 10 10 10 10 10)"]]
   :aliases [histogram]}
  ([coll] (bins 10 (numbers* coll)))
  ([a b] (cond
           (pos-int? a) (bins a (numbers* b))
           (pos-int? b) (bins b (numbers* a))
           (number? a) (expected* "a number of ranges, 1 or more" a "as in `(stats/histogram 5 coll)`")
           (number? b) (expected* "a number of ranges, 1 or more" b "as in `(stats/histogram 5 coll)`")
           :else (bins 10 (numbers* a b))))
  ([a b c] (let [n (first (filter pos-int? [a b c]))
                 [f coll] (remove number? [a b c])]
             (if (nil? n)
               (expected* "a number of ranges, 1 or more" a "as in `(stats/histogram 5 :ms coll)`")
               (bins n (numbers* f coll))))))

(defn stats/cumulative-sum
  "The running totals, number by number."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/cumulative-sum [1 2 3])" "[1 3 6]"]]
   :aliases [cumulative-sum cumsum stats/cumsum running-total stats/running-total]}
  ([coll] (let [numbers (numbers* coll)] (if (empty? numbers) [] (vec (reductions + numbers)))))
  ([f coll] (let [numbers (numbers* f coll)] (if (empty? numbers) [] (vec (reductions + numbers))))))

(defn- windows [n numbers]
  (if (pos-int? n)
    (mapv mean-of (partition n 1 numbers))
    (expected* "how many numbers to average, 1 or more" n "as in `(stats/moving-average 7 coll)`")))

(defn stats/moving-average
  "The averages of each `n` consecutive numbers."
  {:arglists [[n coll] [n f coll]]
   :examples [["(stats/moving-average 2 [1 3 8])" "[2 5.5]"]]
   :aliases [moving-average stats/rolling-mean rolling-mean]}
  ([a b] (if (number? a) (windows a (numbers* b)) (windows b (numbers* a))))
  ([a b c] (let [[f coll] (remove number? [a b c])]
             (windows (first (filter number? [a b c])) (numbers* f coll)))))

(defn stats/differences
  "The difference of each number from the one before."
  {:arglists [[coll] [f coll]]
   :examples [["(stats/differences [1 4 2])" "[3 -2]"]]
   :aliases [stats/diff]}
  ([coll] (let [numbers (numbers* coll)] (mapv - (rest numbers) numbers)))
  ([f coll] (let [numbers (numbers* f coll)] (mapv - (rest numbers) numbers))))

(defn stats/shares
  "A map with each value as its fraction of the total, from 0 to 1; nil if the total is 0."
  {:examples [["(stats/shares {:open 3 :done 1})" "{:open 0.75, :done 0.25}"]]
   :aliases [stats/proportions]}
  [m]
  (let [whole (total (numbers* (vals m)))]
    (update-vals (or m {}) #(if (zero? whole) nil (/ % whole)))))

(defn- correlation-of [xs ys]
  (if (= (count xs) (count ys))
    (let [mean-x (mean-of xs)
          mean-y (mean-of ys)
          spread (if (empty? xs) 0 (math/sqrt (* (squares xs) (squares ys))))]
      (if (zero? spread)
        nil
        (double (/ (reduce + (map (fn [x y] (* (- x mean-x) (- y mean-y))) xs ys)) spread))))
    (expected* (str "as many numbers as there are in the first collection, " (count xs)) (count ys)
               "both collections belong to the same items")))

(defn stats/correlation
  "Pearson's correlation of two collections of numbers, or of two selectors' values; nil if one never varies."
  {:arglists [[xs ys] [f g coll]]
   :examples [["(stats/correlation [1 2 3] [2 4 6])" "1.0"]
              ["(stats/correlation :a :b [{:a 1 :b 3} {:a 2 :b 1}])" "-1.0"]]
   :aliases [correlation]}
  ([xs ys] (correlation-of (numbers* xs) (numbers* ys)))
  ([f g coll] (let [[f g coll] (arranged* f g coll)]
                (correlation-of (numbers* f coll) (numbers* g coll)))))
