"""Trials by hand: a person or another agent plays the model.

    python trial.py tasks
    python trial.py start desk/open-count --lispbox PATH --records FILE --model NAME
    python trial.py call desk/open-count lisp_eval '{"program": "(dir)"}'
    python trial.py answer desk/open-count 'Answer: 42'

`start` leaves a process that holds the servers of the trial until its answer, and prints what a model would see.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import connection
import records
import sets
from records import Record, Trial

Message = dict[str, Any]

# The size of a message between the command and the process of a trial, in bytes.
LARGEST = 64 << 20


def folder() -> Path:
    """The folder of the sockets, which only their owner can use: `LISPBOX_TRIALS`, or one for all trials of a user."""
    path = Path(os.environ.get("LISPBOX_TRIALS") or f"{tempfile.gettempdir()}/lispbox-trials-{os.getuid()}").absolute()
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o077:
        sys.exit(f"expected {path} to be a folder that only you can use; remove it")
    return path


def socket_of(task: str) -> Path:
    return folder() / (task.replace("/", ".") + ".sock")


def sheet(trial: Trial) -> str:
    """Everything that a model sees before its first call."""
    tools = []
    for tool in trial.connection.tools:
        schema = json.dumps(tool["input_schema"], ensure_ascii=False)
        tools.append(f"### {tool['name']}\n\n{tool['description']}\n\nArguments: {schema}")
    return "\n\n".join(["## System", trial.system, "## Tools", *tools, "## User", trial.task.prompt])


class Broker:
    """The process of a trial: holds the connection, and answers the commands until the trial ends."""

    def __init__(self, trial: Trial, file: Path) -> None:
        self.trial, self.file = trial, file
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

    async def reply(self, message: Message) -> Message:
        if self.ended.is_set():
            return {"failure": "the trial has ended"}
        if message["do"] == "call":
            self.trial.record.rounds += 1
            reply = await self.trial.call(message["tool"], message["arguments"])
            return {"text": reply.text, "is_error": reply.is_error}
        if message["do"] == "answer":
            self.trial.record.rounds += 1
            return self.end("answered", answer=message["text"])
        return self.end("abandoned")

    def end(self, outcome: str, answer: str = "", reason: str = "") -> Message:
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
    setting = connection.setting(options)
    record = Record(options.task, setting.mode, options.model, "manual", options.label)
    path = socket_of(options.task)
    async with connection.connected(setting, options.task.split("/")[0]) as tools:
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


def ask(task: str, message: Message) -> Message:
    """Sends a command to the process of a trial. Exits if there is none, or if it refuses."""
    reply = b""
    try:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(socket_of(task)))
            link.sendall(json.dumps(message).encode() + b"\n")
            while not reply.endswith(b"\n"):
                part = link.recv(1 << 20)
                if not part:
                    break
                reply += part
    except (FileNotFoundError, ConnectionRefusedError):
        sys.exit(f"no trial of {task} is under way; begin one with `trial.py start {task}`")
    found = json.loads(reply) if reply else {"failure": "its process has ended"}
    if "failure" in found:
        sys.exit(f"the trial of {task} did not do that: {found['failure']}")
    return found


def is_running(task: str) -> bool:
    """Whether a process answers at the socket of a task."""
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(str(socket_of(task)))
        except OSError:
            return False
        return True


def start(options: argparse.Namespace, arguments: list[str]) -> None:
    try:
        names = sets.chosen([options.task])
    except ValueError as error:
        sys.exit(str(error))
    if names != [options.task]:
        sys.exit(f"expected one task, such as {names[0]}, got the data set {options.task}")
    connection.setting(options)  # Reports a missing binary here.
    if is_running(options.task):
        sys.exit(
            f"a trial of {options.task} is under way; end it with `trial.py answer` or `trial.py stop {options.task}`"
        )
    socket_of(options.task).unlink(missing_ok=True)
    log = socket_of(options.task).with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, "hold", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline()
    if not line:
        sys.exit(f"the servers of the trial did not start: {log.read_text().strip()[-2000:]}")
    print(json.loads(line)["sheet"])


def arguments_of(options: argparse.Namespace) -> Any:
    """The arguments of `call`: JSON, or as they came if they are no JSON."""
    if options.text:
        return {options.text: sys.stdin.read()}
    text = sys.stdin.read() if options.arguments == "-" else options.arguments
    try:
        return json.loads(text)
    except ValueError:
        return text


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description="Trials in which you play the model.")
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("tasks", help="list the names of the tasks")
    for name, text in (
        ("start", "begin a trial and print what a model sees"),
        ("hold", "the process that `start` leaves"),
    ):
        one = commands.add_parser(name, help=text)
        one.add_argument("task", metavar="TASK")
        one.add_argument(
            "--records",
            type=Path,
            default=Path("records.jsonl"),
            metavar="FILE",
            help="the file to which the record is added; records.jsonl by default",
        )
        one.add_argument("--model", default="manual", metavar="NAME", help="who plays the model")
        one.add_argument(
            "--label", default="", help="a name for these trials in the report, such as a version of lispbox"
        )
        one.add_argument(
            "--instructions", action="store_true", help="add the server's instructions to the system prompt"
        )
        one.add_argument("--seconds", type=float, default=3600.0, metavar="N", help="end the trial after this time")
        connection.add_arguments(one)
    call = commands.add_parser("call", help="call a tool")
    call.add_argument("task", metavar="TASK")
    call.add_argument("tool", metavar="TOOL")
    call.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="a JSON object, or `-` for standard input"
    )
    call.add_argument("--text", metavar="NAME", help="instead of JSON, the argument NAME is the text of standard input")
    answer = commands.add_parser("answer", help="give the last message of the model, and have it judged")
    answer.add_argument("task", metavar="TASK")
    answer.add_argument("message", metavar="TEXT", help="the message, or `-` for standard input")
    stop = commands.add_parser("stop", help="end a trial without an answer")
    stop.add_argument("task", metavar="TASK")
    return out


def main() -> None:
    options = parser().parse_args()
    if options.command == "tasks":
        print("\n".join(sets.tasks()))
    elif options.command == "start":
        start(options, sys.argv[2:])
    elif options.command == "hold":
        asyncio.run(hold(options))
    elif options.command == "call":
        reply = ask(options.task, {"do": "call", "tool": options.tool, "arguments": arguments_of(options)})
        if "outcome" in reply:
            sys.exit(f"the trial has ended: {reply['outcome']}; recorded in {reply['file']}")
        print(("[error]\n" if reply["is_error"] else "") + reply["text"])
    elif options.command == "answer":
        message = sys.stdin.read() if options.message == "-" else options.message
        reply = ask(options.task, {"do": "answer", "text": message})
        print(
            f"{'right' if reply['right'] else 'wrong'}: {reply['calls']} calls, {reply['characters']} characters, "
            f"{reply['errors']} errors; recorded in {reply['file']}"
        )
    else:
        ask(options.task, {"do": "stop"})
        print(f"ended without an answer: {options.task}")


if __name__ == "__main__":
    main()
