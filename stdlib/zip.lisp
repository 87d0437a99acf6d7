;;; Walking about in a tree and changing it on the way
;;
;; A place in a tree is a vector of the node there and of the way to it; what the tree is made of stands
;; in its metadata. Changes are seen where `zip/up` or `zip/root` puts the tree together again.

(defn- zip/at [loc node path]
  (with-meta [node path] (meta loc)))

(defn zip/zipper
  "The root location of a tree whose nodes are taken apart and built by three functions."
  {:examples [["(zip/node (zip/down (zip/zipper map? :kids (fn [n kids] (assoc n :kids kids)) {:kids [{:id 1}]})))" "{:id 1}"]]}
  [branch? children make-node root]
  (with-meta [root nil] {:zip/branch? branch?, :zip/children children, :zip/make-node make-node}))

(defn zip/seq-zip
  "The root location of nested sequences."
  {:examples [["(-> (zip/seq-zip '(1 (2 3))) zip/down zip/right zip/node)" "(2 3)"]]}
  [root]
  (zip/zipper seq? identity (fn [node children] (with-meta (or (seq children) (list)) (meta node))) root))

(defn zip/vector-zip
  "The root location of nested vectors."
  {:examples [["(-> (zip/vector-zip [1 [2 3]]) zip/down (zip/replace 10) zip/root)" "[10 [2 3]]"]]}
  [root]
  (zip/zipper vector? seq (fn [node children] (with-meta (vec children) (meta node))) root))

(defn zip/xml-zip
  "The root location of elements such as `{:tag :p :content [\"text\"]}`."
  {:examples [["(-> (zip/xml-zip {:tag :p :content [\"a\"]}) zip/down zip/node)" "\"a\""]]}
  [root]
  (zip/zipper (complement string?)
              (fn [element] (seq (:content element)))
              (fn [element children] (assoc element :content (when children (apply vector children))))
              root))

(defn zip/node
  "The node at a location."
  {:examples [["(zip/node (zip/vector-zip [1 2]))" "[1 2]"]]}
  [loc]
  (nth loc 0))

(defn zip/branch?
  "True if the node at a location may have children."
  {:examples [["(map zip/branch? [(zip/vector-zip [1]) (zip/down (zip/vector-zip [1]))])" "(true false)"]]}
  [loc]
  ((:zip/branch? (meta loc)) (zip/node loc)))

(defn zip/children
  "The children of the node at a location; an error if it is not a branch."
  {:examples [["(zip/children (zip/vector-zip [1 2]))" "(1 2)"]]}
  [loc]
  (if (zip/branch? loc)
    ((:zip/children (meta loc)) (zip/node loc))
    (throw (ex-info "called children on a leaf node" {}))))

(defn zip/make-node
  "A copy of a node with other children."
  {:examples [["(zip/make-node (zip/vector-zip []) [1] [2 3])" "[2 3]"]]}
  [loc node children]
  ((:zip/make-node (meta loc)) node children))

(defn zip/path
  "The ancestors of a location, from the root on; nil at the root."
  {:examples [["(zip/path (zip/down (zip/vector-zip [1 2])))" "[[1 2]]"]]}
  [loc]
  (:pnodes (nth loc 1)))

(defn zip/lefts
  "The siblings before a location."
  {:examples [["(-> (zip/vector-zip [1 2 3]) zip/down zip/right zip/lefts)" "(1)"]]}
  [loc]
  (seq (:l (nth loc 1))))

(defn zip/rights
  "The siblings after a location."
  {:examples [["(-> (zip/vector-zip [1 2 3]) zip/down zip/rights)" "(2 3)"]]}
  [loc]
  (:r (nth loc 1)))

(defn zip/down
  "The location of the first child; nil if there is none."
  {:examples [["(zip/node (zip/down (zip/vector-zip [1 2])))" "1"]]}
  [loc]
  (when (zip/branch? loc)
    (let [[node path] loc
          [first-child & more :as children] (zip/children loc)]
      (when children
        (zip/at loc first-child {:l [], :pnodes (if path (conj (:pnodes path) node) [node]), :ppath path, :r more})))))

(defn zip/up
  "The location of the parent, rebuilt if something below has changed; nil at the root."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down (zip/edit inc) zip/up zip/node)" "[2 2]"]]}
  [loc]
  (let [[node {:keys [l ppath pnodes r changed?]}] loc]
    (when pnodes
      (let [parent (peek pnodes)]
        (if changed?
          (zip/at loc
                  (zip/make-node loc parent (concat l (cons node r)))
                  (when ppath (assoc ppath :changed? true)))
          (zip/at loc parent ppath))))))

(defn zip/root
  "The whole tree with all changes."
  {:examples [["(-> (zip/vector-zip [1 [2]]) zip/down zip/right zip/down (zip/edit inc) zip/root)" "[1 [3]]"]]}
  [loc]
  (if (= :end (nth loc 1))
    (zip/node loc)
    (let [above (zip/up loc)]
      (if above (recur above) (zip/node loc)))))

(defn zip/right
  "The location of the next sibling; nil if there is none."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down zip/right zip/node)" "2"]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (when (and path (seq r))
      (zip/at loc (first r) (assoc path :l (conj l node) :r (next r))))))

(defn zip/rightmost
  "The location of the last sibling, or itself."
  {:examples [["(-> (zip/vector-zip [1 2 3]) zip/down zip/rightmost zip/node)" "3"]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (if (and path (seq r))
      (zip/at loc (last r) (assoc path :l (apply conj l node (butlast r)) :r nil))
      loc)))

(defn zip/left
  "The location of the previous sibling; nil if there is none."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down zip/right zip/left zip/node)" "1"]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (when (and path (seq l))
      (zip/at loc (peek l) (assoc path :l (pop l) :r (cons node r))))))

(defn zip/leftmost
  "The location of the first sibling, or itself."
  {:examples [["(-> (zip/vector-zip [1 2 3]) zip/down zip/rightmost zip/leftmost zip/node)" "1"]]}
  [loc]
  (let [[node {:keys [l r] :as path}] loc]
    (if (and path (seq l))
      (zip/at loc (first l) (assoc path :l [] :r (concat (rest l) [node] r)))
      loc)))

(defn zip/insert-left
  "The location with a sibling inserted before it; an error at the root."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down (zip/insert-left 0) zip/root)" "[0 1 2]"]]}
  [loc item]
  (let [[node {:keys [l] :as path}] loc]
    (if (nil? path)
      (throw (ex-info "Insert at top" {}))
      (zip/at loc node (assoc path :l (conj l item) :changed? true)))))

(defn zip/insert-right
  "The location with a sibling inserted after it; an error at the root."
  {:examples [["(-> (zip/vector-zip [1 3]) zip/down (zip/insert-right 2) zip/root)" "[1 2 3]"]]}
  [loc item]
  (let [[node {:keys [r] :as path}] loc]
    (if (nil? path)
      (throw (ex-info "Insert at top" {}))
      (zip/at loc node (assoc path :r (cons item r) :changed? true)))))

(defn zip/replace
  "The location with another node."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down (zip/replace :a) zip/root)" "[:a 2]"]]}
  [loc node]
  (let [[_ path] loc]
    (zip/at loc node (assoc path :changed? true))))

(defn zip/edit
  "The location with its node replaced by `(f node & args)`."
  {:examples [["(-> (zip/vector-zip [1 2]) zip/down (zip/edit + 10) zip/root)" "[11 2]"]]}
  [loc f & args]
  (zip/replace loc (apply f (zip/node loc) args)))

(defn zip/insert-child
  "The location with a first child added to its node."
  {:examples [["(zip/root (zip/insert-child (zip/vector-zip [1]) 0))" "[0 1]"]]}
  [loc item]
  (zip/replace loc (zip/make-node loc (zip/node loc) (cons item (zip/children loc)))))

(defn zip/append-child
  "The location with a last child added to its node."
  {:examples [["(zip/root (zip/append-child (zip/vector-zip [1]) 2))" "[1 2]"]]}
  [loc item]
  (zip/replace loc (zip/make-node loc (zip/node loc) (concat (zip/children loc) [item]))))

(defn zip/next
  "The next location, depth first; after the last one, a location for which `zip/end?` is true."
  {:examples [["(->> (zip/vector-zip [1 [2]]) (iterate zip/next) (take-while (complement zip/end?)) (map zip/node))" "([1 [2]] 1 [2] 2)"]]}
  [loc]
  (if (= :end (nth loc 1))
    loc
    (or (and (zip/branch? loc) (zip/down loc))
        (zip/right loc)
        (loop [above loc]
          (if (zip/up above)
            (or (zip/right (zip/up above)) (recur (zip/up above)))
            [(zip/node above) :end])))))

(defn zip/prev
  "The previous location in the order of `zip/next`; nil at the root."
  {:examples [["(-> (zip/vector-zip [[1 2] 3]) zip/down zip/right zip/prev zip/node)" "2"]]}
  [loc]
  (if-let [before (zip/left loc)]
    (loop [at before]
      (if-let [child (and (zip/branch? at) (zip/down at))]
        (recur (zip/rightmost child))
        at))
    (zip/up loc)))

(defn zip/end?
  "True after the last location of a walk with `zip/next`."
  {:examples [["(zip/end? (zip/vector-zip []))" "false"]]}
  [loc]
  (= :end (nth loc 1)))

(defn zip/remove
  "Removes the node and returns the previous location; an error at the root."
  {:examples [["(-> (zip/vector-zip [1 2 3]) zip/down zip/right zip/remove zip/root)" "[1 3]"]]}
  [loc]
  (let [[_ {:keys [l ppath pnodes r] :as path}] loc]
    (cond
      (nil? path) (throw (ex-info "Remove at top" {}))
      (seq l) (loop [at (zip/at loc (peek l) (assoc path :l (pop l) :changed? true))]
                (if-let [child (and (zip/branch? at) (zip/down at))]
                  (recur (zip/rightmost child))
                  at))
      :else (zip/at loc
                    (zip/make-node loc (peek pnodes) r)
                    (when ppath (assoc ppath :changed? true))))))
