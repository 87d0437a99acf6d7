"""Trials by hand: a person or another agent plays the model.

    python trial.py tasks
    python trial.py start desk/open-count --lispbox PATH --records FILE --model NAME
    python trial.py call desk/open-count lisp_eval '{"program": "(dir)"}'
    python trial.py answer desk/open-count 'Answer: 42'

`start` leaves a process that holds the servers of the trial until its answer, and prints what a model would see.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import sets
import settings

Message = dict[str, Any]


def folder() -> Path:
    """The folder of the sockets, which only their owner can use: `LISPBOX_TRIALS`, or one for all trials of a user."""
    path = Path(os.environ.get("LISPBOX_TRIALS") or f"{tempfile.gettempdir()}/lispbox-trials-{os.getuid()}").absolute()
    path.mkdir(mode=0o700, exist_ok=True)
    if path.stat().st_uid != os.getuid() or path.stat().st_mode & 0o077:
        sys.exit(f"expected {path} to be a folder that only you can use; remove it")
    return path


def socket_of(task: str) -> Path:
    return folder() / (task.replace("/", ".") + ".sock")


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
    settings.of(options)  # Reports a missing binary here.
    if is_running(options.task):
        sys.exit(
            f"a trial of {options.task} is under way; end it with `trial.py answer` or `trial.py stop {options.task}`"
        )
    socket_of(options.task).unlink(missing_ok=True)
    log = socket_of(options.task).with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("holding.py"), *arguments],
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
        return {options.text: sys.stdin.read(), **options.more}
    text = sys.stdin.read() if options.arguments == "-" else options.arguments
    try:
        return json.loads(text)
    except ValueError:
        return text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `start`."""
    parser.add_argument("task", metavar="TASK")
    parser.add_argument(
        "--records",
        type=Path,
        default=Path("records.jsonl"),
        metavar="FILE",
        help="the file to which the record is added; records.jsonl by default",
    )
    parser.add_argument("--model", default="manual", metavar="NAME", help="who plays the model")
    parser.add_argument(
        "--label", default="", help="a name for these trials in the report, such as a version of lispbox"
    )
    parser.add_argument(
        "--instructions", action="store_true", help="add the server's instructions to the system prompt"
    )
    parser.add_argument("--seconds", type=float, default=3600.0, metavar="N", help="end the trial after this time")
    settings.add_arguments(parser)


def parser() -> argparse.ArgumentParser:
    out = argparse.ArgumentParser(description="Trials in which you play the model.")
    commands = out.add_subparsers(dest="command", required=True)
    commands.add_parser("tasks", help="list the names of the tasks")
    add_arguments(commands.add_parser("start", help="begin a trial and print what a model sees"))
    call = commands.add_parser("call", help="call a tool")
    call.add_argument("task", metavar="TASK")
    call.add_argument("tool", metavar="TOOL")
    call.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="a JSON object, or `-` for standard input"
    )
    call.add_argument("--text", metavar="NAME", help="instead of JSON, the argument NAME is the text of standard input")
    call.add_argument(
        "--more", type=json.loads, default={}, metavar="JSON", help="an object of further arguments, beside --text"
    )
    answer = commands.add_parser("answer", help="give the last message of the model, and have it judged")
    answer.add_argument("task", metavar="TASK")
    answer.add_argument("message", metavar="TEXT", help="the message, or `-` for standard input")
    answer.add_argument(
        "--sure", type=int, choices=range(101), metavar="0..100", help="how sure you are, in percent, which is recorded"
    )
    stop = commands.add_parser("stop", help="end a trial without an answer")
    stop.add_argument("task", metavar="TASK")
    return out


def main() -> None:
    options = parser().parse_args()
    if options.command == "tasks":
        print("\n".join(sets.tasks()))
    elif options.command == "start":
        start(options, sys.argv[2:])
    elif options.command == "call":
        reply = ask(options.task, {"do": "call", "tool": options.tool, "arguments": arguments_of(options)})
        if "outcome" in reply:
            sys.exit(f"the trial has ended: {reply['outcome']}; recorded in {reply['file']}")
        print(("[error]\n" if reply["is_error"] else "") + reply["text"])
    elif options.command == "answer":
        message = sys.stdin.read() if options.message == "-" else options.message
        reply = ask(options.task, {"do": "answer", "text": message, "sure": options.sure})
        print(
            f"{'right' if reply['right'] else 'wrong'}: {reply['calls']} calls, {reply['characters']} characters, "
            f"{reply['errors']} errors; recorded in {reply['file']}"
        )
    else:
        ask(options.task, {"do": "stop"})
        print(f"ended without an answer: {options.task}")


if __name__ == "__main__":
    main()
