;;; Maps, one or many
;;
;; Where an argument is called a selector, it is a function, a key, or a path of keys such as
;; [:from :name]. A collection may come before or behind what is done with it.

(defn map-vals
  "Applies `f` to each value of a map."
  {:examples [["(map-vals inc {:a 1 :b 2})" "{:a 2, :b 3}"]
              ["(map-vals {:a [1 2]} count)" "{:a 2}"]]
   :aliases [map-values]}
  [f m]
  (let [[f m] (arranged* f m)]
    (update-vals (or m {}) f)))

(defn map-keys
  "Applies `f` to each key of a map."
  {:examples [["(map-keys name {:a 1})" "{\"a\" 1}"]]}
  [f m]
  (let [[f m] (arranged* f m)]
    (update-keys (or m {}) f)))

(defn- keep-entries [keep? m]
  (reduce-kv (fn [out k v] (if (keep? k v) out (dissoc out k))) (or m {}) m))

(defn filter-vals
  "The map entries whose value satisfies `pred`."
  {:examples [["(filter-vals pos? {:a 1 :b -1})" "{:a 1}"]]}
  [pred m]
  (let [[pred m] (arranged* pred m)]
    (keep-entries (fn [_ v] (pred v)) m)))

(defn filter-keys
  "The map entries whose key satisfies `pred`."
  {:examples [["(filter-keys #{:a :c} {:a 1 :b 2})" "{:a 1}"]]}
  [pred m]
  (let [[pred m] (arranged* pred m)]
    (keep-entries (fn [k _] (pred k)) m)))

(defn remove-vals
  "The map entries whose value does not satisfy `pred`."
  {:examples [["(remove-vals empty? {:to [] :cc [\"bo\"]})" "{:cc [\"bo\"]}"]]}
  [pred m]
  (let [[pred m] (arranged* pred m)]
    (keep-entries (fn [_ v] (not (pred v))) m)))

(defn remove-keys
  "The map entries whose key does not satisfy `pred`."
  {:examples [["(remove-keys #{:body} {:id 1 :body \"…\"})" "{:id 1}"]]}
  [pred m]
  (let [[pred m] (arranged* pred m)]
    (keep-entries (fn [k _] (not (pred k))) m)))

(defn deep-merge
  "Merges nested maps recursively; of other values the last one wins."
  {:examples [["(deep-merge {:a {:x 1 :y 1}} {:a {:y 2}} {:b 3})" "{:a {:x 1, :y 2}, :b 3}"]]
   :aliases [merge-deep]}
  [& maps]
  (apply merge-with
         (fn merged [a b] (if (and (map? a) (map? b)) (merge-with merged a b) b))
         maps))

;; Does to a map, or to each map of a sequence, what `f` does.
(defn- to-each [f rows]
  (cond
    (nil? rows) nil
    (map? rows) (f rows)
    :else (map f rows)))

(defn- picked [m wanted]
  (reduce
    (fn [out key]
      (cond
        (map? key) (reduce-kv (fn [out as from] (assoc out as ((selector* from) m))) out key)
        (vector? key) (let [inner (get-in m (pop key))]
                        (if (and (coll? inner) (contains? inner (peek key)))
                          (assoc-in out key (get inner (peek key)))
                          out))
        (contains? m key) (assoc out key (get m key))
        :else out))
    {}
    wanted))

(defn pick
  "Selects keys of a map, or of each map of a sequence.
   A path `[:from :email]` keeps its value nested; a map `{:sender [:from :email]}` gives a key, path or function
   a new name. Missing keys are left out, or nil under a new name."
  {:arglists [[m & keys] [coll & keys]]
   :examples [["(pick {:id 1 :from {:name \"Ann\" :email \"a@x.com\"} :body \"…\"} :id [:from :email])"
               "{:id 1, :from {:email \"a@x.com\"}}"]
              ["(pick [{:id 1 :from {:name \"Ann\"}} {:id 2}] :id {:sender [:from :name]})"
               "({:id 1, :sender \"Ann\"} {:id 2, :sender nil})"]
              ["(->> [{:id 1 :size 5}] (pick :size))" "({:size 5})"]]
   :aliases [select pick-keys]}
  [& args]
  (let [args (if (and (map? (first args)) (map? (last args)))
               (concat (rest args) [(first args)])
               (apply in-order* args))]
    (to-each #(picked % (butlast args)) (last args))))

(defn omit
  "Removes keys from a map, or from each map of a sequence."
  {:arglists [[m & keys] [coll & keys]]
   :examples [["(omit {:id 1 :body \"…\"} :body)" "{:id 1}"]
              ["(omit [{:id 1 :body \"…\"}] :body :html)" "({:id 1})"]]
   :aliases [dissoc-keys without-keys]}
  [& args]
  (let [args (apply in-order* args)]
    (to-each #(apply dissoc % (butlast args)) (last args))))

(defn rename
  "Renames keys of a map, or of each map of a sequence, from the keys of `names` to its values."
  {:arglists [[m names] [coll names]]
   :examples [["(rename {:id 1} {:id :key})" "{:key 1}"]
              ["(rename [{:id 1} {:id 2}] {:id :key})" "({:key 1} {:key 2})"]]}
  [m names]
  (if (map? names)
    (to-each #(set/rename-keys % names) m)
    (to-each #(set/rename-keys % m) names)))

(defn dissoc-nil
  "Removes keys with nil values from a map, or from each map of a sequence."
  {:arglists [[m] [coll]]
   :examples [["(dissoc-nil {:a 1 :b nil})" "{:a 1}"] ["(dissoc-nil [{:a nil} {:a false}])" "({} {:a false})"]]
   :aliases [remove-nils remove-nil-vals compact-map]}
  [m]
  (to-each (fn [m] (keep-entries (fn [_ v] (some? v)) m)) m))

(defn Object/fromEntries
  "A map from key-value pairs, as in JavaScript."
  {:examples [["(Object/fromEntries [[:a 1] [:b 2]])" "{:a 1, :b 2}"]]
   :aliases [js/Object.fromEntries]}
  [entries]
  (into {} entries))

(defn data/diff
  "Compares: the parts only in `a`, only in `b`, and in both; maps and sequences item by item, sets by member."
  {:examples [["(data/diff {:a 1 :b 2} {:a 1 :b 3})" "({:b 2} {:b 3} {:a 1})"]
              ["(data/diff [1 2 3] [1 5])" "[[nil 2 3] [nil 5] [1]]"]
              ["(data/diff #{1 2} #{2 3})" "[#{1} #{3} #{2}]"]]}
  [a b]
  (let [at-key (fn [a b k]
                 (let [x (get a k), y (get b k)
                       in-a (contains? a k), in-b (contains? b k)
                       [only-x only-y shared] (data/diff x y)
                       same (and in-a in-b (or (some? shared) (and (nil? x) (nil? y))))]
                   (list (when (and in-a (or (some? only-x) (not same))) {k only-x})
                         (when (and in-b (or (some? only-y) (not same))) {k only-y})
                         (when same {k shared}))))
        by-keys (fn [a b ks]
                  (reduce (fn [found k] (map merge found (at-key a b k))) (list nil nil nil) ks))
        in-places (fn [m]
                    (when (seq m)
                      (reduce (fn [out [k v]] (assoc out k v)) (vec (repeat (apply max (keys m)) nil)) m)))]
    (cond
      (= a b) [nil nil a]
      (and (map? a) (map? b)) (by-keys a b (distinct (concat (keys a) (keys b))))
      (and (set? a) (set? b)) [(not-empty (set/difference a b))
                               (not-empty (set/difference b a))
                               (not-empty (set/intersection a b))]
      (and (sequential? a) (sequential? b)) (mapv in-places
                                                  (by-keys (vec a) (vec b) (range (max (count a) (count b)))))
      :else [a b nil])))

;;; Hashes of collections

(defn hash-ordered-coll
  "The hash of an ordered collection: that of a vector or list of its items."
  {:examples [["(= (hash-ordered-coll [1 2]) (hash '(1 2)))" "true"]]}
  [coll]
  (if (coll? coll)
    (hash (vec coll))
    (expected* "a collection" coll "`(hash x)` is the hash of anything")))

(defn hash-unordered-coll
  "The hash of an unordered collection: that of a map, or of a set of its items."
  {:examples [["(= (hash-unordered-coll #{1 2}) (hash #{2 1}))" "true"]]}
  [coll]
  (cond
    (map? coll) (hash coll)
    (coll? coll) (hash (set coll))
    :else (expected* "a collection" coll "`(hash x)` is the hash of anything")))

(defn mix-collection-hash
  "A collection hash from the combined hash of its items and their count."
  {:examples [["(= (mix-collection-hash 7 2) (mix-collection-hash 7 2))" "true"]]}
  [basis length]
  (hash [basis length]))
