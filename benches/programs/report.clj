; A report on mails, as an agent would write it: a hundred lines of definitions.

(def limits {:large 1500.0 :huge 2400.0 :shown 5})

(def words
  {:large "large" :huge "huge" :usual "usual"})

(defn email [mail]
  (get-in mail [:sender :email]))

(defn domain [address]
  (second (str/split address #"@")))

(defn number-of [mail]
  (when-let [digits (re-find #"\d+" (:subject mail))]
    (parse-long digits)))

(defn kind [{:keys [size]}]
  (cond
    (> size (:huge limits)) :huge
    (> size (:large limits)) :large
    :else :usual))

(defn average [numbers]
  (if (empty? numbers)
    0
    (/ (reduce + numbers) (count numbers))))

(defn rounded [x]
  (/ (Math/round (* 100.0 x)) 100.0))

(defn sizes [mails]
  (let [all (map :size mails)]
    {:count (count all)
     :smallest (apply min all)
     :largest (apply max all)
     :average (rounded (average all))}))

(defn unread-first [a b]
  (compare [(not (:unread a)) (- (:size a)) (:id a)]
           [(not (:unread b)) (- (:size b)) (:id b)]))

(defn senders [mails]
  (->> mails
       (group-by email)
       (map (fn [[sender theirs]]
              {:sender sender
               :mails (count theirs)
               :unread (count (filter :unread theirs))
               :total (reduce + (map :size theirs))}))
       (sort-by (juxt (comp - :mails) :sender))))

(defn busiest [mails]
  (->> (senders mails)
       (take (:shown limits))
       (mapv #(select-keys % [:sender :mails :unread]))))

(defn invoices [mails]
  (reduce (fn [found mail]
            (if-let [number (number-of mail)]
              (update found number (fnil conj []) (:id mail))
              found))
          {}
          mails))

(defn repeated [mails]
  (->> (invoices mails)
       (filter (fn [[_ ids]] (> (count ids) 19)))
       (map first)
       sort
       (take (:shown limits))))

(defn line [{:keys [id subject size] {:keys [name]} :sender :as mail}]
  (str (format "%05d" id) " "
       name ": "
       (str/upper-case subject)
       (when (:unread mail) " (unread)")
       ", " (words (kind mail))
       ", " (rounded size)))

(defn shortened [text length]
  (if (> (count text) length)
    (str (subs text 0 (- length 1)) "…")
    text))

(defn first-lines [mails]
  (->> mails
       (filter #(= :huge (kind %)))
       (sort unread-first)
       (take (:shown limits))
       (mapv (comp #(shortened % 60) line))))

(defn by-kind [mails]
  (into {} (for [[kind theirs] (group-by kind mails)]
             [kind (sizes theirs)])))

(defn report [mails]
  {:domains (frequencies (map (comp domain email) mails))
   :kinds (by-kind mails)
   :busiest (busiest mails)
   :repeated (vec (repeated mails))
   :lines (first-lines mails)
   :unread (count (filter :unread mails))
   :all (sizes mails)})
