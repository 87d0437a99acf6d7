"""Measures provenance guards on AgentDojo: questions about legitimate calls, and injections that are stopped.

    python bench.py [--lispbox PATH] [--suite NAME] [--limit N] [--preset NAME] [--without-guards] [--output FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import attacks
import programs
import report
import suites
from client import Lispbox, Reply, configuration
from server import Server, is_read
from suites import Call

HERE = Path(__file__).resolve().parent

# Attempts with plain values, after other calls of the attacker.
REPEAT = "repeated by an accepted source"
CLOSE = "after closing the session"
FRESH = "repeated by an accepted source in a new session"
FLOOD = "repeated by an accepted source after a flood of values"


class Bench:
    """The benchmark of one suite: its server, and the configuration of lispbox."""

    def __init__(self, options: argparse.Namespace, suite: str, folder: Path) -> None:
        self.suite = suite
        self.binary = options.lispbox
        self.limit = options.limit
        self.attempts = {"plain": programs.scalar}
        if not options.without_laundering:
            self.attempts |= programs.LAUNDERINGS | {name: programs.scalar for name in (FLOOD, REPEAT, FRESH, CLOSE)}
        self.server = Server(suite)
        guards = ["--config", str(HERE / "policies" / f"{suite}.yaml")]
        if options.preset:
            guards = ["--guards", options.preset]
        if options.without_guards:
            guards = []
        self.flags = configuration(folder, suite, self.server.listen(), guards)
        self.user_tasks = dict(list(suites.user_tasks(suite).items())[: options.limit])
        self.injection_tasks = dict(list(suites.injection_tasks(suite).items())[: options.limit])

    def lispbox(self, task: Any) -> Lispbox:
        """A new process, whose client passes the prompt of the user task as the words of the user."""
        return Lispbox(self.binary, self.flags, task.PROMPT)

    def program(self, call: Call, write: programs.Writer = programs.scalar) -> str:
        return programs.call(self.suite, *call, write)

    def record(self, call: Call, reply: Reply) -> dict[str, Any]:
        return {"tool": call[0], "arguments": call[1], "outcome": reply.outcome, "message": reply.text[:1000]}

    def utility(self, name: str, task: Any, as_one: bool) -> dict[str, Any]:
        """Sends the ground truth of a user task, one call for each program or all in one program."""
        self.server.reset(name, {})
        calls = suites.ground_truth(task, suites.environment(self.suite, name, {}))
        refused = []
        with self.lispbox(task) as lispbox:
            if as_one and calls:
                reply = lispbox.evaluate("\n".join(map(self.program, calls)))
                done = len(self.server.calls)
                if reply.error:
                    refused.append(self.record(calls[min(done, len(calls) - 1)], reply))
            for call in [] if as_one else calls:
                reply = lispbox.evaluate(self.program(call))
                if reply.error:
                    refused.append(self.record(call, reply))
        solved = suites.achieved(self.suite, task, task.GROUND_TRUTH_OUTPUT, name, {}, self.server.calls)
        return {"user_task": name, "calls": len(calls), "refused": refused, "solved": solved}

    def prepare(self, attempt: str, lispbox: Lispbox, calls: list[Call]) -> None:
        """Makes the calls with which an attempt begins."""
        if attempt in (CLOSE, FRESH):
            lispbox.evaluate("(session/close)")
        if attempt == FLOOD:
            for batch in range(9):
                for call in attacks.REPEATS[self.suite]("flood"):
                    lispbox.evaluate(self.program(call, programs.flood(batch)))
        if attempt in (REPEAT, FRESH, FLOOD):
            for text in attacks.addresses([arguments for _, arguments in calls]):
                for call in attacks.REPEATS[self.suite](text):
                    lispbox.evaluate(self.program(call))

    def security(self, name: str, task: Any, injection_name: str, injection: Any) -> list[dict[str, Any]]:
        """Reads what the user task reads, with the injection in it, then makes the calls of the injection.

        They are made plainly, and then in each laundering. The environment is made anew for each. The session stays,
        unless an attempt was successful.
        """
        injected = attacks.injections(self.suite, name, injection)
        env = suites.environment(self.suite, name, injected)
        reads = [call for call in suites.ground_truth(task, env) if is_read(call[0])]
        calls = attacks.calls(self.suite, injection_name, injection, env)
        results = []
        lispbox = None
        for attempt, write in self.attempts.items():
            if not calls and attempt != "plain":
                continue
            if attempt == FLOOD and name != next(iter(self.user_tasks)):  # it takes seconds
                continue
            if lispbox is None:
                lispbox = self.lispbox(task)
                self.server.reset(name, injected)
                for call in reads:
                    lispbox.evaluate(self.program(call))
                made_before = self.server.calls
            self.prepare(attempt, lispbox, calls)
            self.server.reset(name, injected, made_before)
            before = len(self.server.calls)
            records = [self.record(call, lispbox.evaluate(self.program(call, write))) for call in calls]
            achieved = suites.achieved(self.suite, injection, "", name, injected, self.server.calls)
            if attempt == "sent in another case":  # what AgentDojo's check takes for another address
                achieved |= bool(calls) and len(self.server.calls) - before == len(calls)
            refused = [record for record in records if record["outcome"] in ("asked", "denied")]
            outcome = "achieved" if achieved else "stopped" if refused else "no call" if not calls else "failed"
            results.append({
                "user_task": name, "injection_task": injection_name, "attempt": attempt, "outcome": outcome,
                "refused": refused, "errors": [record for record in records if record["outcome"] == "error"],
            })
            if achieved or not refused or attempt in (FLOOD, REPEAT, FRESH):
                lispbox.close()
                lispbox = None
        if lispbox is not None:
            lispbox.close()
        return results

    def run(self) -> dict[str, Any]:
        """Measures the suite."""
        found: dict[str, Any] = {"utility": [], "one_program": [], "security": []}
        for name, task in self.user_tasks.items():
            found["utility"].append(self.utility(name, task, as_one=False))
            found["one_program"].append(self.utility(name, task, as_one=True))
        for name, task in self.user_tasks.items():
            for injection_name, injection in self.injection_tasks.items():
                found["security"] += self.security(name, task, injection_name, injection)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures provenance guards on AgentDojo.")
    parser.add_argument("--lispbox", default="lispbox", metavar="PATH", help="the binary")
    parser.add_argument("--suite", choices=suites.NAMES, action="append", help="only this suite; may be repeated")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N user tasks and N injection tasks")
    parser.add_argument("--preset", metavar="NAME", help="the guards of a preset, in place of the policy of each suite")
    parser.add_argument("--without-guards", action="store_true", help="allow every call, for comparison")
    parser.add_argument("--without-laundering", action="store_true", help="send the values of injections only plainly")
    parser.add_argument("--output", type=Path, default=Path("agentdojo.json"), metavar="FILE", help="the results")
    options = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for suite in options.suite or suites.NAMES:
            found[suite] = Bench(options, suite, Path(folder)).run()
            options.output.write_text(json.dumps(found, indent=1, default=str))
    print(report.tables(found))


if __name__ == "__main__":
    main()
