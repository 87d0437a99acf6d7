//! The programs of the demo, and the equivalent tool calls without lispbox.

use serde_json::{Value, json};

/// One program.
pub struct Step {
    /// The title of the step.
    pub title: &'static str,
    /// The text of the program.
    pub program: &'static str,
    /// The `fuel` limit, if the program asks for one.
    pub fuel: Option<u64>,
    /// The expected answer.
    pub expected: Expected,
    /// The equivalent tool calls without lispbox.
    pub direct: &'static [Direct],
}

/// The expected answer of a program.
pub enum Expected {
    /// A value whose text contains this.
    Value(&'static str),
    /// An error whose text contains this.
    Error(&'static str),
}

/// A call of a tool of the mailbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Direct {
    /// The tool.
    pub tool: &'static str,
    /// The arguments, as JSON text.
    pub arguments: &'static str,
}

impl Step {
    /// Builds the arguments of `lisp_eval`.
    pub fn arguments(&self) -> Value {
        match self.fuel {
            Some(fuel) => json!({"program": self.program, "limits": {"fuel": fuel}}),
            None => json!({"program": self.program}),
        }
    }
}

const FIFTY: Direct = Direct { tool: "fetch-emails", arguments: r#"{"limit":50}"# };

/// All steps, in order; they share one session.
pub const STEPS: &[Step] = &[
    Step {
        title: "two functions, kept in the session",
        program: r"(defn sender [message] (get-in message [:sender :email]))

(define (compute-stats emails)       ; for each sender, the subjects of what they sent
  (->> (group-by sender emails) vals (map (fn [sent] (mapv :subject sent)))))",
        fuel: None,
        expected: Expected::Value("compute-stats"),
        direct: &[],
    },
    Step {
        title: "who wrote the latest fifty messages?",
        program: r"(let ((emails (fetch-emails :limit 50)))
  (group-by emails :key sender :count t))",
        fuel: None,
        expected: Expected::Value("@"),
        direct: &[FIFTY],
    },
    Step {
        title: "keep a result for later",
        program: "(define email-stats (compute-stats (fetch-emails)))",
        fuel: None,
        expected: Expected::Value("[defined: email-stats"),
        direct: &[Direct { tool: "fetch-emails", arguments: "{}" }],
    },
    Step {
        title: "ask it something: who sent more than ten?",
        program: "(filter email-stats (lambda (s) (> (count s) 10)))",
        fuel: None,
        expected: Expected::Value("Build #"),
        direct: &[],
    },
    Step {
        title: "a triage report of all that is unread",
        program: r"(->> (fetch-emails :limit 1000 :unread_only true)
     (group-by sender)
     (map (fn [[who mails]]
            {:sender who
             :unread (count mails)
             :kb     (quot (reduce + (map :size mails)) 1024)
             :files  (count (mapcat :attachments mails))
             :oldest (subs (:date (last mails)) 0 10)}))
     (sort-by :unread >)
     (take 5))",
        fuel: None,
        expected: Expected::Value(":unread"),
        direct: &[Direct { tool: "fetch-emails", arguments: r#"{"limit":1000,"unread_only":true}"# }],
    },
    Step {
        title: "a slip of the pen",
        program: "(count (fetch-emials :limit 50))",
        fuel: None,
        expected: Expected::Error("Did you mean fetch-emails?"),
        direct: &[],
    },
    Step {
        title: "corrected as the answer suggests",
        program: "(count (fetch-emails :limit 50))",
        fuel: None,
        expected: Expected::Value("50"),
        direct: &[FIFTY],
    },
    Step {
        title: "a loop that never ends stops at its limit",
        program: "(loop [] (recur))",
        fuel: Some(1_000_000),
        expected: Expected::Error("LimitExceeded"),
        direct: &[],
    },
];
