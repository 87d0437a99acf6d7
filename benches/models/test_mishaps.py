"""Whether the judge sees effects that were not made exactly once, and whether tasks whose tools fail can be done."""

import asyncio
import dataclasses
import hashlib
import json
import tempfile
import unittest
from pathlib import Path

import connection
import report
import sets
from mishaps import data, solving, tools
from mishaps.faults import Fault, Faulty
from records import Record
from settings import Setting
from test_run import LISPBOX, needs_lispbox

# A task for each kind of fault.
KINDS = {
    "error": "mishaps/gold-tickets",
    "error-read": "mishaps/madrid-review",
    "lost": "mishaps/charge-graz",
    "shape": "mishaps/ship-leeds",
    "slow": "mishaps/charge-gold",
    "limit": "mishaps/consent-tickets",
}


def tools_by_name():
    return {tool.name: tool for tool in tools.TOOLS}


class Tasks(unittest.TestCase):
    def test_the_records_are_those_that_were_played(self):
        digest = hashlib.sha256(json.dumps(data.fresh()).encode()).hexdigest()[:16]
        self.assertEqual(digest, "d71d992bde27fe8f")

    def test_expected_answers_and_effects_are_right(self):
        names = sets.chosen([sets.MISHAPS])
        self.assertEqual(len(names), 30)
        self.assertFalse(set(names) & set(sets.chosen([])))
        for name in names:
            with self.subTest(name):
                task = sets.tasks()[name]
                verdict = task.judge(f"Answer: {task.check.example}", list(task.effects))
                self.assertTrue(verdict.is_right, verdict.reason)
                self.assertGreaterEqual(len(task.effects), 4)

    def test_every_kind_of_fault_has_a_task_that_is_played(self):
        self.assertEqual({sets.tasks()[name].kind: name for name in KINDS.values()}, KINDS)
        self.assertEqual({sets.tasks()[name].kind for name in sets.chosen([sets.MISHAPS])}, set(KINDS))


class Judge(unittest.TestCase):
    task = sets.tasks()["mishaps/remind-lyon"]
    answer = f"Answer: {task.check.example}"

    def judged(self, effects):
        verdict = self.task.judge(self.answer, effects)
        return verdict.is_right, verdict.reason

    def test_a_missing_effect_is_wrong(self):
        self.assertEqual(
            self.judged(list(self.task.effects[1:])),
            (False, "1 missing, such as send_mail ada.adler@example.org reminder: order o-1013"),
        )

    def test_a_repeated_effect_is_wrong_whatever_else_it_says(self):
        again = {**self.task.effects[0], "body": "Another text"}
        self.assertEqual(
            self.judged([*self.task.effects, again]),
            (False, "1 repeated, such as send_mail ada.adler@example.org reminder: order o-1013"),
        )

    def test_an_unexpected_effect_is_wrong(self):
        other = {"kind": "add_label", "order_id": "O-1013", "label": "late"}
        self.assertEqual(
            self.judged([*self.task.effects, other, other]),
            (
                False,
                "1 repeated, such as add_label o-1013 late; 1 not expected, such as add_label o-1013 late",
            ),
        )

    def test_a_wrong_answer_is_wrong_though_the_effects_are_right(self):
        self.assertFalse(self.task.judge("Answer: O-1013", list(self.task.effects)).is_right)

    def test_ids_of_new_tickets_may_come_in_any_order(self):
        task = sets.tasks()["mishaps/cancelled-tickets"]
        opened = [effect for effect in task.effects if effect["kind"] == "create_ticket"]
        labels = [effect for effect in task.effects if effect["kind"] == "add_label"]
        ids = [effect["label"] for effect in labels]
        turned = [{**effect, "label": id} for effect, id in zip(labels, reversed(ids))]
        self.assertTrue(task.tally([*reversed(opened), *turned]).is_exact)
        self.assertFalse(task.tally([*opened, *turned]).is_exact)

    def test_a_report_counts_effects_by_kind_of_fault(self):
        effects = list(self.task.effects)
        record = Record("mishaps/remind-lyon", "lispbox", "me", "manual", "", answer=self.answer, calls=3, sure=90)
        records = [
            dataclasses.replace(record, effects=effects, met=True),
            dataclasses.replace(record, effects=[*effects[1:], effects[1]], met=False, calls=4, sure=None),
            Record("desk/open-count", "lispbox", "me", "manual", ""),
        ]
        self.assertEqual(
            report.faults(records).splitlines()[2:],
            [f"| – | me | {kind} | 2 | 2 | 1 | 1 | 1 | 0 | 1 | 3.50 | 0.00 | 90.00 |" for kind in ("error", "all")],
        )


class Faults(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.calls = Path(held.name) / "calls.jsonl"
        self.state = tools.fresh()

    def call(self, faulty, name, **arguments):
        reply = faulty.called(tools_by_name()[name], self.state, arguments)
        return reply["content"][0]["text"], reply.get("isError", False)

    def test_a_call_is_refused_once_and_without_its_effect(self):
        faulty = Faulty((Fault("error", "close_ticket", at=2, text="busy"),), self.calls)
        replies = [self.call(faulty, "close_ticket", ticket_id=f"T-50{at}") for at in (1, 2, 2)]
        self.assertEqual([is_error for _, is_error in replies], [False, True, False])
        self.assertEqual(replies[1][0], "busy")
        self.assertEqual([effect["ticket_id"] for effect in self.state.effects], ["T-501", "T-502"])

    def test_a_lost_reply_has_had_its_effect(self):
        faulty = Faulty((Fault("lost", "close_ticket", at=1, text="timeout"),), self.calls)
        self.assertEqual(self.call(faulty, "close_ticket", ticket_id="T-501"), ("timeout", True))
        self.assertEqual(len(self.state.effects), 1)

    def test_a_result_has_another_shape_for_one_item(self):
        faulty = Faulty((Fault("shape", "get_customer", item="C-02", form="customer_wrapped"),), self.calls)
        for id, keys in (("C-01", 5), ("C-02", 1), ("C-02", 1)):
            self.assertEqual(len(json.loads(self.call(faulty, "get_customer", customer_id=id)[0])), keys)

    def test_calls_are_counted_on_after_a_restart(self):
        faults = (Fault("error", "close_ticket", at=2, text="busy"),)
        self.call(Faulty(faults, self.calls), "close_ticket", ticket_id="T-501")
        self.assertEqual(self.call(Faulty(faults, self.calls), "close_ticket", ticket_id="T-502"), ("busy", True))


async def solved(name):
    """The verdict on a task that its script has done, and whether it has met the fault."""
    setting = Setting(lispbox=LISPBOX, flags=("--reply-within", "4s"), is_listed=True, call_seconds=6)
    async with connection.connected(setting, name) as server:
        answer = await solving.solve(server, name.split("/")[1])
        task = sets.tasks()[name]
        return task.judge(answer, server.effects()), task.is_met(server.calls())


async def all_solved():
    return await asyncio.gather(*(solved(name) for name in KINDS.values()))


@needs_lispbox
class Solutions(unittest.TestCase):
    def test_a_task_of_each_kind_of_fault_is_done_with_each_effect_once(self):
        for name, (verdict, is_met) in zip(KINDS.values(), asyncio.run(all_solved())):
            with self.subTest(name):
                self.assertTrue(verdict.is_right, verdict.reason)
                self.assertTrue(is_met)

    def test_every_task_has_a_script(self):
        names = [f"mishaps/{part.removeprefix('task: ')}" for part in solving.parts() if part.startswith("task: ")]
        self.assertEqual(names, sets.chosen([sets.MISHAPS]))


if __name__ == "__main__":
    unittest.main()
