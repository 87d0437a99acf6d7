"""Replays the calls of recorded trials, without a model, to compare the replies of two versions of lispbox.

Usage: `python replay.py records.jsonl --lispbox PATH [--label TEXT] [--largest 50] [--out FILE] [TASK …]`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import connection
import records
import sets
import settings
from connection import Reply, ServerGone
from records import Exchange, Record
from report import markdown
from settings import Setting

ANNOUNCED = re.compile(r"^\[session: (\S+)\]$", re.MULTILINE)


@dataclass(frozen=True)
class Replayed:
    """A recorded call, and its reply now."""

    task: str
    then: Exchange
    now: Reply


def with_session(arguments: dict[str, Any], handles: dict[str, str]) -> dict[str, Any]:
    """The arguments with the new handle of their session, if `handles` has one for the recorded handle."""
    session = arguments.get("session")
    if not isinstance(session, str) or session not in handles:
        return arguments
    return {**arguments, "session": handles[session]}


async def replay(setting: Setting, record: Record) -> list[Replayed]:
    """Makes the calls of a trial with fresh servers. Arguments that are no JSON object are not sent, as in the trial.
    A call that the server does not answer any more is an error."""
    replayed = []
    # The handles of sessions by the recorded ones: they are random.
    handles: dict[str, str] = {}
    async with connection.connected(setting, record.task) as tools:
        for then in record.exchanges:
            if not records.is_object(then.arguments):
                continue
            try:
                now = await tools.call(then.tool, with_session(then.arguments, handles))
            except ServerGone as error:
                now = Reply(f"ServerGone: {error}", True)
            handles.update(zip(ANNOUNCED.findall(then.reply), ANNOUNCED.findall(now.text)))
            replayed.append(Replayed(record.task, then, now))
    return replayed


def replayable(found: list[Record], tasks: list[str], label: str | None) -> list[Record]:
    """The records of trials of these tasks through lispbox, with any label or with the one given."""
    return [
        record
        for record in found
        if record.mode == "lispbox" and record.task in tasks and label in (None, record.label)
    ]


def characters(calls: list[Replayed]) -> list[str]:
    """The characters of all replies, then and now."""
    return [str(sum(len(call.then.reply) for call in calls)), str(sum(len(call.now.text) for call in calls))]


def table(calls: list[Replayed], largest: int) -> str:
    """The sums over all calls, and over those whose recorded replies were the largest."""
    errors = [sum(call.then.is_error for call in calls), sum(call.now.is_error for call in calls)]
    rows = [
        ["calls", str(len(calls)), str(len(calls))],
        ["characters", *characters(calls)],
        ["errors", *map(str, errors)],
    ]
    if largest:
        chosen = sorted(calls, key=lambda call: -len(call.then.reply))[:largest]
        rows.append([f"characters of the {len(chosen)} replies that were largest then", *characters(chosen)])
    return markdown(["", "then", "now"], rows, 1)


def new_errors(calls: list[Replayed]) -> str:
    """The replies that are errors now and were none then, by their first lines."""
    rows = [
        [call.task, call.then.tool, "".join(call.now.text.splitlines()[:1])]
        for call in calls
        if call.now.is_error and not call.then.is_error
    ]
    return markdown(["task", "tool", "new error"], rows, 3) if rows else "No reply is an error that was none then."


def line(call: Replayed) -> str:
    """A call as a line of JSON."""
    shown = {"task": call.task, "tool": call.then.tool, "then": call.then.reply, "now": call.now.text}
    return json.dumps(shown) + "\n"


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Replays the calls of recorded trials with another lispbox.")
    parser.add_argument("records", type=Path, metavar="FILE", help="the records of the trials")
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help="names such as desk/open-count, or desk, depot; all by default"
    )
    parser.add_argument("--label", metavar="TEXT", help="only trials with this label")
    parser.add_argument(
        "--largest", type=int, default=0, metavar="N", help="add the sum over the N largest recorded replies"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="write a line of JSON for each call, with both replies, to this file"
    )
    settings.add_arguments(parser)
    # Tasks may follow the options, which `parse_args` does not take in Python 3.11.
    options = parser.parse_intermixed_args(arguments)
    if options.direct:
        parser.error("--direct is of no use here: only trials through lispbox are replayed")
    if options.largest < 0:
        parser.error("--largest must be at least 0")
    if options.out and options.out.exists() and options.records.exists() and options.out.samefile(options.records):
        parser.error("--out must be another file than the records, which it would replace")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    try:
        names = sets.chosen(options.tasks)
        found = replayable(records.read(options.records), names, options.label)
    except ValueError as error:
        sys.exit(str(error))
    if not found:
        tasks = f" of {', '.join(options.tasks)}" if options.tasks else ""
        label = "" if options.label is None else f" with the label `{options.label}`"
        sys.exit(f"expected records of trials through lispbox{tasks}{label} in {options.records}, found none")
    setting = settings.of(options)
    if options.out:
        options.out.write_text("")
    calls = []
    for record in found:
        try:
            replayed = asyncio.run(replay(setting, record))
        except Exception as error:
            # Task groups of the client wrap what happened in groups.
            while isinstance(error, ExceptionGroup):
                error = error.exceptions[0]
            sys.exit(f"the servers for {record.task} failed: {type(error).__name__}: {error}")
        calls += replayed
        if options.out:
            with options.out.open("a", encoding="utf-8") as out:
                out.writelines(map(line, replayed))
        then, now = characters(replayed)
        print(f"{record.task}: {len(replayed)} calls, {then} characters then, {now} now", file=sys.stderr)
    print(f"{table(calls, options.largest)}\n\n{new_errors(calls)}")


if __name__ == "__main__":
    main()
