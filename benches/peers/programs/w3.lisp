(let [top (->> (:mails data)
               (filter #(and (:unread %) (> (:size %) 10000)))
               (group-by :sender)
               (map (fn [[sender mails]]
                      (let [total (reduce + (map :size mails))
                            n (count mails)]
                        {:sender sender :count n :sum total :mean (double (/ total n))})))
               (sort-by (juxt (comp - :count) :sender))
               (take 10))]
  (json/write {:top top}))
