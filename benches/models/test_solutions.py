"""Whether the tools of the data sets, called by programs, give the answers that were computed from the records."""

import asyncio
import json
import re
import unittest
from pathlib import Path

import connection
import sets
from settings import Setting
from test_run import LISPBOX, needs_lispbox


def programs(dataset):
    """The programs by the names of their tasks, each with the common definitions before it."""
    text = (Path(__file__).parent / dataset / "solutions.lisp").read_text("utf-8")
    common, *parts = re.split(r"^;; task: (\S+)\n", text, flags=re.MULTILINE)
    return {name: common + program for name, program in zip(parts[::2], parts[1::2])}


async def solved(dataset, program):
    """The value of a program with fresh data, and its effects."""
    async with connection.connected(Setting(lispbox=LISPBOX), dataset) as tools:
        reply = await tools.call("lisp_eval", {"program": program})
        if reply.is_error:
            raise AssertionError(reply.text)
        value = reply.text.splitlines()[0]
        return json.loads(value) if value.startswith('"') else value, tools.effects()


@needs_lispbox
class Solutions(unittest.TestCase):
    def test_every_task_has_a_right_program(self):
        for dataset in sets.DATASETS:
            found = programs(dataset)
            self.assertEqual([f"{dataset}/{name}" for name in found], sets.chosen([dataset]))
            for name, program in found.items():
                with self.subTest(f"{dataset}/{name}"):
                    value, effects = asyncio.run(solved(dataset, program))
                    verdict = sets.tasks()[f"{dataset}/{name}"].judge(f"Answer: {value}", effects)
                    self.assertTrue(verdict.is_right, verdict.reason)


if __name__ == "__main__":
    unittest.main()
