(loop [i 0 total 0]
  (if (< i 5000000)
    (recur (inc i) (+ total (mod (* i i) 7)))
    total))
