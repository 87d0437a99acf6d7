"""Records of trials: one line of JSON for each."""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sets
from connection import Connection, Reply
from mishaps.judging import Mishap
from serving import Effect

# Ends of a trial. Only `answered` and `cut_off` have an answer that may be right.
OUTCOMES = [
    "answered",
    "refused",
    "cut_off",
    "too_many_rounds",
    "out_of_time",
    "endpoint_error",
    "server_error",
    "abandoned",
]


@dataclass
class Exchange:
    """A call of a tool, and what the model read."""

    tool: str
    arguments: Any
    reply: str
    is_error: bool


@dataclass
class Record:
    """A trial. Characters are Unicode code points."""

    task: str
    mode: str
    model: str
    driver: str
    label: str
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    seconds: float = 0.0
    # Replies of the model.
    rounds: int = 0
    # Calls of tools, and those among them whose arguments were not a JSON object.
    calls: int = 0
    malformed: int = 0
    # Replies of tools: their characters, and those that are errors.
    characters: int = 0
    errors: int = 0
    # Characters of the system prompt and of the descriptions of the tools, which are there before the first call.
    offered: int = 0
    # As the endpoint reports them, over all rounds.
    input_tokens: int = 0
    output_tokens: int = 0
    # Requests that were repeated.
    retries: int = 0
    outcome: str = "abandoned"
    answer: str = ""
    # How sure whoever played was, in percent, if that was told.
    sure: int | None = None
    right: bool = False
    reason: str = ""
    # Whether the calls came to the moment at which a tool fails; of tasks without faults, nothing.
    met: bool | None = None
    effects: list[Effect] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


def is_object(arguments: Any) -> bool:
    """Whether the arguments of a call can be sent: a JSON object without lone surrogates, NaN and infinities."""
    try:
        json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return False
    return isinstance(arguments, dict)


class Trial:
    """A task under way: makes the calls, and counts."""

    def __init__(self, record: Record, connection: Connection, with_instructions: bool) -> None:
        self.record = record
        self.connection = connection
        self.task = sets.tasks()[record.task]
        said = connection.instructions if with_instructions else ""
        self.system = f"{sets.SYSTEM}\n\n{said}" if said else sets.SYSTEM
        self.begun = time.monotonic()
        record.offered = len(self.system) + len(json.dumps(connection.tools, ensure_ascii=False))

    async def call(self, tool: str, arguments: Any) -> Reply:
        """Calls a tool and counts the call. Arguments that are no JSON object are not sent."""
        if is_object(arguments):
            reply = await self.connection.call(tool, arguments)
        else:
            self.record.malformed += 1
            reply = Reply(f"the arguments of a call must be a JSON object in UTF-8, got: {arguments!r}", True)
        self.record.calls += 1
        self.record.characters += len(reply.text)
        self.record.errors += reply.is_error
        self.record.exchanges.append(Exchange(tool, arguments, reply.text, reply.is_error))
        return reply

    def end(self, outcome: str, answer: str = "", reason: str = "") -> Record:
        """Judges the trial. Without an answer it is wrong, for the reason given."""
        record = self.record
        record.seconds = round(time.monotonic() - self.begun, 3)
        record.effects = self.connection.effects()
        if isinstance(self.task, Mishap):
            record.met = self.task.is_met(self.connection.calls())
        record.outcome, record.answer = outcome, answer
        if outcome in ("answered", "cut_off"):
            verdict = self.task.judge(answer, record.effects)
            record.right, record.reason = verdict.is_right, verdict.reason
        else:
            record.reason = reason or outcome.replace("_", " ")
        return record


def append(file: Path, record: Record) -> None:
    """Adds a record to a file, in one piece, so that several trials can share it."""
    line = json.dumps(dataclasses.asdict(record)) + "\n"
    with file.open("ab", buffering=0) as out:
        out.write(line.encode())


def read(file: Path) -> list[Record]:
    """The records of a file; none if there is no file. Raises `ValueError` for a line that is not a record."""
    out = []
    for number, line in enumerate(file.read_text("utf-8").splitlines() if file.exists() else [], 1):
        try:
            fields = json.loads(line)
            fields["exchanges"] = [Exchange(**exchange) for exchange in fields["exchanges"]]
            out.append(Record(**fields))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{file}:{number} is not a record of a trial: {error}") from error
    return out
