;;; Sequences by a key

(defn index-by
  "A map from a selector's value of each item to the item; the last of several wins."
  {:examples [["(index-by :id [{:id 1 :n \"a\"} {:id 2 :n \"b\"}])" "{1 {:id 1, :n \"a\"}, 2 {:id 2, :n \"b\"}}"]]
   :aliases [key-by]}
  [f coll]
  (let [[f coll] (arranged* f coll)]
    (reduce (fn [m item] (assoc m (f item) item)) {} coll)))

(defn count-by
  "A map from each value of a selector to the number of items with it."
  {:examples [["(count-by :from [{:from \"a\"} {:from \"b\"} {:from \"a\"}])" "{\"a\" 2, \"b\" 1}"]]
   :aliases [stats/count-by]}
  [f coll]
  (let [[f coll] (arranged* f coll)]
    (frequencies f coll)))

(defn distinct-by
  "The items with distinct values of a selector, keeping the first."
  {:examples [["(distinct-by :id [{:id 1 :v 1} {:id 2} {:id 1 :v 2}])" "({:id 1, :v 1} {:id 2})"]]
   :aliases [unique-by uniq-by dedupe-by]}
  [f coll]
  (let [[f coll] (arranged* f coll)]
    (or (vals (reduce (fn [seen item]
                        (let [k (f item)]
                          (if (contains? seen k) seen (assoc seen k item))))
                      {}
                      coll))
        ())))

(defn duplicates
  "The items that share their value of a selector with another item, grouped by that value."
  {:arglists [[coll] [f coll]]
   :examples [["(duplicates [1 2 1])" "{1 [1 1]}"]
              ["(duplicates :mail [{:mail \"a\" :id 1} {:mail \"b\"} {:mail \"a\" :id 2}])"
               "{\"a\" [{:mail \"a\", :id 1} {:mail \"a\", :id 2}]}"]]}
  ([coll] (keep-entries (fn [_ items] (< 1 (count items))) (group-by identity coll)))
  ([f coll] (let [[f coll] (arranged* f coll)]
              (keep-entries (fn [_ items] (< 1 (count items))) (group-by f coll)))))

(defn- descending [a b] (compare b a))

(defn sort-desc
  "The items in descending order."
  {:examples [["(sort-desc [1 3 2])" "(3 2 1)"]]
   :aliases [sort-descending]}
  [coll]
  (sort descending coll))

(defn sort-by-desc
  "The items sorted by a selector, descending."
  {:examples [["(sort-by-desc :size [{:size 1} {:size 3} {:size 2}])" "({:size 3} {:size 2} {:size 1})"]]
   :aliases [sort-desc-by sort-by-descending]}
  [f coll]
  (let [[f coll] (arranged* f coll)]
    (sort-by f descending coll)))

;; The first items in an order, for `top` and `bottom`: a number, a collection and perhaps a selector,
;; in whatever order; `:by` may stand before the selector.
(defn- ranked [function order args]
  (let [args (cond
               (< (count args) 4) args
               (some #(= :by %) args) (remove #(= :by %) args)
               :else (option* function :by (or (seq (drop-while #(not (keyword? %)) args)) args)))
        n (first (filter number? args))
        others (remove number? args)
        [f coll] (if (= 1 (count others)) [identity (first others)] (apply arranged* others))]
    (if (nil? n)
      (expected* "a number of items" (first args) "as in `(top 3 :size coll)`")
      (take n (sort-by f order (filter #(some? (f %)) coll))))))

(defn top
  "The `n` items with the greatest values of a selector, greatest first; items without a value are left out."
  {:arglists [[n coll] [n f coll] [coll n :by f]]
   :examples [["(top 2 [5 1 9])" "(9 5)"]
              ["(top 1 :size [{:size 1} {:size 3}])" "({:size 3})"]
              ["(top [{:size 1} {:size 3}] 1 :by :size)" "({:size 3})"]]
   :aliases [top-n top-by take-top]}
  ([a b] (ranked "top" descending [a b]))
  ([a b c] (ranked "top" descending [a b c]))
  ([a b c d] (ranked "top" descending [a b c d])))

(defn bottom
  "The `n` items with the least values of a selector, least first; items without a value are left out."
  {:arglists [[n coll] [n f coll] [coll n :by f]]
   :examples [["(bottom 2 [5 1 9])" "(1 5)"] ["(bottom 1 :size [{:size 4} {:size 3}])" "({:size 3})"]]
   :aliases [bottom-n bottom-by]}
  ([a b] (ranked "bottom" compare [a b]))
  ([a b c] (ranked "bottom" compare [a b c]))
  ([a b c d] (ranked "bottom" compare [a b c d])))

(defn- extreme [better? f coll]
  (second
    (reduce (fn [best item]
              (let [value (f item)]
                (if (and (some? value) (or (nil? best) (better? (compare value (first best)))))
                  [value item]
                  best)))
            nil
            coll)))

(defn- extreme-in-groups [better? group f coll]
  (let [[group f coll] (arranged* group f coll)]
    (update-vals (group-by group coll) #(extreme better? f %))))

(defn max-by
  "The item with the greatest value of a selector, the first if several tie; nil if there are none.
   With two selectors: a map from each value of the first to the greatest item of that group."
  {:arglists [[f coll] [group f coll]]
   :examples [["(max-by :size [{:size 1} {:size 3}])" "{:size 3}"]
              ["(max-by :thread :at [{:thread 1 :at \"08:00\"} {:thread 1 :at \"09:30\"}])"
               "{1 {:thread 1, :at \"09:30\"}}"]]
   :aliases [stats/max-by]}
  ([f coll] (let [[f coll] (arranged* f coll)] (extreme pos? f coll)))
  ([group f coll] (extreme-in-groups pos? group f coll)))

(defn min-by
  "The item with the least value of a selector, the first if several tie; nil if there are none.
   With two selectors: a map from each value of the first to the least item of that group."
  {:arglists [[f coll] [group f coll]]
   :examples [["(min-by :size [{:size 1} {:size 3}])" "{:size 1}"]]
   :aliases [stats/min-by]}
  ([f coll] (let [[f coll] (arranged* f coll)] (extreme neg? f coll)))
  ([group f coll] (extreme-in-groups neg? group f coll)))

(defn pluck
  "A selector's value of each item; with several selectors, a vector of values for each."
  {:arglists [[coll f] [coll & fs]]
   :examples [["(pluck [{:id 1} {:id 2}] :id)" "(1 2)"]
              ["(pluck [{:id 1 :from {:name \"Ann\"}}] :id [:from :name])" "([1 \"Ann\"])"]]}
  [& args]
  (let [args (apply arranged* args)
        fs (butlast args)]
    (if (= 1 (count fs))
      (map (first fs) (last args))
      (map (apply juxt fs) (last args)))))

(defn zip
  "Vectors of the first items of the collections, the second ones and so on, up to the shortest."
  {:examples [["(zip [1 2] [:a :b])" "([1 :a] [2 :b])"]]}
  [& colls]
  (if (empty? colls) () (apply map vector colls)))

(defn enumerate
  "Pairs of index and item, with indices from 0 or `start`."
  {:examples [["(enumerate [:a :b])" "([0 :a] [1 :b])"] ["(enumerate [:a] 1)" "([1 :a])"]]}
  ([coll] (map-indexed vector coll))
  ([coll start] (map-indexed (fn [at item] [(+ start at) item]) coll)))

(defn take-until
  "The items up to and including the first for which `pred` is true."
  {:examples [["(take-until even? [1 3 4 5])" "(1 3 4)"]]
   :aliases [take-upto]}
  [pred coll]
  (let [[pred coll] (arranged* pred coll)]
    (concat (take-while (complement pred) coll)
            (take 1 (drop-while (complement pred) coll)))))

(defn split-between
  "Splits a sequence wherever `(pred item next)` is true: log lines into sessions, numbers into runs."
  {:examples [["(split-between (fn [a b] (> (- b a) 10)) [1 2 30 31])" "([1 2] [30 31])"]]}
  [pred coll]
  (let [[pred coll] (arranged* pred coll)]
    (if (empty? coll)
      ()
      (loop [items (rest coll), run [(first coll)], runs []]
        (cond
          (empty? items) (seq (conj runs run))
          (pred (peek run) (first items)) (recur (rest items) [(first items)] (conj runs run))
          :else (recur (rest items) (conj run (first items)) runs))))))

(defn overlapping
  "Pairs of items whose times overlap, given selectors of start and end: calendar conflicts.
   Times are compared as they are, so all must have one zone and format; touching is no overlap."
  {:examples [["(overlapping :from :to [{:from 9 :to 10} {:from 10 :to 12} {:from 11 :to 13}])"
               "([{:from 10, :to 12} {:from 11, :to 13}])"]]
   :aliases [overlaps conflicts]}
  [start end coll]
  (let [[start end coll] (arranged* start end coll)]
    (loop [items (sort-by start (filter #(and (some? (start %)) (some? (end %))) coll))
           open []
           found []]
      (if (empty? items)
        (or (seq found) ())
        (let [item (first items)
              open (filterv #(pos? (compare (end %) (start item))) open)]
          (recur (rest items) (conj open item) (into found (map #(vector % item)) open)))))))

(defn in-naturals
  "The integers from 0, or `start`, upwards, as in Racket."
  {:examples [["(for/list ([x '(a b)] [i (in-naturals 1)]) (list i x))" "((1 a) (2 b))"]]
   :aliases [in-count]}
  ([] (range))
  ([start] (iterate inc start)))

(defn apply-template
  "The form with names replaced by values, as `do-template` does for each row."
  {:examples [["(apply-template '[x y] '(+ x y x) [1 2])" "(+ 1 2 1)"]]}
  [names form values]
  (walk/prewalk-replace (zipmap names values) form))

;;; Chunks: what functions written for Clojure's blocks of items ask for

(defn chunked-seq?
  "True for a sequence whose first items are realized: a non-empty list, or a range with an end."
  {:examples [["(chunked-seq? (seq [1 2]))" "true"] ["(chunked-seq? (iterate inc 0))" "false"]]}
  [x]
  (and (seq? x) (counted? x) (pos? (count x))))

(defn chunk-buffer
  "Collects the items of a chunk: `chunk-append` adds one, `chunk` makes a vector of all."
  {:examples [["(let [b (chunk-buffer 2)] (chunk-append b 1) (chunk b))" "[1]"]]}
  [capacity]
  (transient []))

(defn chunk-append
  "Adds an item to a `chunk-buffer`."
  {:examples [["(let [b (chunk-buffer 2)] (chunk-append b 1) (count b))" "1"]]}
  [buffer x]
  (conj! buffer x)
  nil)

(defn chunk
  "The items of a `chunk-buffer` as a vector. The buffer cannot be used after that."
  {:examples [["(let [b (chunk-buffer 2)] (chunk-append b 1) (chunk b))" "[1]"]]}
  [buffer]
  (persistent! buffer))

(defn chunk-cons
  "The items of a chunk, then the sequence `rest`, which is not realized."
  {:examples [["(chunk-cons [1 2] (map inc [2]))" "(1 2 3)"]]}
  [chunk rest]
  (if (zero? (count chunk)) rest (concat chunk rest)))

(defn chunk-first
  "The first items of a sequence, at most 32, as a vector."
  {:examples [["(count (chunk-first (range 100)))" "32"]]}
  [s]
  (vec (take 32 s)))

(defn chunk-rest
  "The items after those of `chunk-first`."
  {:examples [["(first (chunk-rest (range 100)))" "32"] ["(chunk-rest (range 5))" "()"]]}
  [s]
  (drop 32 s))

(defn chunk-next
  "The items after those of `chunk-first`; nil if there are none."
  {:examples [["(chunk-next (range 32))" "nil"]]}
  [s]
  (seq (drop 32 s)))

(defn object-array
  "A vector of values: as many as `x` says, each `nil` or `init`; or the items of a collection. Vectors take the place of arrays."
  {:arglists [[x] [size init]]
   :examples [["(object-array 2)" "[nil nil]"] ["(object-array [:a 1])" "[:a 1]"]]}
  ([x] (if (number? x) (vec (repeat x nil)) (vec x)))
  ([size init] (if (sequential? init) (vec (take size (concat init (repeat nil)))) (vec (repeat size init)))))

(defn boolean-array
  "A vector of booleans: as many as `x` says, each `false` or `init`; or the items of a collection. Vectors take the place of arrays."
  {:arglists [[x] [size init]]
   :examples [["(boolean-array 2)" "[false false]"] ["(boolean-array [true false])" "[true false]"]]}
  ([x] (if (number? x) (vec (repeat x false)) (vec x)))
  ([size init] (if (sequential? init) (vec (take size (concat init (repeat false)))) (vec (repeat size init)))))

(defn int-array
  "A vector of integers: as many as `x` says, each `0` or `init`; or the items of a collection. Vectors take the place of arrays."
  {:arglists [[x] [size init]]
   :examples [["(int-array 2)" "[0 0]"] ["(int-array [1 2])" "[1 2]"]]
   :aliases [long-array short-array byte-array]}
  ([x] (if (number? x) (vec (repeat x 0)) (vec x)))
  ([size init] (if (sequential? init) (vec (take size (concat init (repeat 0)))) (vec (repeat size init)))))

(defn double-array
  "A vector of doubles: as many as `x` says, each `0.0` or `init`; or the items of a collection. Vectors take the place of arrays."
  {:arglists [[x] [size init]]
   :examples [["(double-array 2)" "[0.0 0.0]"] ["(double-array [1 2.5])" "[1.0 2.5]"]]
   :aliases [float-array]}
  ([x] (if (number? x) (vec (repeat x 0.0)) (mapv double x)))
  ([size init] (mapv double (if (sequential? init) (take size (concat init (repeat 0.0))) (repeat size init)))))

(defn char-array
  "A vector of characters: those of a string or collection, or as many as `x` says, each `init` or the null character."
  {:arglists [[x] [size init]]
   :examples [["(char-array \"ab\")" "[\\a \\b]"] ["(char-array 2 \\-)" "[\\- \\-]"]]}
  ([x] (if (number? x) (char-array x (char 0)) (vec x)))
  ([size init] (if (char? init) (vec (repeat size init)) (vec (take size (concat init (repeat (char 0))))))))

(defn cast
  "The value if it is of the type, else an error."
  {:examples [["(cast Number 5)" "5"] ["(try (cast String 5) (catch ClassCastException e :no))" ":no"]]}
  [type x]
  (if (or (nil? x) (instance? type x))
    x
    (throw (ClassCastException. (str "cannot cast " (pr-str x) " to " type)))))
