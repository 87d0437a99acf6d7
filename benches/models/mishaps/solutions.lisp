;; Programs that do the tasks of the shop, with their recovery.
;;
;; `readers` are the readers of a first program, which expect what the tools usually return, and `tolerant` those of a
;; corrected one, which put up with the other shapes. Then come `common` definitions and a program for each `task`.
;; Where going on with the run does not do, `rest` looks at what is there and makes what is missing, some of it at a
;; time; it is repeated as long as its value is "more".

;; readers
(defn orders [more] (all-pages shop/list_orders more))
(defn order [id] (shop/get_order {:order_id id}))
(defn customer [id] (shop/get_customer {:customer_id id}))
(defn email [id] (:email (customer id)))
(defn total [id] (:total (order id)))
(defn quantity [id] (reduce + (map :quantity (:lines (order id)))))
(defn ticket [m] (:id (shop/create_ticket m)))
(defn ship [id] (:tracking (shop/mark_shipped {:order_id id})))
(defn pay [id amount] (:receipt (shop/charge {:order_id id :amount amount})))

;; tolerant
(defn orders [more]
  (loop [page 1 found []]
    (let [r (shop/list_orders (if (= page 1) more (assoc more :page page)))
          os (if (map? (:orders r)) (vals (:orders r)) (:orders r))
          found (into found os)]
      (if (< page (:pages r)) (recur (inc page) found) found))))
(defn order [id] (shop/get_order {:order_id id}))
(defn customer [id] (let [c (shop/get_customer {:customer_id id})] (or (:customer c) c)))
(defn email [id] (let [c (customer id)] (or (:email c) (first (:emails c)))))
(defn total [id]
  (let [t (:total (order id))]
    (if (string? t) (parse-double (str/replace (str/replace t " EUR" "") "," "")) t)))
(defn quantity [id] (let [l (:lines (order id))] (reduce + (if (map? l) (vals l) (map :quantity l)))))
(defn ticket [m] (let [t (shop/create_ticket m)] (if (string? t) (re-find #"T-\d+" t) (:id t))))
(defn ship [id] (let [r (shop/mark_shipped {:order_id id})] (:tracking (or (:shipment r) r))))
(defn pay [id amount] (let [r (shop/charge {:order_id id :amount amount})] (:receipt (if (vector? r) (first r) r))))

;; common
(defn month [m os] (filter #(= m (subs (:placed %) 5 7)) os))
(defn by-carrier [c os] (filter #(= c (:carrier %)) os))
(defn customers [more] (all-pages shop/list_customers more))
(defn of-customers [more os] (let [s (set (map :id (customers more)))] (filter #(contains? s (:customer_id %)) os)))
(defn mail [to subject] (shop/send_mail {:to to :subject subject :body "text"}))
(defn charge-all [os]
  (vec (for [o os]
         (let [t (total (:id o))]
           (when-not (number? t) (throw (ex-info "no number" {})))
           [(pay (:id o) t) t]))))
(defn must [x] (if (nil? x) (throw (ex-info "nil" {})) x))

;; task: remind-lyon
(def os (vec (of-customers {:city "Lyon"} (orders {:status "unpaid"}))))
(doseq [o os] (mail (email (:customer_id o)) (str "Reminder: order " (:id o))))
(str/join ", " (map :id os))

;; task: ship-oslo
(def os (vec (of-customers {:city "Oslo"} (orders {:status "paid"}))))
(str/join ", " (for [o os]
                 (let [t (ship (:id o))]
                   (mail (email (:customer_id o)) (str "Order " (:id o) " is on its way"))
                   t)))

;; task: gold-tickets
(str/join ", " (for [c (customers {:tier "gold"})]
                 (ticket {:customer_id (:id c) :title "Yearly address check" :priority "low"})))

;; task: charge-november
(def os (vec (filter #(> (total (:id %)) 500) (month "11" (orders {:status "unpaid"})))))
(reduce + (map second (charge-all os)))

;; task: vip-labels
(def os (vec (remove #(= "cancelled" (:status %)) (of-customers {:tier "gold"} (orders {})))))
(doseq [o os] (shop/add_label {:order_id (:id o) :label "vip"}))
(mail "ops@shop.example" "VIP orders labelled")
(count os)

;; task: close-low
(def ts (vec (all-pages shop/list_tickets {:status "open" :priority "low"})))
(doseq [t ts]
  (shop/close_ticket {:ticket_id (:id t)})
  (mail (email (:customer_id t)) (str "Ticket " (:id t) " closed")))
(str/join ", " (map :id ts))

;; task: gls-strike
(def os (vec (by-carrier "GLS" (month "10" (orders {:status "unpaid"})))))
(doseq [o os]
  (mail (email (:customer_id o)) (str "Delay of order " (:id o)))
  (shop/add_label {:order_id (:id o) :label "gls-strike"}))
(str/join ", " (map :id os))

;; task: madrid-review
(def cs (vec (concat (customers {:city "Madrid"}) (customers {:city "Turin"}))))
(reduce + (for [c cs]
            (let [n (count (orders {:status "unpaid" :customer_id (:id c)}))]
              (ticket {:customer_id (:id c) :title (str "Review: " n " unpaid")})
              n)))

;; task: charge-graz
(def os (vec (of-customers {:city "Graz"} (orders {:status "unpaid"}))))
(str/join ", " (map first (charge-all os)))

;; rest: charge-graz
(def os (vec (of-customers {:city "Graz"} (orders {}))))
(doseq [o os :when (= "unpaid" (:status o))] (pay (:id o) (total (:id o))))
(str/join ", " (mapcat #(map :receipt (:payments (order (:id %)))) os))

;; task: silver-tickets
(str/join ", " (for [c (customers {:tier "silver"})] (ticket {:customer_id (:id c) :title "Offer: upgrade to gold"})))

;; rest: silver-tickets
(defn made [] (filter #(= "Offer: upgrade to gold" (:title %)) (all-pages shop/list_tickets {})))
(def have (set (map :customer_id (made))))
(doseq [c (customers {:tier "silver"}) :when (not (contains? have (:id c)))]
  (ticket {:customer_id (:id c) :title "Offer: upgrade to gold"}))
(str/join ", " (map :id (made)))

;; task: charge-ghent
(def os (vec (of-customers {:city "Ghent"} (orders {:status "unpaid"}))))
(reduce + (map second (charge-all os)))

;; task: ship-porto
(def os (vec (of-customers {:city "Porto"} (orders {:status "paid"}))))
(doseq [o os] (ship (:id o)) (mail (email (:customer_id o)) (str "Shipped: " (:id o))))
(str/join ", " (map :id os))

;; task: cancelled-tickets
(def os (vec (month "11" (orders {:status "cancelled"}))))
(str/join ", " (for [o os]
                 (let [t (ticket {:customer_id (:customer_id o) :title (str "Refund check " (:id o))})]
                   (shop/add_label {:order_id (:id o) :label t})
                   t)))

;; task: ship-leeds
(def os (vec (of-customers {:city "Leeds"} (orders {:status "paid"}))))
(str/join ", " (for [o os] (let [t (must (ship (:id o)))] (mail (email (:customer_id o)) (str "Tracking " t)) t)))

;; task: ups-unpaid
(def os (vec (by-carrier "UPS" (orders {:status "unpaid"}))))
(doseq [o os] (shop/add_label {:order_id (:id o) :label "ups-hold"}))
(count os)

;; task: charge-small
(def os (vec (filter #(< (total (:id %)) 400) (month "09" (orders {:status "unpaid"})))))
(str/join ", " (map #(must (first %)) (charge-all os)))

;; task: bulk-labels
(def os (vec (month "10" (orders {:status "paid"}))))
(str/join ", " (for [o os :when (>= (quantity (:id o)) 12)]
                 (do (shop/add_label {:order_id (:id o) :label "bulk"}) (:id o))))

;; task: gold-invite
(def cs (vec (customers {:tier "gold"})))
(doseq [c cs] (mail (email (:id c)) (str "Open day for " (:name c))))
(count cs)

;; task: export-forty
(reduce + (map #(:bytes (shop/export_item {:order_id (:id %) :format "pdf"})) (take 40 (orders {:status "shipped"}))))

;; task: export-autumn
(def os (vec (filter #(contains? #{"09" "10"} (subs (:placed %) 5 7)) (orders {:status "paid"}))))
(doseq [o os] (shop/export_item {:order_id (:id o) :format "csv"}))
(mail "archive@shop.example" "Exports ready")
(count os)

;; task: remind-september
(def os (vec (month "09" (orders {:status "unpaid"}))))
(doseq [o os] (mail (email (:customer_id o)) (str "Second reminder: " (:id o))))
(str/join ", " (map :id os))

;; task: charge-gold
(def os (vec (of-customers {:tier "gold"} (orders {:status "unpaid"}))))
(str/join ", " (map first (charge-all os)))

;; task: insured
(def os
  (vec (filter #(and (contains? #{"10" "11"} (subs (:placed %) 5 7)) (> (total (:id %)) 800))
               (orders {:status "shipped"}))))
(doseq [o os] (shop/add_label {:order_id (:id o) :label "insured"}))
(count os)

;; task: ship-dhl
(def os (vec (by-carrier "DHL" (month "11" (orders {:status "paid"})))))
(str/join ", " (for [o os] (let [t (ship (:id o))] (mail (email (:customer_id o)) (str "DHL has order " (:id o))) t)))

;; task: label-autumn
(def os (vec (filter #(contains? #{"10" "11"} (subs (:placed %) 5 7)) (orders {:status "unpaid"}))))
(def n 0)
(doseq [o os] (shop/add_label {:order_id (:id o) :label "autumn"}))
(count os)

;; rest: label-autumn
(doseq [o (take 14 (drop n os)) :when (not (some #{"autumn"} (:labels (order (:id o)))))]
  (shop/add_label {:order_id (:id o) :label "autumn"}))
(def n (+ n 14))
(if (< n (count os)) "more" (count os))

;; task: ship-ups
(def os (vec (by-carrier "UPS" (orders {:status "paid"}))))
(def n 0)
(doseq [o os] (ship (:id o)) (mail (email (:customer_id o)) (str "UPS has order " (:id o))))
(count os)

;; rest: ship-ups
(def sent (set (map :subject (all-pages shop/list_mails {}))))
(doseq [o (take 10 (drop n os))]
  (when (= "paid" (:status (order (:id o)))) (ship (:id o)))
  (let [subject (str "UPS has order " (:id o))]
    (when-not (contains? sent subject) (mail (email (:customer_id o)) subject))))
(def n (+ n 10))
(if (< n (count os)) "more" (count os))

;; task: export-gls
(reduce + (map #(:bytes (shop/export_item {:order_id (:id %) :format "pdf"}))
               (by-carrier "GLS" (orders {:status "shipped"}))))

;; rest: export-gls
(def have (all-pages shop/list_exports {}))
(def ids (set (map :order_id have)))
(def left (vec (remove #(contains? ids (:id %)) (by-carrier "GLS" (orders {:status "shipped"})))))
(doseq [o (take 8 left)] (shop/export_item {:order_id (:id o) :format "pdf"}))
(if (seq left) "more" (reduce + (map :bytes have)))

;; task: charge-silver
(def os (vec (of-customers {:tier "silver"} (orders {:status "unpaid"}))))
(reduce + (map second (charge-all os)))

;; rest: charge-silver
(def os (vec (of-customers {:tier "silver"} (orders {}))))
(def left (vec (filter #(= "unpaid" (:status %)) os)))
(doseq [o (take 6 left)] (pay (:id o) (total (:id o))))
(if (seq left) "more" (reduce + (map :amount (mapcat #(:payments (order (:id %))) os))))

;; task: consent-tickets
(str/join ", " (for [c (customers {}) :when (not= "gold" (:tier c))]
                 (ticket {:customer_id (:id c) :title "Ask for consent"})))

;; rest: consent-tickets
(defn made [] (filter #(= "Ask for consent" (:title %)) (all-pages shop/list_tickets {:status "open"})))
(def have (set (map :customer_id (made))))
(doseq [c (take 12 (filter #(and (not= "gold" (:tier %)) (not (contains? have (:id %)))) (customers {})))]
  (ticket {:customer_id (:id c) :title "Ask for consent"}))
(if (= 32 (count (made))) (str/join ", " (map :id (made))) "more")

;; task: close-most
(def ts (vec (remove #(= "high" (:priority %)) (all-pages shop/list_tickets {:status "open"}))))
(doseq [t ts] (shop/close_ticket {:ticket_id (:id t)}))
(count ts)

;; rest: close-most
(doseq [t (take 15 (remove #(= "high" (:priority %)) (all-pages shop/list_tickets {:status "open"})))]
  (shop/close_ticket {:ticket_id (:id t)}))
(if (seq (remove #(= "high" (:priority %)) (all-pages shop/list_tickets {:status "open"}))) "more" (count ts))
