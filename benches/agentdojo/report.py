"""The results as tables in Markdown."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import attacks

Found = dict[str, dict[str, list[dict[str, Any]]]]


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "–"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] + ["--:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def all_of(found: Found, kind: str) -> dict[str, list[dict[str, Any]]]:
    """The results of one kind for each suite, and of all suites."""
    of = {suite: results[kind] for suite, results in found.items()}
    return {**of, "total": [result for results in of.values() for result in results]} if len(of) > 1 else of


def is_asked(result: dict[str, Any], outcome: str) -> bool:
    return any(refused["outcome"] == outcome for refused in result["refused"])


def utility(found: Found, kind: str) -> str:
    rows = []
    for suite, results in all_of(found, kind).items():
        free = [result for result in results if not result["refused"]]
        counts = [sum(is_asked(result, outcome) for result in results) for outcome in ("asked", "denied", "error")]
        solved = sum(result["solved"] for result in results)
        rows.append([suite, str(len(results)), share(len(free), len(results)), *map(str, counts), str(solved)])
    head = ["suite", "user tasks", "without a question", "with a question", "denied", "other errors", "solved"]
    return table(head, rows)


def guard(message: str) -> str:
    """The guard and the argument that an error names, or the error."""
    found = re.search(r"`(policy\.guards\[\d+\])` of \S+ guards `([^`]+)`", message)
    if not found:
        return message.splitlines()[0][:120]
    return f"`{found.group(1)}`: `{re.sub(r'[0-9]+', '*', found.group(2))}`"


def questions(found: Found) -> str:
    """The legitimate calls that were refused, with the reason."""
    counts: Counter[tuple[str, str, str]] = Counter()
    tasks: dict[tuple[str, str, str], list[str]] = {}
    for suite, results in found.items():
        for result in results["utility"]:
            for refused in result["refused"]:
                key = (suite, refused["tool"], guard(refused["message"]).replace("|", "\\|"))
                counts[key] += 1
                tasks.setdefault(key, []).append(result["user_task"].removeprefix("user_task_"))
    rows = [[f"{suite}/{tool}", reason, str(count), ", ".join(dict.fromkeys(tasks[suite, tool, reason]))]
            for (suite, tool, reason), count in sorted(counts.items())]
    return table(["tool", "reason", "calls", "user tasks"], rows) if rows else "None."


def security(found: Found) -> str:
    rows = []
    for suite, results in all_of(found, "security").items():
        plain = Counter(result["outcome"] for result in results if result["attempt"] == "plain")
        calls = sum(plain.values()) - plain["no call"] - plain["failed"]
        rows.append([suite, str(sum(plain.values())), share(plain["stopped"], calls),
                     str(plain["achieved"]), str(plain["failed"]), str(plain["no call"])])
    return table(["suite", "pairs", "stopped", "achieved", "not possible", "no call"], rows)


def achieved(found: Found) -> str:
    """The injection tasks that were achieved, with the number of user tasks."""
    rows = []
    for suite, results in found.items():
        of: dict[str, list[str]] = {}
        tried: Counter[str] = Counter()
        for result in results["security"]:
            if result["attempt"] == "plain":
                tried[result["injection_task"]] += 1
                if result["outcome"] == "achieved":
                    of.setdefault(result["injection_task"], []).append(result["user_task"].removeprefix("user_task_"))
        for name, tasks in of.items():
            goal = attacks.suites.injection_tasks(suite)[name].GOAL.splitlines()[0][:90]
            which = "all" if len(tasks) == tried[name] else ", ".join(tasks)
            rows.append([suite, name.removeprefix("injection_task_"), goal, f"{len(tasks)} of {tried[name]}", which])
    return table(["suite", "injection task", "goal", "achieved", "with user tasks"], rows) if rows else "None."


def laundering(found: Found) -> str:
    """What each laundering achieved that the plain values did not."""
    rows = []
    results = all_of(found, "security")
    plain = {(suite, result["user_task"], result["injection_task"])
             for suite, of in found.items() for result in of["security"]
             if result["attempt"] == "plain" and result["outcome"] == "stopped"}
    attempts = dict.fromkeys(result["attempt"] for of in results.values() for result in of)
    for attempt in attempts:
        counts: Counter[str] = Counter()
        for suite, of in found.items():
            for result in of["security"]:
                if result["attempt"] == attempt and (suite, result["user_task"], result["injection_task"]) in plain:
                    counts[result["outcome"]] += 1
        outcomes = [str(counts[outcome]) for outcome in ("stopped", "achieved", "failed")]
        rows.append([attempt, str(sum(counts.values())), *outcomes])
    return table(["values", "pairs stopped when plain", "stopped", "achieved", "failed otherwise"], rows)


def tables(found: Found) -> str:
    parts = {
        "Utility, one call for each program": utility(found, "utility"),
        "Utility, all calls in one program": utility(found, "one_program"),
        "Legitimate calls that were refused": questions(found),
        "Injections": security(found),
        "Injections that were achieved": achieved(found),
        "Laundering": laundering(found),
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items())


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text())))
