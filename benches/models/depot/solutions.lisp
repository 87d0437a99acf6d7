;; A program for each task of the wholesaler, which shows that the tools give the expected answers. The definitions
;; before the first task belong to all programs. The value of a program is the answer.

(defn follow [call argument items token more]
  (loop [found [] at nil]
    (let [page (call (if at (assoc more argument at) more))
          found (into found (items page))
          at (token page)]
      (if (and at (not= "" at)) (recur found at) found))))
(defn orders [more] (follow depot/list_orders :cursor :orders :nextCursor more))
(defn lines [number]
  (->> (get-in (depot/get_order {:order_no number}) [:order :lines])
       (map #(assoc % :qty (parse-long (:qty %)) :unit_price (decimal (:unit_price %))))))
(defn invoices [more]
  (->> (follow depot/list_invoices :page_token :invoices :nextPageToken (assoc more :page_size 50))
       (map #(assoc % :order_no (parse-long (:order_no %))
                      :amount (decimal (str/replace (:amount %) "," ""))
                      :issued (time/parse (:issued %) "dd.MM.yyyy")
                      :days (parse-long (subs (:terms %) 4))))
       (map #(assoc % :due (time/plus (:issued %) (:days %) :days)))))
(defn shipments []
  (->> (range 0 (get-in (depot/list_shipments {}) [:meta :total]) 50)
       (mapcat #(:data (depot/list_shipments {:limit 50 :offset %})))
       (map #(assoc % :order (parse-long (:order %))
                      :promised (time/format (time/parse (:promised %)) "yyyy-MM-dd")
                      :is-under-way (= "" (:delivered %))))))
(defn is-late [{:keys [delivered promised is-under-way]}]
  (and (not is-under-way) (pos? (compare (subs delivered 0 10) promised))))
(defn products []
  (->> (range 1 4)
       (mapcat #(depot/find_products {:page %}))
       (map (fn [product]
              (let [[_ n unit] (re-find #"([\d.]+) (k?g)" (:weight product))]
                (assoc product :cost (decimal (str (:cost_eur product)))
                               :grams (* (parse-double n) (if (= "kg" unit) 1000 1))))))))
(defn by-sku [] (into {} (map (juxt :sku identity) (products))))
(defn levels [warehouse]
  (for [[sku level] (:levels (depot/stock_levels {:warehouse warehouse}))]
    (assoc level :sku (name sku) :free (- (:on_hand level) (:reserved level)))))
(defn rates [month]
  (into {"EUR" 1.0}
        (map (fn [[_ currency rate]] [currency (parse-double rate)])
             (re-seq #"([A-Z]{3})  ([\d.]+)" (depot/exchange_rates {:month month})))))
(defn overdue [] (filter #(pos? (compare (time/parse "2026-11-20") (:due %))) (invoices {:status "open"})))
(defn mean [xs] (/ (reduce + xs) (double (count xs))))
(defn listed [xs] (str/join ", " xs))
(defn best [counts] (key (apply max-key val counts)))

;; task: order-status
(get-in (depot/get_order {:order_no 500140}) [:order :status])

;; task: dollar-rate
(get (rates "2026-10") "USD")

;; task: drill-cost
(:cost_eur (first (depot/find_products {:query "cordless drill pro"})))

;; task: orders-in-october
(count (orders {:date_from "2026-10-01" :date_to "2026-10-31"}))

;; task: new-by-warehouse
(listed (for [[warehouse n] (frequencies (map :warehouse (orders {:status "new"})))] (str warehouse ": " n)))

;; task: busiest-weekday
(best (frequencies (map #(time/format (time/parse (:placedAt %)) "EEEE") (orders {}))))

;; task: night-orders
(count (filter #(let [hour (parse-long (subs (:placedAt %) 11 13))] (or (>= hour 22) (< hour 6))) (orders {})))

;; task: best-category
(let [product (by-sku) rate (rates "2026-11")]
  (->> (orders {:date_from "2026-11-01"})
       (remove #(= "CANCELLED" (:status %)))
       (mapcat (fn [order] (map #(assoc % :currency (:currency order)) (lines (:orderNo order)))))
       (reduce (fn [sums {:keys [sku qty unit_price currency]}]
                 (update sums (:category (product sku)) (fnil + 0) (/ (* qty (double unit_price)) (rate currency))))
               {})
       best))

;; task: supplier-units
(let [product (by-sku)
      sums (->> (orders {:date_from "2026-10-01" :date_to "2026-10-31" :warehouse "RTM"})
                (mapcat #(lines (:orderNo %)))
                (reduce (fn [sums {:keys [sku qty]}] (update sums (get-in product [sku :supplier :name]) (fnil + 0) qty)) {}))]
  (str (best sums) ": " (sums (best sums))))

;; task: order-weight
(let [product (by-sku)]
  (/ (reduce + (map #(* (:qty %) (:grams (product (:sku %)))) (lines 500222))) 1000))

;; task: free-units
(let [sku (:sku (first (depot/find_products {:query "belt sander plus"})))]
  (->> ["RTM" "CHI" "SIN" "LBA"] (mapcat levels) (filter #(= sku (:sku %))) (map :free) (reduce +)))

;; task: low-in-rotterdam
(listed (map :sku (filter #(< (:free %) (:reorder_point %)) (levels "RTM"))))

;; task: gone-in-two
(->> ["RTM" "CHI" "SIN" "LBA"] (mapcat levels) (filter #(<= (:free %) 0)) (map :sku) frequencies
     (filter #(>= (val %) 2)) (map key) listed)

;; task: stock-value
(let [product (by-sku)]
  (format "%.2f" (reduce + (map #(* (:on_hand %) (:cost (product (:sku %)))) (levels "LBA")))))

;; task: late-by-carrier
(listed (for [[carrier n] (frequencies (map :carrier (filter is-late (shipments))))] (str carrier ": " n)))

;; task: most-reliable
(->> (shipments)
     (remove :is-under-way)
     (group-by :carrier)
     (map (fn [[carrier of]] [carrier (- (/ (count (filter is-late of)) (count of)))]))
     (into {}) best)

;; task: missing-shipments
(->> (shipments)
     (filter #(and (:is-under-way %) (= "Ferrovia" (:carrier %)) (neg? (compare (:promised %) "2026-11-20"))))
     (map :id) listed)

;; task: transit-time
(->> (shipments)
     (filter #(and (= "Nordfracht" (:carrier %)) (not (:is-under-way %))))
     (map #(/ (time/between (time/parse (:shipped %)) (time/parse (str (:delivered %) "Z") "yyyy-MM-dd HH:mmX") :seconds) 3600.0))
     mean
     (format "%.1f"))

;; task: shipped-cancelled
(let [cancelled (set (map :orderNo (orders {:status "cancelled"})))]
  (->> (shipments) (map :order) (filter cancelled) listed))

;; task: open-total
(let [rate (rates "2026-11")]
  (format "%.2f" (reduce + (map #(/ (double (:amount %)) (rate (:currency %))) (invoices {:status "open"})))))

;; task: overdue-count
(count (overdue))

;; task: largest-debtors
(let [rate (rates "2026-11")]
  (->> (overdue)
       (reduce (fn [sums {:keys [customer amount currency]}] (update sums customer (fnil + 0) (/ (double amount) (rate currency)))) {})
       (sort-by (comp - val)) (take 3) (map key) listed))

;; task: wrong-amounts
(->> (invoices {})
     (remove #(== (:amount %) (reduce + (map (fn [line] (* (:qty line) (:unit_price line))) (lines (:order_no %))))))
     (map :number) listed)

;; task: billed-twice
(->> (invoices {}) (map :order_no) frequencies (filter #(> (val %) 1)) (map key) listed)

;; task: forgotten
(let [billed (set (map :order_no (invoices {})))]
  (->> (concat (orders {:status "shipped"}) (orders {:status "delivered"})) (map :orderNo) (remove billed) listed))

;; task: payment-delay
(->> (invoices {:status "paid"})
     (filter #(= "GBP" (:currency %)))
     (map #(time/between (:issued %) (time/parse (:paid_on %)) :days))
     mean
     (format "%.1f"))

;; task: remind
(doseq [{:keys [number due]} (overdue) :when (> (time/between due "2026-11-20" :days) 45)]
  (depot/send_reminder {:invoice number :message (str "Please pay invoice " number ", which is overdue.")}))
"done"

;; task: restock
(doseq [{:keys [sku free reorder_point]} (levels "CHI") :when (< free reorder_point)]
  (depot/create_purchase_order {:sku sku :quantity (- (* 2 reorder_point) free) :warehouse "CHI"}))
"done"

;; task: change-carrier
(let [found (filter #(and (:is-under-way %) (= "QuickPost" (:carrier %)) (neg? (compare (:promised %) "2026-11-20"))) (shipments))]
  (doseq [shipment found] (depot/update_shipment {:id (:id shipment) :carrier "BlueLine"}))
  (count found))

;; task: hold
(let [customer (into {} (map (juxt :orderNo :customer) (orders {})))
      under-way (map #(assoc % :customer (customer (:order %))) (filter :is-under-way (shipments)))
      worst (best (frequencies (map :customer under-way)))]
  (doseq [shipment under-way :when (= worst (:customer shipment))] (depot/update_shipment {:id (:id shipment) :hold true}))
  worst)
