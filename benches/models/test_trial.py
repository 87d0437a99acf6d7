import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import records

LISPBOX = os.environ.get("LISPBOX")
TRIAL = Path(__file__).with_name("trial.py")
TASK = "desk/reassign"


class ByHand(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.file = self.folder / "records.jsonl"

    def trial(self, *arguments, text=""):
        environment = {**os.environ, "LISPBOX_TRIALS": str(self.folder / "s")}
        return subprocess.run(
            [sys.executable, TRIAL, *arguments], env=environment, input=text, capture_output=True, text=True
        )

    def start(self, *more):
        begun = self.trial(
            "start", TASK, "--direct", "--records", str(self.file), "--model", "me", "--label", "by hand", *more
        )
        self.assertEqual(begun.returncode, 0, begun.stderr)
        return begun.stdout

    def test_a_trial_is_played_and_recorded(self):
        shown = self.start()
        self.assertIn("### update_ticket", shown)
        self.assertTrue(
            shown.endswith(
                "Kenji Mori has left. Give his open tickets (only the open ones) to Wei Chen, and tell me "
                "how many there were.\n"
            )
        )
        found = []
        for page in (1, 2):
            reply = self.trial("call", TASK, "list_tickets", json.dumps({"status": "open", "page": page}))
            found += [
                ticket
                for ticket in json.loads(reply.stdout)["tickets"]
                if (ticket["assignee"] or {}).get("name") == "Kenji Mori"
            ]
        self.assertEqual(self.trial("call", TASK, "get_ticket", '{"key": ').stdout.splitlines()[0], "[error]")
        # The state of the servers lasts from command to command.
        for ticket in found:
            self.trial("call", TASK, "update_ticket", "-", text=json.dumps({"key": ticket["key"], "assignee_id": 24}))
        moved = json.loads(self.trial("call", TASK, "get_ticket", "--text", "key", text=found[0]["key"]).stdout)
        self.assertEqual(moved["assignee_id"], 24)
        judged = self.trial("answer", TASK, f"Answer: {len(found)}")
        self.assertTrue(judged.stdout.startswith(f"right: {4 + len(found)} calls, "), judged.stdout + judged.stderr)
        [record] = records.read(self.file)
        self.assertEqual(
            (record.driver, record.model, record.label, record.mode), ("manual", "me", "by hand", "direct")
        )
        self.assertEqual((record.right, record.errors, record.malformed), (True, 1, 1))
        over = self.trial("call", TASK, "list_agents")
        self.assertEqual(over.stderr, f"no trial of {TASK} is under way; begin one with `trial.py start {TASK}`\n")

    @unittest.skipUnless(LISPBOX, "LISPBOX does not name a binary")
    def test_tools_that_are_sampled_are_in_the_instructions(self):
        options = ("--lispbox", LISPBOX, "--records", str(self.file), "--sample", "--instructions")
        begun = self.trial("start", TASK, *options)
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertRegex(begun.stdout, r"\n  \(desk/list_customers [^\n]* -> seen \{:columns ")
        self.trial("stop", TASK)
        refused = self.trial("start", TASK, "--direct", "--sample")
        self.assertIn("--sample is of no use with --direct", refused.stderr)

    @unittest.skipUnless(LISPBOX, "LISPBOX does not name a binary")
    def test_a_task_whose_tools_fail_is_played_and_counted(self):
        task = "mishaps/silver-tickets"
        options = (
            "--lispbox",
            LISPBOX,
            "--records",
            str(self.file),
            "--listed",
            "--instructions",
            "--call-seconds",
            "6",
        )
        begun = self.trial("start", task, *options, "--flag=--reply-within=4s")
        self.assertEqual(begun.returncode, 0, begun.stderr)
        self.assertIn("(shop/create_ticket ", begun.stdout)
        self.assertNotIn("mishaps", begun.stdout)
        program = '(shop/create_ticket {:customer_id "C-02" :title "Offer: upgrade to gold"})'
        made = self.trial("call", task, "lisp_eval", "--text", "program", text=program)
        again = self.trial("call", task, "lisp_eval", "--text", "program", "--more", '{"repeat": true}', text=program)
        self.assertIn("T-571", made.stdout)
        self.assertIn("T-572", again.stdout)
        judged = self.trial("answer", task, "T-571", "--sure", "60")
        self.assertTrue(judged.stdout.startswith("wrong: 2 calls, "), judged.stdout + judged.stderr)
        [record] = records.read(self.file)
        self.assertEqual((record.sure, record.met), (60, False))
        self.assertIn("15 missing, such as create_ticket ", record.reason)
        self.assertIn("1 repeated, such as create_ticket c-02 offer: upgrade to gold", record.reason)

    def test_trials_end_without_an_answer_too(self):
        self.start()
        again = self.trial("start", TASK, "--direct")
        self.assertIn("is under way", again.stderr)
        self.assertEqual(self.trial("stop", TASK).returncode, 0)
        self.assertEqual(records.read(self.file)[0].outcome, "abandoned")

    def test_wrong_names_are_explained(self):
        self.assertIn("no task or data set `desk/nope`", self.trial("start", "desk/nope", "--direct").stderr)
        self.assertIn("expected the binary of lispbox", self.trial("start", TASK, "--lispbox", "/no/such").stderr)
        self.assertIn(TASK, self.trial("tasks").stdout.split())


if __name__ == "__main__":
    unittest.main()
