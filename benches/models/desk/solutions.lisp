;; A program for each task of the support desk, which shows that the tools give the expected answers. The definitions
;; before the first task belong to all programs. The value of a program is the answer.

(def customers
  (->> [0 40 80]
       (map #(desk/list_customers {:limit 40 :offset %}))
       (mapcat (fn [{:keys [columns rows]}] (map #(zipmap (map keyword columns) %) rows)))
       (map #(assoc % :id (str (:id %))
                      :tier (str/lower-case (:tier %))
                      :seats (parse-long (str/replace (str (:seats %)) "," ""))
                      :ends (time/parse (:contract_end %) "dd/MM/yyyy")))))
(def customer-of (into {} (map (juxt :id identity) customers)))
(def agents (csv/parse (desk/list_agents) :separator ";"))
(def agent-of (into {} (map (juxt #(parse-long (:id %)) identity) agents)))
(def tickets
  (->> (range 1 9)
       (mapcat #(:tickets (desk/list_tickets {:page %})))
       (map #(assoc % :customer (customer-of (:customerId %))
                      :day (subs (:createdAt %) 0 10)
                      :tags (if (= "" (:tags %)) [] (str/split (:tags %) #", "))
                      :rating (some-> (:satisfaction %) parse-long)))))
(def open-ones (filter #(= "open" (:status %)) tickets))
(defn all-comments [key]
  (loop [found [] cursor nil]
    (let [page (desk/list_comments (if cursor {:ticket_key key :cursor cursor} {:ticket_key key}))
          found (into found (:items page))]
      (if (:next_cursor page) (recur found (:next_cursor page)) found))))
(defn all-texts [key]
  (let [ticket (desk/get_ticket {:key key})]
    (str/join "\n" (list* (:subject ticket) (:body ticket) (map :body (all-comments key))))))
(defn mean [xs] (/ (reduce + xs) (double (count xs))))
(defn listed [xs] (str/join ", " xs))
(defn best [counts] (key (apply max-key val counts)))
(defn moment [s] (time/parse s "dd MMM yyyy HH:mm 'UTC'"))

;; task: subject
(:subject (desk/get_ticket {:key "SUP-1042"}))

;; task: who-has-it
(:name (agent-of (:assignee_id (desk/get_ticket {:key "SUP-1108"}))))

;; task: open-count
(count open-ones)

;; task: open-by-priority
(listed (for [[priority n] (frequencies (map :priority open-ones))] (str priority ": " n)))

;; task: created-in-october
(count (filter #(str/starts-with? (:day %) "2026-10") tickets))

;; task: busiest-day
(best (frequencies (filter #(str/starts-with? % "2026-10") (map :day tickets))))

;; task: median-first-response
(->> tickets (filter #(= "P2" (:priority %))) (map :firstResponseMinutes) (filter number?) stats/median)

;; task: tags-of-november
(let [counts (frequencies (mapcat :tags (filter #(>= (compare (:day %) "2026-11-01") 0) tickets)))]
  (listed (for [tag ["vip" "docs" "regression"]] (str tag ": " (counts tag)))))

;; task: old-unassigned
(->> open-ones
     (remove :assignee)
     (filter #(neg? (compare (:createdAt %) "2026-10-21T12:00:00Z")))
     (map :key) listed)

;; task: internal-comments
(count (filter #(= 1 (:internal %)) (all-comments "SUP-1207")))

;; task: top-customers
(->> tickets (map #(:name (:customer %))) frequencies (sort-by (comp - val)) (take 3) (map key) listed)

;; task: gold-urgent
(->> open-ones
     (filter #(and (= "P1" (:priority %)) (= "gold" (:tier (:customer %)))))
     (map :key) listed)

;; task: silver-satisfaction
(format "%.2f" (->> tickets (filter #(= "silver" (:tier (:customer %)))) (keep :rating) mean))

;; task: left-behind
(->> tickets
     (filter #(#{"open" "pending"} (:status %)))
     (keep #(agent-of (:id (:assignee %))))
     (filter #(= "no" (:active %)))
     (map :name) distinct listed)

;; task: busiest-team
(->> open-ones (keep #(:team (agent-of (:id (:assignee %))))) frequencies best)

;; task: missed-first-response
(let [rows (->> (str/split-lines (desk/get_sla_policy))
                (drop-while #(not (str/starts-with? % "First response")))
                (filter #(re-find #"^(gold|silver|bronze)" %))
                (take 3)
                (map #(str/split % #"\s+")))
      hours (into {} (for [[tier & cells] rows] [tier (zipmap ["P1" "P2" "P3" "P4"] (map parse-long cells))]))]
  (count (filter #(and (= "solved" (:status %))
                       (number? (:firstResponseMinutes %))
                       (> (:firstResponseMinutes %) (* 60 (get-in hours [(:tier (:customer %)) (:priority %)]))))
                 tickets)))

;; task: contracts-ending
(->> open-ones
     (filter #(#{"P1" "P2"} (:priority %)))
     (map :customer)
     (filter #(<= 0 (time/between "2026-11-20" (:ends %) :days) 60))
     (map :name) distinct listed)

;; task: urgent-solution-time
(->> tickets
     (filter #(and (= "P1" (:priority %)) (#{"solved" "closed"} (:status %))))
     (map #(desk/get_ticket {:key (:key %)}))
     (filter #(and (:solved %) (str/includes? (:solved %) "Oct 2026")))
     (map #(/ (time/between (moment (:created %)) (moment (:solved %)) :seconds) 3600.0))
     mean
     (format "%.1f"))

;; task: german-gold-seats
(->> customers (filter #(and (= "gold" (:tier %)) (= "Germany" (:country %)))) (map :seats) (reduce +))

;; task: quiet-customers
(let [seen (set (map :customerId tickets))]
  (->> customers (filter #(= "bronze" (:tier %))) (remove #(seen (:id %))) (map :name) listed))

;; task: best-agent
(->> tickets
     (filter #(and (:assignee %) (:rating %)))
     (group-by #(:name (:assignee %)))
     (filter #(>= (count (val %)) 5))
     (map (fn [[name of]] [name (mean (map :rating of))]))
     (into {}) best)

;; task: open-refunds
(->> open-ones (map :key) (filter #(str/includes? (str/lower-case (all-texts %)) "refund")) listed)

;; task: last-public-comment
(:author (last (remove #(= 1 (:internal %)) (all-comments "SUP-1261"))))

;; task: orders-in-urgent
(->> open-ones
     (filter #(= "P1" (:priority %)))
     (mapcat #(re-seq #"ORD-\d+" (all-texts (:key %))))
     distinct listed)

;; task: close-stale
(doseq [ticket tickets
        :when (and (= "pending" (:status ticket)) (< (:updatedAt ticket) 1792584000000))]
  (desk/update_ticket {:key (:key ticket) :status "closed"}))
"done"

;; task: reassign
(let [moved (filter #(= "Kenji Mori" (:name (:assignee %))) open-ones)]
  (doseq [ticket moved] (desk/update_ticket {:key (:key ticket) :assignee_id 24}))
  (count moved))

;; task: raise-priority
(doseq [{:keys [key priority customer]} open-ones
        :when (and (= "P2" priority) (= "gold" (:tier customer)) (> (:seats customer) 200))]
  (desk/update_ticket {:key key :priority "P1"}))
"done"

;; task: notices
(doseq [{:keys [id tier ends]} customers
        :when (and (= "gold" tier) (<= (compare (time/parse "2026-11-20") ends) 0) (<= (compare ends (time/parse "2027-01-31")) 0))]
  (desk/send_notice {:customer_id (parse-long id) :message "Your contract is about to end. We would like to talk about the renewal."}))
"done"

;; task: new-ticket
(let [customer (first (filter #(str/starts-with? (:name %) "Iron Forge") customers))
      jon (first (filter #(= "Jon Berg" (:name %)) agents))]
  (desk/create_ticket {:customer_id (parse-long (:id customer)) :subject "Renewal call" :priority "P2"
                       :assignee_id (parse-long (:id jon))})
  "done")

;; task: tag-at-risk
(let [unhappy (->> tickets
                   (filter :rating)
                   (group-by :customerId)
                   (filter (fn [[_ of]] (and (>= (count of) 3) (< (mean (map :rating of)) 3))))
                   keys set)
      found (filter #(unhappy (:customerId %)) open-ones)]
  (doseq [ticket found] (desk/update_ticket {:key (:key ticket) :add_tags ["at-risk"]}))
  (count found))
