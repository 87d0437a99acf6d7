"""The process that `trial.py start` leaves: it holds the servers of a trial, and answers the commands until its end."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

import connection
import records
import settings
import trial
from records import Record, Trial

# The size of a message between a command and the process, in bytes.
LARGEST = 64 << 20


def sheet(of: Trial) -> str:
    """Everything that a model sees before its first call."""
    tools = []
    for tool in of.connection.tools:
        schema = json.dumps(tool["input_schema"], ensure_ascii=False)
        tools.append(f"### {tool['name']}\n\n{tool['description']}\n\nArguments: {schema}")
    return "\n\n".join(["## System", of.system, "## Tools", *tools, "## User", of.task.prompt])


class Broker:
    """The process of a trial: holds the connection, and answers the commands until the trial ends."""

    def __init__(self, under_way: Trial, file: Path) -> None:
        self.trial, self.file = under_way, file
        self.ended = asyncio.Event()
        # One command at a time, so that the counts are in order.
        self.turn = asyncio.Lock()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            message = json.loads(await reader.readline())
            async with self.turn:
                reply = await self.reply(message)
        except connection.ServerGone as error:
            reply = self.end("server_error", reason=str(error))
        except ValueError as error:
            reply = {"failure": str(error)}
        writer.write(json.dumps(reply).encode() + b"\n")
        try:
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass  # The command has been interrupted; the call is counted.

    async def reply(self, message: trial.Message) -> trial.Message:
        if self.ended.is_set():
            return {"failure": "the trial has ended"}
        if message["do"] == "call":
            self.trial.record.rounds += 1
            reply = await self.trial.call(message["tool"], message["arguments"])
            return {"text": reply.text, "is_error": reply.is_error}
        if message["do"] == "answer":
            self.trial.record.rounds += 1
            self.trial.record.sure = message["sure"]
            return self.end("answered", answer=message["text"])
        return self.end("abandoned")

    def end(self, outcome: str, answer: str = "", reason: str = "") -> trial.Message:
        record = self.trial.end(outcome, answer, reason)
        records.append(self.file, record)
        self.ended.set()
        return {
            "right": record.right,
            "outcome": record.outcome,
            "calls": record.calls,
            "characters": record.characters,
            "errors": record.errors,
            "file": str(self.file),
        }


async def hold(options: argparse.Namespace) -> None:
    """Runs the process of a trial. Its first line of output is the sheet, as JSON."""
    setting = settings.of(options)
    record = Record(options.task, setting.mode, options.model, "manual", options.label)
    path = trial.socket_of(options.task)
    async with connection.connected(setting, options.task) as tools:
        broker = Broker(Trial(record, tools, options.instructions), options.records.absolute())
        server = await asyncio.start_unix_server(broker.handle, path, limit=LARGEST)
        try:
            print(json.dumps({"sheet": sheet(broker.trial)}), flush=True)
            # The command that has started this process reads no further.
            sys.stdout = sys.stderr
            async with asyncio.timeout(options.seconds):
                await broker.ended.wait()
        except TimeoutError:
            broker.end("out_of_time", reason=f"no answer within {options.seconds:g} s")
        finally:
            path.unlink(missing_ok=True)
            server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Holds the servers of a trial; `trial.py start` runs it.")
    trial.add_arguments(parser)
    asyncio.run(hold(parser.parse_args()))
