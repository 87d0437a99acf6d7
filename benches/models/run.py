"""Trials of a model behind an endpoint.

Usage: `python run.py --endpoint https://api.example.com/v1 --api openai --model NAME --key-env API_KEY`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import connection
import records
import sets
import settings
from endpoints import APIS, Conversation, Endpoint, EndpointError
from records import Record, Trial
from report import table
from settings import Setting


@dataclass(frozen=True)
class Plan:
    """How trials are run."""

    endpoint: Endpoint
    api: str
    setting: Setting
    label: str = ""
    with_instructions: bool = False
    max_rounds: int = 30
    seconds: float = 900.0


async def converse(plan: Plan, trial: Trial) -> Record:
    """Lets the model make calls until it answers. Every way in which it does not is an outcome."""
    talk = APIS[plan.api](plan.endpoint, trial.system, trial.connection.tools, trial.task.prompt)
    deadline = trial.begun + plan.seconds
    try:
        return await rounds(plan, trial, talk, deadline)
    except EndpointError as error:
        return trial.end("endpoint_error", reason=str(error))
    except TimeoutError:
        return trial.end("out_of_time", reason=f"no answer within {plan.seconds:g} s")
    finally:
        trial.record.input_tokens, trial.record.output_tokens = talk.input_tokens, talk.output_tokens
        trial.record.retries = talk.retries


async def rounds(plan: Plan, trial: Trial, talk: Conversation, deadline: float) -> Record:
    for _ in range(plan.max_rounds):
        # A request is given up at the deadline by itself, so that its thread ends too.
        turn = await asyncio.to_thread(talk.ask, deadline)
        trial.record.rounds += 1
        if turn.stop != "calls":
            return trial.end({"end": "answered"}.get(turn.stop, turn.stop), turn.text)
        results = []
        for call in turn.calls:
            async with asyncio.timeout(deadline - time.monotonic()):
                reply = await trial.call(call.tool, call.arguments)
            results.append((call, reply.text, reply.is_error))
        talk.add_results(results)
    return trial.end("too_many_rounds", reason=f"no answer after {plan.max_rounds} rounds")


async def run(plan: Plan, name: str) -> Record:
    """Runs one task with fresh servers. Failures of the servers are an outcome too."""
    record = Record(name, plan.setting.mode, plan.endpoint.model, "endpoint", plan.label)
    try:
        async with connection.connected(plan.setting, name) as tools:
            return await converse(plan, Trial(record, tools, plan.with_instructions))
    except Exception as error:
        # Task groups of the client wrap what happened in groups.
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        if record.outcome == "abandoned":
            record.outcome, record.reason = "server_error", f"{type(error).__name__}: {error}"
        return record


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs tasks with a model behind an endpoint.")
    parser.add_argument(
        "tasks",
        nargs="*",
        metavar="TASK",
        help="names such as desk/open-count, or desk, depot, mishaps; desk and depot by default",
    )
    parser.add_argument(
        "--endpoint", required=True, metavar="URL", help="the base of the API, such as https://api.example.com/v1"
    )
    parser.add_argument("--api", required=True, choices=list(APIS))
    parser.add_argument("--model", required=True, metavar="NAME")
    parser.add_argument("--key-env", metavar="VAR", help="the variable that has the key")
    parser.add_argument(
        "--records",
        type=Path,
        default=Path("records.jsonl"),
        metavar="FILE",
        help="the file to which the records are added; records.jsonl by default",
    )
    parser.add_argument(
        "--label", default="", help="a name for these trials in the report, such as a version of lispbox"
    )
    parser.add_argument("--missing", action="store_true", help="only tasks without such a record in the file")
    parser.add_argument(
        "--instructions",
        action="store_true",
        help="add the server's instructions to the system prompt, as some clients do",
    )
    parser.add_argument(
        "--max-rounds", type=int, default=30, metavar="N", help="replies of the model for a task, at most"
    )
    parser.add_argument("--seconds", type=float, default=900.0, metavar="N", help="time for a task")
    parser.add_argument("--request-seconds", type=float, default=300.0, metavar="N", help="time for a request")
    parser.add_argument("--attempts", type=int, default=5, metavar="N", help="how often a request is sent, at most")
    parser.add_argument(
        "--backoff", type=float, default=1.0, metavar="SECONDS", help="the wait before the second attempt; it doubles"
    )
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="tokens of a reply; by default those of the endpoint"
    )
    parser.add_argument(
        "--extra",
        type=json.loads,
        default={},
        metavar="JSON",
        help="further fields of each request, such as '{\"temperature\": 0}'",
    )
    settings.add_arguments(parser)
    options = parser.parse_args(arguments)
    if not options.endpoint.startswith(("http://", "https://")):
        parser.error(f"--endpoint must begin with http:// or https://, got {options.endpoint}")
    if options.attempts < 1 or options.max_rounds < 1:
        parser.error("--attempts and --max-rounds must be at least 1")
    if not isinstance(options.extra, dict):
        parser.error("--extra must be a JSON object")
    if options.key_env and not os.environ.get(options.key_env):
        parser.error(f"expected the key in the variable {options.key_env}, which is empty or not set")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    try:
        names = sets.chosen(options.tasks)
    except ValueError as error:
        sys.exit(str(error))
    endpoint = Endpoint(
        options.endpoint,
        options.model,
        os.environ[options.key_env] if options.key_env else None,
        options.max_tokens,
        options.extra,
        options.request_seconds,
        options.attempts,
        options.backoff,
    )
    plan = Plan(
        endpoint,
        options.api,
        settings.of(options),
        options.label,
        options.instructions,
        options.max_rounds,
        options.seconds,
    )
    known = {(record.task, record.mode, record.model, record.label) for record in records.read(options.records)}
    done = []
    for name in names:
        if options.missing and (name, plan.setting.mode, options.model, options.label) in known:
            continue
        record = asyncio.run(run(plan, name))
        records.append(options.records, record)
        done.append(record)
        verdict = "right" if record.right else f"wrong ({record.outcome}): {record.reason[:160]}"
        print(f"{name}: {verdict}; {record.calls} calls, {record.characters} characters", file=sys.stderr)
    print(table(done))


if __name__ == "__main__":
    main()
