"""The tools that a model has: those of lispbox with the server of a data set behind it, or those of that server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

import sets
from mishaps import faults
from mishaps.judging import Mishap
from serving import Effect, effects_of
from settings import Setting

SERVER = Path(__file__).with_name("server.py")
PING_SECONDS = 10.0
LEARN_SECONDS = 120.0


class ServerGone(Exception):
    """A server that does not answer any more."""


@dataclass(frozen=True)
class Reply:
    """The result of a call, as a model reads it."""

    text: str
    is_error: bool


@dataclass
class Connection:
    """Tools as `{"name", "description", "input_schema"}`, and calls of them."""

    session: ClientSession
    setting: Setting
    # The files of the effects and, of tools that fail, of the calls.
    folder: Path
    tools: list[dict[str, Any]] = field(default_factory=list)
    instructions: str = ""

    async def call(self, name: str, arguments: dict[str, Any]) -> Reply:
        """Calls a tool. Errors of the protocol are replies too. Raises `ServerGone` if the server does not answer."""
        if all(tool["name"] != name for tool in self.tools):
            return Reply(
                f"there is no tool {name}; the tools are {', '.join(tool['name'] for tool in self.tools)}", True
            )
        try:
            result = await self.session.call_tool(name, arguments, read_timeout_seconds=self.setting.call_seconds)
        except Exception as error:  # The SDK raises its own errors, those of the protocol and those of its validation.
            await self.require_server()
            return Reply(f"{type(error).__name__}: {error}", True)
        blocks = [block.text if block.type == "text" else f"[{block.type}]" for block in result.content]
        return Reply("\n".join(blocks), bool(result.is_error))

    async def require_server(self) -> None:
        try:
            await asyncio.wait_for(self.session.send_ping(), PING_SECONDS)
        except Exception as error:
            raise ServerGone(f"expected a reply to `ping`, got {type(error).__name__}: {error}") from error

    def effects(self) -> list[Effect]:
        """The effects of the calls so far."""
        return effects_of(self.folder / "effects.jsonl")

    def calls(self) -> list[dict[str, Any]]:
        """The calls of tools that fail so far, with the kind of fault that each has met."""
        return effects_of(self.folder / "calls.jsonl")


def learned(setting: Setting, config: Path, environment: dict[str, str]) -> None:
    """Lets lispbox learn about the tools, as far as the setting says. Raises `ValueError` if that fails."""
    if not (setting.is_sampled or setting.is_listed):
        return
    check = ["config", "check", *(["--sample"] if setting.is_sampled else []), "--config", str(config)]
    done = subprocess.run(
        [setting.lispbox, *check], env=environment, capture_output=True, text=True, timeout=LEARN_SECONDS
    )
    if done.returncode != 0:
        raise ValueError(f"`{' '.join(check[:-2])}` ended with {done.returncode}: {done.stdout}{done.stderr}")


def parameters(setting: Setting, name: str, folder: Path) -> StdioServerParameters:
    """The command that the client starts; files are in `folder`."""
    dataset, task = name.split("/")[0], sets.tasks().get(name)
    shown = sets.SERVERS.get(dataset, dataset)
    server = [str(SERVER), dataset, "--effects", str(folder / "effects.jsonl")]
    flags = list(setting.flags)
    if isinstance(task, Mishap):
        server += ["--calls", str(folder / "calls.jsonl"), "--faults", faults.written(task.faults)]
        flags += task.flags
    if setting.is_direct:
        return StdioServerParameters(command=sys.executable, args=server)
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": {shown: {"command": sys.executable, "args": server}}}))
    environment = {
        "HOME": str(folder),
        "LISPBOX_CACHE": str((setting.cache or folder / "cache").absolute()),
        "LISPBOX_LOG": os.environ.get("LISPBOX_LOG", "error"),
    }
    learned(setting, config, environment)
    (folder / "calls.jsonl").unlink(missing_ok=True)  # Faults count the calls of the trial alone.
    serve = ["serve", "--config", str(config), "--allow", f"{shown}/*", *flags]
    return StdioServerParameters(command=setting.lispbox, args=serve, env=environment)


@asynccontextmanager
async def connected(setting: Setting, name: str) -> AsyncIterator[Connection]:
    """Starts the servers of a task or of a data set with fresh data, and ends them."""
    with tempfile.TemporaryDirectory(prefix="lispbox-trial-", ignore_cleanup_errors=True) as held:
        folder = Path(held)
        async with stdio_client(parameters(setting, name, folder)) as (read, write):
            async with ClientSession(read, write) as session:
                hello = await session.initialize()
                connection = Connection(session, setting, folder, instructions=hello.instructions or "")
                listed = await session.list_tools()
                connection.tools = [
                    {"name": tool.name, "description": tool.description or "", "input_schema": tool.input_schema}
                    for tool in listed.tools
                ]
                yield connection
