"""lispbox as an MCP client sees it: a process over stdio, with one session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REVISION = "2025-06-18"


@dataclass
class Reply:
    """The reply to one program: its text and, if it failed, the code of the error."""

    text: str
    error: str | None

    @property
    def outcome(self) -> str:
        """`ok`, `asked`, `denied`, or `error` for any other error."""
        known = {None: "ok", "ToolNeedsApproval": "asked", "ToolDenied": "denied"}
        return known.get(self.error, "error")


def configuration(folder: Path, suite: str, url: str, guards: list[str]) -> list[str]:
    """Writes the configuration of a suite, in which the annotations of its tools decide nothing; returns its flags."""
    servers = folder / f"{suite}.yaml"
    servers.write_text(
        f"servers:\n  - {{ name: {suite}, transport: http, url: {url} }}\npolicy: {{ allow: ['{suite}/*'] }}\n"
    )
    return ["--config", str(servers), *guards]


class Lispbox:
    """`lispbox serve` and its session. The client shows no forms, so a question is an error."""

    def __init__(self, binary: str, flags: list[str], user: str) -> None:
        self.user = user
        self.count = 0
        self.process = subprocess.Popen(
            [binary, "serve", "--no-quarantine", *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "LISPBOX_LOG": "error"},
        )
        client = {"name": "agentdojo", "version": "1"}
        self.request("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        assert self.process.stdout is not None and self.process.stderr is not None
        self.count += 1
        try:
            self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
            for line in self.process.stdout:
                message = json.loads(line)
                if message.get("id") == self.count and "method" not in message:
                    if "error" in message:
                        raise RuntimeError(message["error"])
                    return message["result"]
        except BrokenPipeError:
            pass
        self.process.terminate()
        sys.exit("lispbox has ended: " + self.process.stderr.read())

    def evaluate(self, program: str) -> Reply:
        """Sends a program, with the user's words."""
        result = self.request("tools/call", {
            "name": "lisp_eval", "arguments": {"program": program}, "_meta": {"lispbox/user": self.user},
        })
        text = "\n".join(block.get("text", "") for block in result["content"])
        error = (result.get("structuredContent") or {}).get("error", "error") if result.get("isError") else None
        if error == "InternalError":
            self.close()
            sys.exit(f"{text}\n{program}")
        return Reply(text, error)

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                pipe.close()
        self.process.terminate()
        self.process.wait()

    def __enter__(self) -> Lispbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
