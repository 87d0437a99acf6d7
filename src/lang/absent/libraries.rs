//! Libraries and classes that models ask for, each with its replacement here.

use crate::error::Error;

/// Advice by the prefix of a library's name.
const LIBRARIES: &[(&[&str], &str)] = &[
    (
        &[
            "clj-http",
            "org.httpkit",
            "hato",
            "babashka.http-client",
            "babashka.curl",
            "http",
            "aleph",
            "requests",
            "axios",
        ],
        "programs have no network; call a tool: `(dir)` lists the servers, `(apropos \"fetch\")` searches them",
    ),
    (
        &["clojure.java.io", "babashka.fs", "me.raynes.fs", "fs", "os", "io", "pathlib"],
        "programs have no files; a tool may: `(dir)` lists the servers, `(apropos \"read\")` searches them",
    ),
    (
        &["clojure.java.shell", "babashka.process", "me.raynes.conch", "subprocess", "child_process"],
        "programs cannot run commands; call a tool: `(dir)` lists the servers",
    ),
    (
        &["clojure.core.async", "promesa", "manifold", "missionary", "asyncio"],
        "there are no threads or channels; tool calls overlap in `(pmap fetch ids)` and `(pcalls (a/x) (b/y))`",
    ),
    (
        &["clj-time", "java-time", "tick", "cljc.java-time", "chrono", "datetime", "moment", "clojure.instant"],
        "leave the require out; `(apropos \"time\")` and `(apropos \"date\")` list what works with dates here",
    ),
    (
        &["medley", "plumbing", "potpuri", "encore", "taoensso.encore", "weavejester"],
        "leave the require out and use core: `update-vals`, `update-keys`, `(into {} (filter …) m)`, `(first (filter p xs))`, `group-by`, `(zipmap (map :id xs) xs)`",
    ),
    (
        &["com.rpl.specter", "specter"],
        "leave the require out and use `get-in`, `update-in`, `walk/postwalk`, `update-vals`",
    ),
    (
        &["midje", "expectations", "clojure.test.check"],
        "leave the require out: `(deftest name (is (= expected (f x))))` defines a test, `(run-tests)` runs all; `(assert x)` checks one value",
    ),
    (
        &["clojure.spec", "malli", "schema", "schema.core", "clojure.core.typed"],
        "there are no schemas: check with predicates, `(every? string? xs)`, and see `(describe data)` for the shape of unknown data",
    ),
    (
        &["clojure.tools.logging", "taoensso.timbre", "logging"],
        "leave the require out and print: `(println \"…\" x)`; prints are part of the reply",
    ),
    (
        &["clojure.core.match", "meander"],
        "leave the require out: choose with `cond`, `case` and destructuring, `(let [{:keys [a b]} m] …)`",
    ),
    (
        &["clojure.java.jdbc", "next.jdbc", "honeysql", "honey.sql", "hugsql", "datomic", "datascript", "xtdb"],
        "programs have no database; call a tool: `(apropos \"query\")` searches them",
    ),
    (
        &["clojure.xml", "clojure.data.xml", "hickory", "net.cgrand.enlive-html", "hiccup", "reaver", "jsoup", "bs4"],
        "leave the require out: `(html/text s)` and `(html/links s)` read HTML; other markup is searched with `re-seq`",
    ),
    (
        &[
            "clojure.math.combinatorics",
            "clojure.math.numeric-tower",
            "kixi.stats",
            "incanter",
            "numpy",
            "pandas",
            "tech.v3",
            "tablecloth",
            "math",
            "statistics",
        ],
        "leave the require out: `for` gives combinations, `math/pow` and the like are built in, `group-by` and `reduce` aggregate",
    ),
    (
        &[
            "clojure.repl",
            "clojure.main",
            "clojure.reflect",
            "clojure.tools",
            "clojure.java.browse",
            "clojure.stacktrace",
            "clojure.inspector",
        ],
        "leave the require out: `(doc f)`, `(dir)` and `(apropos \"…\")` are built in",
    ),
    (
        &["yaml", "clj-yaml", "toml", "clojure.data.priority-map", "flatland.ordered", "clojure.data.avl"],
        "leave the require out: there are `json/`, `csv/`, `html/` and `url/` for formats, maps keep the order of insertion, `sort-by` orders",
    ),
    (
        &["cl-lib", "subr-x", "seq", "dash", "s", "map", "srfi", "scheme", "racket", "alexandria", "cl"],
        "leave the require out: everything is loaded already; `(apropos \"…\")` finds a function",
    ),
    (
        &[
            "json",
            "re",
            "sys",
            "random",
            "collections",
            "itertools",
            "functools",
            "typing",
            "string",
            "time",
            "csv",
            "lodash",
        ],
        "leave the import out: everything is loaded already, as `json/parse`, `str/join`, `re-seq`, `csv/parse`, `frequencies`; `(dir)` lists the rest",
    ),
];

/// Advice by the simple name of a class.
const CLASSES: &[(&[&str], &str)] = &[
    (
        &[
            "File",
            "FileReader",
            "FileWriter",
            "FileInputStream",
            "FileOutputStream",
            "BufferedReader",
            "BufferedWriter",
            "InputStreamReader",
            "PrintWriter",
            "Files",
            "Path",
            "Paths",
            "Scanner",
            "RandomAccessFile",
            "ByteArrayInputStream",
        ],
        "programs have no files; a tool may: `(apropos \"read\")` searches them",
    ),
    (
        &["URL", "URI", "HttpClient", "HttpURLConnection", "HttpRequest", "Socket", "ServerSocket", "InetAddress"],
        "programs have no network: `(url/parse s)` parses an address, and a tool may fetch it: `(apropos \"fetch\")`",
    ),
    (
        &[
            "Thread",
            "Runnable",
            "Executors",
            "ExecutorService",
            "CompletableFuture",
            "CountDownLatch",
            "TimeUnit",
            "Timer",
            "ReentrantLock",
        ],
        "there are no threads; tool calls overlap in `(pmap fetch ids)`",
    ),
    (
        &[
            "ArrayList",
            "LinkedList",
            "Vector",
            "ArrayDeque",
            "Stack",
            "Arrays",
            "Collections",
            "PriorityQueue",
            "List",
            "Iterator",
            "Array",
        ],
        "use a vector instead: `[]`, `(conj v x)`, `(nth v i)`, `(sort v)`, `(peek v)` and `(pop v)`",
    ),
    (
        &["HashMap", "LinkedHashMap", "TreeMap", "ConcurrentHashMap", "Hashtable", "Properties", "Map"],
        "use a map instead: `{}`, `(assoc m k v)`, `(get m k default)`, `(update m k (fnil inc 0))`",
    ),
    (
        &["Queue", "Deque"],
        "a queue is `(conj clojure.lang.PersistentQueue/EMPTY x)`: `(conj q x)` adds at the end, `(peek q)` is the next item, \
         `(pop q)` the rest",
    ),
    (&["HashSet", "LinkedHashSet", "TreeSet", "Set"], "use a set instead: `#{}`, `(conj s x)`, `(contains? s x)`"),
    (&["StringJoiner", "PrintStream"], "strings are put together with `(str a b)` and `(str/join \", \" xs)`"),
    (&["AtomicInteger", "AtomicLong", "AtomicReference"], "use an atom instead: `(def n (atom 0)) (swap! n inc) @n`"),
    (
        &["Random", "SecureRandom", "ThreadLocalRandom"],
        "`(rand-int 10)`, `(rand)`, `(rand-nth xs)` and `(shuffle xs)` are built in",
    ),
    (
        &[
            "Date",
            "Calendar",
            "GregorianCalendar",
            "SimpleDateFormat",
            "DateFormat",
            "Timestamp",
            "TimeZone",
            "DateTime",
        ],
        "`(now)` is the time; `(apropos \"date\")` lists what works with dates",
    ),
    (&["Base64", "Base64.Encoder"], "`(base64/encode s)` and `(base64/decode s)` are built in"),
    (&["MessageDigest", "DigestUtils", "Mac"], "`(hash/sha256 s)` is built in"),
    (&["URLEncoder", "URLDecoder"], "`(url/encode s)` and `(url/decode s)` are built in"),
    (
        &["Pattern", "Matcher"],
        "regular expressions are `(re-seq #\"\\d+\" s)`, `(re-find re s)`, `(re-matches re s)`, `(re-pattern text)`",
    ),
    (
        &["BigDecimal", "BigInteger", "DecimalFormat", "NumberFormat"],
        "big integers are written `1N`, numbers are formatted with `(format \"%.2f\" x)`",
    ),
    (&["Optional", "Objects"], "use nil instead: `(some-> x f)`, `(or x default)`, `(if-let [y x] …)`"),
    (
        &["System", "Runtime", "Process", "ProcessBuilder", "ClassLoader", "Class"],
        "programs cannot see the machine they run on; `(now)` is the time",
    ),
    (&["JSONObject", "ObjectMapper", "Gson", "JSONArray"], "`(json/parse text)` and `(json/write data)` are built in"),
];

/// Builds the error for a library that does not exist.
pub fn missing(name: &str) -> Error {
    let error = Error::new("NotAvailable", format!("there is no library `{name}` here")).about(name);
    let fits = |prefix: &&str| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '/', ':']))
    };
    match LIBRARIES.iter().find(|(prefixes, _)| prefixes.iter().any(&fits)) {
        Some((_, advice)) => error.suggest(*advice),
        None => error.suggest(
            "libraries cannot be loaded, and the built-in ones need no require: str/ set/ walk/ math/ json/ csv/ html/ url/ base64/ hash/ and core; `(dir)` lists them, `(apropos \"word\")` searches them",
        ),
    }
}

/// Builds the error for a class that does not exist.
pub fn missing_class(name: &str) -> Error {
    Error::new("NotAvailable", format!("there is no class `{name}` here")).about(name).suggest(class_advice(name))
}

/// Returns advice on what to use instead of a class.
pub fn class_advice(name: &str) -> String {
    let base = name.rsplit('.').next().unwrap_or(name);
    match CLASSES.iter().find(|(names, _)| names.contains(&base)) {
        Some((_, advice)) => (*advice).to_string(),
        None => "there are no Java classes: data is maps, vectors, strings and numbers, and `(apropos \"…\")` finds the functions for it".to_string(),
    }
}

/// True for names that look like those of Java classes: `StringBuilder`, `java.io.File`.
pub fn is_class(name: &str) -> bool {
    let base = name.rsplit('.').next().unwrap_or(name);
    base.starts_with(char::is_uppercase)
        && base.chars().any(char::is_lowercase)
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '$'))
}
