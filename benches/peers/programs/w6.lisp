(loop [i 0 total 0]
  (if (< i 1000000)
    (recur (inc i) (+ total (host/add {:a i :b 2})))
    total))
