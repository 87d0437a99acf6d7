"""An MCP server with the tools of one suite of AgentDojo.

The benchmark listens over HTTP within its own process, so that it can reset the environment and see the calls
without offering that to programs. For use by hand, the server also speaks over stdio:

    python server.py SUITE
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import suites

READS = ("get_", "search_", "list_", "read_", "check_")


def is_read(name: str) -> bool:
    """Whether a tool only reads, by its name."""
    return name.startswith(READS)


class Server:
    """The tools of a suite, an environment, and the calls that succeeded in it."""

    def __init__(self, suite: str) -> None:
        self.suite = suite
        self.runtime = suites.runtime(suite)
        self.reset(None, {})

    def reset(self, user_task: str | None, injections: dict[str, str], calls: list[suites.Call] | None = None) -> None:
        """Makes the environment anew, as it is after the calls."""
        self.env = suites.environment(self.suite, user_task, injections)
        self.calls: list[suites.Call] = []
        for name, arguments in calls or []:
            self.call(name, arguments)

    def tools(self) -> list[dict[str, Any]]:
        """The tools as MCP lists them. Those that only read say so."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters.model_json_schema(),
                "annotations": {"readOnlyHint": is_read(tool.name)},
            }
            for tool in suites.SUITES[self.suite].tools
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Calls a tool, and keeps the call if it succeeded."""
        value, error = self.runtime.run_function(self.env, name, arguments)
        if error is None:
            self.calls.append((name, arguments))
            value = suites.plain(value)
            text = value if isinstance(value, str) else "" if value is None else json.dumps(value)
        else:
            text = error
        return {"content": [{"type": "text", "text": text}], "isError": error is not None}

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The reply to a message, or nothing to a notification."""
        if "id" not in message:
            return None
        method, params = message.get("method"), message.get("params") or {}
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            reply["result"] = {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "agentdojo-" + self.suite, "version": suites.VERSION},
            }
        elif method == "tools/list":
            reply["result"] = {"tools": self.tools()}
        elif method == "tools/call":
            reply["result"] = self.call(params["name"], params.get("arguments") or {})
        elif method == "ping":
            reply["result"] = {}
        else:
            reply["error"] = {"code": -32601, "message": "no such method"}
        return reply

    def listen(self) -> str:
        """Serves over HTTP from a thread of its own, until the process ends. Returns the URL."""
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                reply = server.answer(json.loads(body))
                self.send(202 if reply is None else 200, b"" if reply is None else json.dumps(reply).encode())

            def do_GET(self) -> None:
                self.send(405, b"")

            do_DELETE = do_GET

            def send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        listener.daemon_threads = True
        threading.Thread(target=listener.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{listener.server_port}/mcp"


def main() -> None:
    server = Server(sys.argv[1])
    for line in sys.stdin:
        reply = server.answer(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
