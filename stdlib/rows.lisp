;;; Rows: joins, summaries, tables

;; How two collections of rows are joined: one key, two keys or a map of one to the other, perhaps
;; behind :on; and what follows.
(defn- join-keys [how]
  (let [how (if (= :on (first how)) (rest how) how)
        [a b] how]
    (cond
      (empty? how) (expected* "the key that the rows share" nil "as in `(left-join orders customers :customer-id :id)`")
      (map? a) (let [[left right] (first a)] [left right (rest how)])
      (or (nil? b) (= :as b)) [a a (remove nil? (rest how))]
      :else [a b (drop 2 how)])))

(defn- matches [function left right how unmatched]
  (let [[left-key right-key more] (join-keys how)
        as (option* function :as more)
        left-key (selector* left-key)
        index (group-by (selector* right-key) right)]
    (mapcat (fn [row]
              (let [k (left-key row)
                    found (if (nil? k) nil (get index k))]
                (cond
                  (nil? found) (unmatched row as)
                  (nil? as) (map #(merge row % row) found)
                  :else (map #(assoc row as %) found))))
            left)))

(defn left-join
  "Each row of `left` merged with the row of `right` that has the same key; unmatched rows stay unchanged.
   The key is a selector for both, or one for each side. Several matching rows of `right` give several rows.
   On conflict the value of `left` wins; `:as name` puts the whole row of `right`, or nil, under `name` instead."
  {:arglists [[left right key] [left right left-key right-key] [left right left-key right-key :as name]]
   :examples [["(left-join [{:order 1 :customer 7} {:order 2 :customer 8}] [{:id 7 :name \"Ann\"}] :customer :id)"
               "({:order 1, :customer 7, :id 7, :name \"Ann\"} {:order 2, :customer 8})"]
              ["(left-join [{:id 1}] [{:id 1 :x 2}] :id :as :other)" "({:id 1, :other {:id 1, :x 2}})"]]}
  [left right & how]
  (matches "left-join" left right how (fn [row as] [(if (nil? as) row (assoc row as nil))])))

(defn inner-join
  "Like `left-join`, without the rows of `left` that have no match in `right`."
  {:arglists [[left right key] [left right left-key right-key] [left right left-key right-key :as name]]
   :examples [["(inner-join [{:id 1 :a 1} {:id 2 :a 2}] [{:id 1 :b 3}] :id)" "({:id 1, :a 1, :b 3})"]]
   :aliases [join-on join-by]}
  [left right & how]
  (matches "inner-join" left right how (fn [_ _] nil)))

(defn anti-join
  "The rows of `left` that have no row with an equal key in `right`."
  {:arglists [[left right key] [left right left-key right-key]]
   :examples [["(anti-join [{:id 1} {:id 2}] [{:id 1}] :id)" "({:id 2})"]]}
  [left right & how]
  (let [[left-key right-key more] (join-keys how)
        _ (if (seq more) (expected* "a key for each side" more "`anti-join` takes no further options"))
        left-key (selector* left-key)
        known (set (map (selector* right-key) right))]
    (remove #(contains? known (left-key %)) left)))

(defn diff-by
  "Changes from one collection of rows to another, by a key: `:added`, `:removed`, and `:changed` as `[old new]`."
  {:examples [["(diff-by :id [{:id 1 :v 1} {:id 2}] [{:id 1 :v 2} {:id 3}])"
               "{:added [{:id 3}], :removed [{:id 2}], :changed [[{:id 1, :v 1} {:id 1, :v 2}]]}"]]}
  [key before after]
  (let [k (selector* key)
        old (index-by k before)
        new (index-by k after)]
    {:added (filterv #(not (contains? old (k %))) after)
     :removed (filterv #(not (contains? new (k %))) before)
     :changed (vec (keep #(let [is (get new (k %) %)] (if (= is %) nil [% is])) (vals old)))}))

;; One number of many: what takes numbers one by one is applied to all of them.
(defn- aggregate [f values]
  (cond
    (not (contains? #{+ * +' *' min max} f)) (f values)
    (empty? values) (if (contains? #{+ +'} f) 0 nil)
    :else (reduce f values)))

(defn- aggregate-of [spec rows]
  (cond
    (fn? spec) (spec rows)
    (and (vector? spec) (= 2 (count spec)))
    (let [[a b] spec
          [from f] (if (and (fn? a) (not (fn? b))) [b a] [a b])]
      (if (fn? f)
        (aggregate f (map (selector* from) rows))
        (expected* "a function in `[:size sum]`" f "as in `{:count count :total [:size sum]}`")))
    :else (expected* "a function of the rows, or a selector and a function" spec
                     "as in `{:count count :total [:size sum]}`")))

(defn- aggregates [specs rows]
  (reduce-kv (fn [out as spec] (assoc out as (aggregate-of spec rows))) {} specs))

;; `:count count :total [:size sum]`, or the same as a map, as one map.
(defn- named-pairs [args]
  (loop [args (seq args), out {}]
    (cond
      (empty? args) out
      (map? (first args)) (recur (rest args) (merge out (first args)))
      (= 1 (count args)) (expected* "a name and what it is" (first args) "as in `(summarize rows :by :sender :count count)`")
      :else (recur (drop 2 args) (assoc out (first args) (second args))))))

;; The columns that rows are grouped by: a map from name to function.
(defn- group-columns [by]
  (cond
    (map? by) (map-vals selector* by)
    (vector? by) (into {} (map (fn [k] [(if (vector? k) (peek k) (if (fn? k) :key k)) (selector* k)])) by)
    (fn? by) {:key by}
    :else {by (selector* by)}))

(defn summarize
  "Groups and aggregates rows: one row for each group, with its key and the results of functions.
   `:by` is a key, a vector of keys, or a map from names to selectors; without it, one map for all rows.
   A function such as `count` is called with the rows of a group, `[:size sum]` with their selected values."
  {:arglists [[coll :by key & names-and-functions] [coll :by key {name function}]]
   :examples [["(summarize [{:from \"a\" :size 2} {:from \"b\" :size 1} {:from \"a\" :size 3}] :by :from :count count :total [:size sum])"
               "[{:from \"a\", :count 2, :total 5} {:from \"b\", :count 1, :total 1}]"]
              ["(summarize [{:size 2} {:size 4}] {:n count :mean [:size mean] :most [:size max]})" "{:n 2, :mean 3, :most 4}"]
              ["(->> [{:at \"2025-06-01\"} {:at \"2025-06-01\"}] (summarize :by {:day #(subs (:at %) 0 10)}))"
               "[{:day \"2025-06-01\", :count 2}]"]]
   :aliases [summarise aggregate-by]}
  [& args]
  (let [last? (or (keyword? (first args)) (and (map? (first args)) (next args)))
        rows (if last? (last args) (first args))
        specs (named-pairs (if last? (butlast args) (rest args)))
        by (:by specs)
        specs (dissoc specs :by)
        specs (if (empty? specs) {:count count} specs)]
    (if (nil? by)
      (aggregates specs rows)
      (let [columns (group-columns by)
            fs (vals columns)]
        (mapv (fn [[values rows]] (merge (zipmap (keys columns) values) (aggregates specs rows)))
              (group-by (fn [row] (mapv #(% row) fs)) rows))))))

(defn- title [column]
  (cond
    (vector? column) (title (peek column))
    (keyword? column) (subs (str column) 1)
    :else (str column)))

;; Text between two bars of a table.
(defn- cell [value]
  (let [text (cond
               (nil? value) ""
               (keyword? value) (subs (str value) 1)
               (coll? value) (pr-str value)
               :else (str value))]
    (if (re-find #"[|\r\n]" text)
      (-> text (str/replace "|" "\\|") (str/replace #"\r\n|\n|\r" "<br>"))
      text)))

(defn- line [cells] (str "| " (str/join " | " cells) " |"))

(defn- as-rows [rows]
  (cond
    (map? rows) (map (fn [[k v]] {:key k :value v}) rows)
    (every? map? rows) rows
    (every? sequential? rows) (map #(zipmap (first rows) %) (rest rows))
    :else (map (fn [x] {:value x}) rows)))

;; Columns as a map from title to selector.
(defn- columns-of [wanted rows]
  (cond
    (empty? wanted) (let [found (vec (distinct (mapcat keys rows)))]
                      ;; Wider ones are read by nobody, and cost their width for every row.
                      (if (> (count found) 200)
                        (expected* "rows with 200 different keys at most" (count found)
                                   "choose the columns, `(table rows [:id :name])`, or bring the rows to one shape")
                        (into {} (map (fn [k] [(title k) #(get % k)])) found)))
    (map? (first wanted)) (map-keys title (map-vals selector* (first wanted)))
    :else (into {} (map (fn [column] [(title column) (selector* column)])) wanted)))

(defn table
  "A Markdown table of a sequence of maps, with the given columns, or all in order of first appearance.
   A map `{\"Sender\" [:from :name]}` sets column titles. Numbers are right-aligned.
   A map becomes a table of keys and values; in a sequence of sequences the first is the header."
  {:arglists [[rows] [rows columns] [rows & columns]]
   :examples [["(println (table [{:id 1 :name \"Ann\"} {:id 2 :name \"Bo\"}]))" "nil"]
              ["(str/split-lines (table [{:id 1 :name \"a|b\"}] [:name :id]))"
               "[\"| name | id |\" \"| --- | ---: |\" \"| a\\\\|b | 1 |\"]"]]
   :aliases [markdown-table md-table]}
  [& args]
  (let [[a b] args
        column? #(or (keyword? %) (string? %))
        last? (and (next args)
                   (or (column? a) (and (vector? a) (column? (first a))) (and (map? a) (not (column? b)) (not (vector? b)))
                       (and (map? a) (vector? b) (or (empty? b) (not (column? (first b)))))))
        rows (as-rows (if last? (last args) a))
        wanted (if last? (butlast args) (rest args))
        wanted (if (and (= 1 (count wanted)) (sequential? (first wanted))) (first wanted) wanted)
        columns (columns-of wanted rows)
        cells (map (fn [row] (map #(% row) (vals columns))) rows)
        numeric? (fn [at]
                   (let [values (remove nil? (map #(nth % at) cells))]
                     (and (seq values) (every? number? values))))]
    (if (empty? columns)
      ""
      (str/join "\n"
                (concat [(line (map cell (keys columns)))
                         (line (map #(if (numeric? %) "---:" "---") (range (count columns))))]
                        (map #(line (map cell %)) cells))))))

(defn pprint/print-table
  "Prints rows as a table with the columns `keys`, or those of the first row."
  {:examples [["(with-out-str (pprint/print-table [{:a 1 :b 22}]))" "\"\\n| :a | :b |\\n|----+----|\\n|  1 | 22 |\\n\""]]
   :aliases [print-table clojure.pprint/print-table]}
  ([rows] (pprint/print-table (keys (first rows)) rows))
  ([keys rows]
   (when (seq rows)
     (let [widths (map (fn [k] (apply max (count (str k)) (map (fn [row] (count (str (get row k)))) rows))) keys)
           cells (fn [row] (map (fn [k width]
                                  (let [text (str (get row k))]
                                    (str (str/join (repeat (- width (count text)) " ")) text)))
                                keys widths))
           line (fn [row] (str "| " (str/join " | " (cells row)) " |"))]
       (println)
       (println (line (zipmap keys keys)))
       (println (str "|-" (str/join "-+-" (map (fn [width] (str/join (repeat width "-"))) widths)) "-|"))
       (doseq [row rows] (println (line row)))))))
