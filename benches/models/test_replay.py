import contextlib
import io
import json
import tempfile
import unittest
from pathlib import Path

import records
import replay
from connection import Reply
from records import Exchange, Record
from test_run import LISPBOX, needs_lispbox


def record(*exchanges, task="desk/open-count", mode="lispbox", label="old"):
    return Record(task, mode, "scripted", "endpoint", label, exchanges=list(exchanges))


def evaluated(program, reply, is_error=False, **more):
    return Exchange("lisp_eval", {"program": program, **more}, reply, is_error)


class WithFiles(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.file = Path(held.name) / "records.jsonl"
        self.out = Path(held.name) / "out.jsonl"

    def replayed(self, *arguments):
        """What is printed, and the lines of the file."""
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
            replay.main([str(self.file), "--lispbox", LISPBOX, "--out", str(self.out), *arguments])
        return shown.getvalue(), [json.loads(line) for line in self.out.read_text().splitlines()]

    def refused(self, *arguments):
        """The message with which the tool ends."""
        shown = io.StringIO()
        with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(shown):
            replay.main([str(self.file), *arguments])
        return shown.getvalue() if ended.exception.code == 2 else ended.exception.code


class WithoutServers(WithFiles):
    def test_a_file_without_such_records_is_refused(self):
        nothing = f"expected records of trials through lispbox{{}} in {self.file}, found none"
        self.assertEqual(self.refused(), nothing.format(""))
        records.append(self.file, record(mode="direct"))
        self.assertEqual(self.refused(), nothing.format(""))
        records.append(self.file, record(task="desk/subject"))
        self.assertEqual(self.refused("depot", "--label", "old"), nothing.format(" of depot with the label `old`"))
        self.assertEqual(self.refused("desk", "--label", ""), nothing.format(" of desk with the label ``"))
        self.file.write_text("{}\n")
        self.assertIn("records.jsonl:1 is not a record of a trial", self.refused())

    def test_options_without_sense_are_refused(self):
        records.append(self.file, record())
        self.assertIn("no task or data set `desk/nope`", self.refused("desk/nope"))
        self.assertIn("expected the binary of lispbox", self.refused("--lispbox", "/no/such"))
        self.assertIn("--direct is of no use here", self.refused("--direct"))
        self.assertIn("--largest must be at least 0", self.refused("--largest", "-1"))
        self.assertIn("--out must be another file", self.refused("--out", str(self.file)))

    def test_a_server_that_does_not_start_ends_the_replay(self):
        records.append(self.file, record(evaluated("1", "1")))
        self.assertIn("the servers for desk/open-count failed: ", self.refused("--lispbox", "false"))

    def test_the_table_has_the_sums(self):
        calls = [
            replay.Replayed("desk/subject", evaluated("1", "a" * then, is_error), Reply("b" * now, now == 7))
            for then, now, is_error in [(10, 1, False), (30, 20, False), (20, 7, True), (5, 7, False)]
        ]
        shown = replay.table(calls, 2)
        self.assertIn("| calls | 4 | 4 |\n| characters | 65 | 35 |\n| errors | 1 | 2 |", shown)
        self.assertIn("| characters of the 2 replies that were largest then | 50 | 27 |", shown)
        self.assertNotIn("largest", replay.table(calls, 0))
        self.assertTrue(replay.new_errors(calls).endswith("| --- |\n| desk/subject | lisp_eval | bbbbbbb |"))
        self.assertEqual(replay.new_errors(calls[:3]), "No reply is an error that was none then.")

    def test_only_known_handles_are_replaced(self):
        handles = {"then": "now"}
        self.assertEqual(
            replay.with_session({"program": "then", "session": "then"}, handles), {"program": "then", "session": "now"}
        )
        for arguments in ({"program": "then"}, {"session": "other"}, {"session": ["then"]}):
            self.assertEqual(replay.with_session(arguments, handles), arguments)


@needs_lispbox
class ThroughLispbox(WithFiles):
    def test_calls_are_made_in_the_sessions_of_now(self):
        records.append(
            self.file,
            record(
                evaluated("(def n 41)", "[defined: n]\n[session: first]"),
                Exchange("lisp_eval", '{"program": ', "the arguments of a call must be a JSON object", True),
                evaluated("(inc n)", "forty-two", session="first"),
                evaluated("n", "UnknownSession: there is none", True, session="other"),
                Exchange("no_such_tool", {}, "[]", False),
            ),
        )
        shown, lines = self.replayed("--largest", "1")
        self.assertEqual([line["tool"] for line in lines], ["lisp_eval"] * 3 + ["no_such_tool"])
        self.assertRegex(lines[0]["now"], r"^\[defined: n\]\n\[session: \w+\]$")
        self.assertEqual(lines[1], {"task": "desk/open-count", "tool": "lisp_eval", "then": "forty-two", "now": "42"})
        self.assertIn("UnknownSession", lines[2]["now"])
        self.assertIn("| calls | 4 | 4 |", shown)
        self.assertIn("| errors | 1 | 2 |", shown)
        self.assertIn("largest then | 29 | ", shown)
        self.assertIn("| desk/open-count | no_such_tool | there is no tool no_such_tool;", shown)

    def test_each_trial_has_fresh_servers_and_can_be_chosen(self):
        change = '(desk/update_ticket {:key "SUP-1001" :add_tags ["x"]})'
        tagged = '(contains? (set (:tags (desk/get_ticket {:key "SUP-1001"}))) "x")'
        records.append(self.file, record(evaluated(change, "done"), evaluated(tagged, "true")))
        records.append(self.file, record(evaluated(tagged, "false"), task="desk/subject"))
        records.append(self.file, record(evaluated("1", "1"), task="desk/notices"))
        records.append(self.file, record(evaluated("1", "1"), label="new"))
        shown, lines = self.replayed("desk/subject", "desk/open-count", "--label", "old")
        self.assertEqual([line["now"].splitlines()[0] for line in lines[1:]], ["true", "false"])
        self.assertIn("| calls | 3 | 3 |", shown)
        self.assertIn("No reply is an error that was none then.", shown)


if __name__ == "__main__":
    unittest.main()
