"""Does the tasks of the shop by scripts: a first program, which meets the fault, and what puts it right."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from connection import Connection, Reply

ROUNDS = 20


@cache
def parts() -> dict[str, str]:
    """The parts of `solutions.lisp` by name, such as `readers` and `task: remind-lyon`."""
    text = Path(__file__).with_name("solutions.lisp").read_text("utf-8")
    _, *found = re.split(r"^;; (readers|tolerant|common|(?:task|rest): \S+)\n", text, flags=re.MULTILINE)
    return dict(zip(found[::2], found[1::2]))


def value_of(reply: Reply) -> str:
    """A reply without its notes."""
    return "\n".join(line for line in reply.text.splitlines() if not line.startswith("["))


async def solve(tools: Connection, name: str) -> str:
    """The answer to a task. Goes on with a run that has failed, or makes the rest where that does not do."""
    found = parts()
    first, corrected = (found[readers] + found["common"] for readers in ("readers", "tolerant"))
    task, rest = found[f"task: {name}"], found.get(f"rest: {name}")
    reply = await tools.call("lisp_eval", {"program": first + task})
    for _ in range(ROUNDS):
        runs = re.findall(r'"run": "(\w+)"', reply.text)
        if reply.text.startswith("[running"):
            following = {"run": runs[-1]}
        elif rest and (runs or '"more"' in reply.text):
            following = {"program": corrected + rest}
        elif reply.is_error and runs:
            following = {"run": runs[-1], "program": corrected + task, "reads": "logged"}
        elif reply.is_error:
            following = {"program": corrected + task}
        else:
            return value_of(reply)
        reply = await tools.call("lisp_eval", following)
    raise AssertionError(f"{name} is not done after {ROUNDS} calls: {reply.text}")
