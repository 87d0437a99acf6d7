"""The common part of the MCP servers of the data sets: tools, effects that survive a restart, and the protocol over
stdio."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = Any
Effect = dict[str, Json]

# The JSON types of the schemas, for the check of arguments.
TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "number": (int, float)}


class Refused(Exception):
    """A failure of a tool that is reported to the caller."""


@dataclass(frozen=True)
class Tool:
    """A tool: `run(state, **arguments)` returns JSON, or a text that is returned as it is."""

    name: str
    description: str
    input: Json
    run: Callable[..., Json]
    output: Json | None = None
    annotations: Json | None = None

    def listed(self) -> Json:
        """The tool as MCP lists it."""
        listed = {"name": self.name, "description": self.description, "inputSchema": self.input}
        if self.output is not None:
            listed["outputSchema"] = self.output
        if self.annotations is not None:
            listed["annotations"] = self.annotations
        return listed


@dataclass
class State:
    """The data of a set with the effects so far; subclasses hold the data and implement `apply`."""

    effects: list[Effect] = field(default_factory=list)
    file: Path | None = None

    def apply(self, effect: Effect) -> None:
        """Changes the data as the effect says. Raises `Refused` if it does not fit the data."""
        raise NotImplementedError

    def do(self, kind: str, **fields: Json) -> None:
        """Applies an effect and records it."""
        effect = {"kind": kind, **fields}
        self.apply(effect)
        self.effects.append(effect)
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(effect) + "\n")

    def restore(self, file: Path) -> None:
        """Applies the effects of a file, and records further ones in it."""
        for effect in effects_of(file):
            self.apply(effect)
            self.effects.append(effect)
        self.file = file


def effects_of(file: Path) -> list[Effect]:
    """The effects in a file; none if there is no file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def text(description: str | None = None, **more: Json) -> Json:
    return {"type": "string", **({"description": description} if description else {}), **more}


def whole(description: str, **more: Json) -> Json:
    return {"type": "integer", "description": description, **more}


def takes(*required: str, **properties: Json) -> Json:
    """The schema of the arguments of a tool."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def gives(**properties: Json) -> Json:
    """The schema of an object that a tool returns."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def check(tool: Tool, arguments: Json) -> None:
    """Raises `Refused` unless the arguments fit the tool's schema."""
    properties = tool.input["properties"]
    for name in tool.input["required"]:
        if name not in arguments:
            raise Refused(f"missing required argument: {name}")
    for name, value in arguments.items():
        if name not in properties:
            raise Refused(f"unknown argument: {name}; known ones: {', '.join(properties) or 'none'}")
        wanted = properties[name]
        if not isinstance(value, TYPES[wanted["type"]]) or (isinstance(value, bool) and wanted["type"] != "boolean"):
            raise Refused(f"argument {name} must be of type {wanted['type']}, got {json.dumps(value)}")
        if "enum" in wanted and value not in wanted["enum"]:
            raise Refused(f"argument {name} must be one of {', '.join(wanted['enum'])}, got {json.dumps(value)}")


def called(tool: Tool | None, state: State, arguments: Json) -> Json:
    """The result of a call as MCP returns it."""
    try:
        if tool is None:
            raise Refused("no such tool")
        check(tool, arguments)
        value = tool.run(state, **arguments)
    except Refused as error:
        return {"content": [{"type": "text", "text": str(error)}], "isError": True}
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    result = {"content": [{"type": "text", "text": shown}]}
    if tool.output is not None:
        result["structuredContent"] = value
    return result


def page_of(items: list[Json], page: int, size: int) -> list[Json]:
    """One page of a list; pages count from 1."""
    if page < 1:
        raise Refused(f"page must be 1 or greater, got {page}")
    return items[(page - 1) * size : page * size]


def serve(
    name: str, tools: list[Tool], state: State, call: Callable[..., Json] = called, is_parallel: bool = False
) -> None:
    """Answers requests on standard input until it ends: one after the other, or each in a thread if `is_parallel`.
    `call(tool, state, arguments)` makes a call of a tool."""
    by_name = {tool.name: tool for tool in tools}
    turn = threading.Lock()

    def answer(message: Json) -> None:
        method, params = message.get("method"), message.get("params") or {}
        reply: Json = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            reply["result"] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        elif method == "tools/list":
            reply["result"] = {"tools": [tool.listed() for tool in tools]}
        elif method == "tools/call":
            reply["result"] = call(by_name.get(params["name"]), state, params.get("arguments") or {})
        elif method == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": f"no such method: {method}"}
        with turn:
            print(json.dumps(reply), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if is_parallel:
            threading.Thread(target=answer, args=(message,), daemon=True).start()
        else:
            answer(message)
