"""The records of trials as tables in Markdown.

Usage: `python report.py records.jsonl [--wrong] [--largest 50] [--faults]`
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import records
import sets
from mishaps.judging import Mishap
from records import Record

HEAD = ["trials", "model", "data set", "tools", "tasks", "right", "calls", "characters", "without an error", "rounds"]
HEAD += ["largest reply", "input tokens", "output tokens"]
FAULTS_HEAD = ["trials", "model", "fault", "tasks", "answer right", "each effect once", "missing", "repeated"]
FAULTS_HEAD += ["not expected", "fault not met", "calls", "errors", "sure"]


def cell(text: str) -> str:
    """A cell of a table: one line, without what cannot be printed."""
    text = text.encode(errors="backslashreplace").decode()
    return " ".join(text.replace("|", "\\|").split())


def markdown(head: list[str], rows: list[list[str]], texts: int) -> str:
    """A table whose first columns are texts and whose others are numbers."""
    lines = [head, ["---"] * texts + ["--:"] * (len(head) - texts), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines)


def grouped(found: list[Record]) -> dict[tuple[str, str, str, str], list[Record]]:
    """The records of the same trials, model, data set and tools, and of both data sets together."""
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for record in found:
        for dataset in (record.task.split("/")[0], "all"):
            groups.setdefault((record.label, record.model, dataset, record.mode), []).append(record)
    sets = {(label, model, mode): set() for label, model, _, mode in groups}
    for label, model, dataset, mode in groups:
        sets[label, model, mode].add(dataset)
    return {key: of for key, of in groups.items() if key[2] != "all" or len(sets[key[0], key[1], key[3]]) > 2}


def mean(values: list[int]) -> str:
    """The mean with two decimals, or with none if it has four digits."""
    value = sum(values) / len(values)
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}"


def table(found: list[Record]) -> str:
    """One row for each group. Calls, characters, rounds and tokens are means for a task."""
    rows = []
    for (label, model, dataset, mode), of in grouped(found).items():
        largest = max((len(exchange.reply) for record in of for exchange in record.exchanges), default=0)
        tokens = [
            mean([getattr(record, name) for record in of]) if any(getattr(record, name) for record in of) else "–"
            for name in ("input_tokens", "output_tokens")
        ]
        rows.append(
            [
                label or "–",
                model,
                dataset,
                mode,
                str(len(of)),
                str(sum(record.right for record in of)),
                mean([record.calls for record in of]),
                mean([record.characters for record in of]),
                str(sum(record.errors == 0 for record in of)),
                mean([record.rounds for record in of]),
                str(largest),
                *tokens,
            ]
        )
    return markdown(HEAD, rows, 4)


def outcomes(found: list[Record]) -> str:
    """How many trials ended otherwise than with an answer."""
    counts = Counter(
        (record.label or "–", record.model, record.mode, record.outcome)
        for record in found
        if record.outcome != "answered"
    )
    return markdown(
        ["trials", "model", "tools", "outcome", "tasks"], [[*key, str(count)] for key, count in counts.items()], 4
    )


def wrong(found: list[Record]) -> str:
    rows = [
        [record.label or "–", record.model, record.mode, record.task, record.outcome, record.reason[:300]]
        for record in found
        if not record.right
    ]
    return markdown(["trials", "model", "tools", "task", "outcome", "reason"], rows, 6)


def largest(found: list[Record], count: int) -> str:
    """The largest replies of tools."""
    replies = [
        (len(exchange.reply), record.label or "–", record.model, record.mode, record.task, exchange.tool)
        for record in found
        for exchange in record.exchanges
    ]
    replies.sort(key=lambda reply: -reply[0])
    return markdown(
        ["trials", "model", "tools", "task", "tool", "characters"],
        [[*reply[1:], str(reply[0])] for reply in replies[:count]],
        5,
    )


def faults(found: list[Record]) -> str:
    """The tasks with faults by kind. Effects are counted over all tasks; calls, errors and sureness are means."""
    groups: dict[tuple[str, str, str], list[tuple[Record, Mishap]]] = {}
    for record in found:
        task = sets.tasks().get(record.task)
        if isinstance(task, Mishap):
            for kind in (task.kind, "all"):
                groups.setdefault((record.label or "–", record.model, kind), []).append((record, task))
    rows = []
    for key, of in sorted(groups.items(), key=lambda group: (*group[0][:2], group[0][2] == "all")):
        tallies = [task.tally(record.effects) for record, task in of]
        sure = [record.sure for record, _ in of if record.sure is not None]
        counts = [
            len(of),
            sum(task.is_answer(record.answer) for record, task in of),
            sum(tally.is_exact for tally in tallies),
            sum(len(tally.missing) for tally in tallies),
            sum(len(tally.repeated) for tally in tallies),
            sum(len(tally.unexpected) for tally in tallies),
            sum(record.met is False for record, _ in of),
        ]
        means = [
            mean(values) if values else "–" for values in ([r.calls for r, _ in of], [r.errors for r, _ in of], sure)
        ]
        rows.append([*key, *map(str, counts), *means])
    return markdown(FAULTS_HEAD, rows, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description="Prints the records of trials as tables.")
    parser.add_argument("records", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--wrong", action="store_true", help="list the tasks that were not done right")
    parser.add_argument("--largest", type=int, default=0, metavar="N", help="list the N largest replies")
    parser.add_argument("--faults", action="store_true", help="count the effects of the tasks whose tools fail")
    options = parser.parse_args()
    found = [record for file in options.records for record in records.read(file)]
    parts = [table(found)]
    if any(record.outcome != "answered" for record in found):
        parts.append(outcomes(found))
    if options.wrong:
        parts.append(wrong(found))
    if options.faults:
        parts.append(faults(found))
    if options.largest:
        parts.append(largest(found, options.largest))
    print("\n\n".join(parts))


if __name__ == "__main__":
    main()
