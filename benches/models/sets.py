"""The data sets and their tasks by name, such as `desk/open-count`."""

from __future__ import annotations

import importlib
from functools import cache

from judge import Task

DATASETS = ["desk", "depot"]
# The set whose tools fail, which is chosen only by name.
MISHAPS = "mishaps"
# The names of servers that differ from those of their sets.
SERVERS = {MISHAPS: "shop"}

SYSTEM = (
    "You do what a user asks, with tools. It is Friday, 20 November 2026, 12:00 UTC; no real time passes. Nobody can "
    "answer questions, so do not ask any. When you are done, end with a line that begins with `Answer:` and has the "
    "bare result: a number, a name, or a list separated by commas, without remarks. Write `Answer: done` if there is "
    "nothing to tell, and `Answer: none` for an empty list."
)


@cache
def tasks() -> dict[str, Task]:
    """All tasks of all data sets by their full names."""
    found = {}
    for dataset in [*DATASETS, MISHAPS]:
        for task in importlib.import_module(f"{dataset}.tasks").tasks():
            found[f"{dataset}/{task.name}"] = task
    return found


def chosen(patterns: list[str]) -> list[str]:
    """The full names of the tasks that are named, or whose data set is named; those of `DATASETS` if nothing is. Raises
    `ValueError` for a name that fits no task."""
    names = list(tasks())
    for pattern in patterns:
        if pattern not in names and pattern not in [*DATASETS, MISHAPS]:
            raise ValueError(
                f"no task or data set `{pattern}`; the data sets are {', '.join([*DATASETS, MISHAPS])}, a task is for "
                f"example {names[0]}; `trial.py tasks` lists all"
            )
    wanted = patterns or DATASETS
    return [name for name in names if name in wanted or name.split("/")[0] in wanted]
