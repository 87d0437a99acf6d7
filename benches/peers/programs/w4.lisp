(let [top (->> (str/split-lines text)
               (mapcat #(str/split % #"\s+"))
               frequencies
               (sort-by (fn [[word n]] [(- n) word]))
               (take 20))]
  (json/write {:top top}))
