"""An endpoint on this machine that plays a model from a script, for the tests of the runner. It speaks the APIs of
OpenAI and Anthropic."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any


@dataclass(frozen=True)
class Says:
    """A reply of the model. The arguments of a call are JSON, or a text that is sent as it is."""

    text: str = ""
    calls: list[tuple[str, Json]] = field(default_factory=list)
    # `refused` or `cut_off`, if it ends so.
    stop: str = ""


@dataclass(frozen=True)
class Fails:
    """An answer of the endpoint that is not a reply of a model."""

    status: int
    body: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)


def openai(step: Says, count: int) -> Json:
    calls = [
        {
            "id": f"call-{count}-{at}",
            "type": "function",
            "function": {"name": tool, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for at, (tool, given) in enumerate(step.calls)
    ]
    finish = {"refused": "content_filter", "cut_off": "length"}.get(step.stop, "tool_calls" if calls else "stop")
    message = {"role": "assistant", "content": step.text or None, **({"tool_calls": calls} if calls else {})}
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
    }


def anthropic(step: Says, count: int) -> Json:
    content = [{"type": "text", "text": step.text}] if step.text else []
    content += [
        {"type": "tool_use", "id": f"call-{count}-{at}", "name": tool, "input": given}
        for at, (tool, given) in enumerate(step.calls)
    ]
    stop = {"refused": "refusal", "cut_off": "max_tokens"}.get(step.stop, "tool_use" if step.calls else "end_turn")
    return {
        "role": "assistant",
        "content": content,
        "stop_reason": stop,
        "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 10},
    }


class Scripted:
    """Serves a script, one step for each request, and repeats the last one. Keeps the requests: path, headers, body."""

    def __init__(self, *script: Says | Fails) -> None:
        self.script = script
        self.requests: list[tuple[str, dict[str, str], Json]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                step = endpoint.script[min(len(endpoint.requests), len(endpoint.script) - 1)]
                endpoint.requests.append(
                    (self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                )
                if isinstance(step, Says):
                    said = (openai if self.path.endswith("/chat/completions") else anthropic)(
                        step, len(endpoint.requests)
                    )
                    step = Fails(200, json.dumps(said))
                self.send_response(step.status)
                for name, value in {"content-type": "application/json", **step.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(step.body.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> Scripted:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
