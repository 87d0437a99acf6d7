"""Conversations with a model over the APIs of OpenAI (chat completions) and Anthropic (messages)."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

Json = Any

# Answers that are worth another attempt; 529 is Anthropic's for an overloaded service.
REPEATED = {408, 409, 425, 429, 500, 502, 503, 504, 529}
LONGEST_WAIT = 60.0
# For Anthropic's API, which requires a maximum.
MAX_TOKENS = 8192


class EndpointError(Exception):
    """An endpoint that cannot be used, or an answer that is not understood."""


@dataclass(frozen=True)
class Call:
    """A call that the model wants. The arguments are as they came if they are not a JSON object."""

    id: str
    tool: str
    arguments: Json


@dataclass(frozen=True)
class Turn:
    """A reply of the model. `stop` is `calls`, `end`, `refused` or `cut_off`."""

    text: str
    calls: list[Call]
    stop: str


@dataclass
class Endpoint:
    """Where a model is, and how it is asked."""

    url: str
    model: str
    key: str | None = None
    max_tokens: int | None = None
    # Further fields of each request, such as `{"temperature": 0}`.
    extra: Json = field(default_factory=dict)
    seconds: float = 300.0
    # How often a request is sent at most, and the wait before the second time, which doubles each time.
    attempts: int = 5
    backoff: float = 1.0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """Redirects are errors, so that the key is sent to no other host."""

    def redirect_request(self, *_: Any) -> None:
        return None


OPENER = urllib.request.build_opener(NoRedirect)


class Conversation:
    """The messages so far. Subclasses know an API."""

    path = ""

    def __init__(self, endpoint: Endpoint, system: str, tools: list[Json], prompt: str) -> None:
        self.endpoint, self.system, self.tools = endpoint, system, tools
        self.messages: list[Json] = [{"role": "user", "content": prompt}]
        self.input_tokens = self.output_tokens = self.retries = 0

    def headers(self) -> dict[str, str]:
        raise NotImplementedError

    def body(self) -> Json:
        raise NotImplementedError

    def understood(self, reply: Json) -> Turn:
        """The turn in a reply, whose message is added. Raises `KeyError`, `TypeError` and the like for another form."""
        raise NotImplementedError

    def add_results(self, results: list[tuple[Call, str, bool]]) -> None:
        """Adds the results of the calls of a turn: texts, and whether they are errors."""
        raise NotImplementedError

    def ask(self, deadline: float) -> Turn:
        """The next reply of the model. Raises `EndpointError`, also if there is none before the deadline, a time of
        `time.monotonic()`."""
        reply = self.post({**self.body(), **self.endpoint.extra}, deadline)
        try:
            return self.understood(reply)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise EndpointError(f"expected a reply of the API, got {json.dumps(reply)[:500]} ({error!r})") from error

    def post(self, body: Json, deadline: float) -> Json:
        """Sends a request, again after failures that may pass."""
        endpoint = self.endpoint
        request = urllib.request.Request(
            endpoint.url.rstrip("/") + self.path,
            json.dumps(body).encode(),
            {"content-type": "application/json", **self.headers()},
        )
        wait = endpoint.backoff
        for attempt in range(1, endpoint.attempts + 1):
            asked = None
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            try:
                with OPENER.open(request, timeout=min(left, endpoint.seconds)) as reply:
                    return json.loads(reply.read())
            except urllib.error.HTTPError as error:
                with error:
                    failure = f"HTTP {error.code}: {error.read(2000).decode(errors='replace')}"
                    asked = error.headers.get("retry-after")
                if error.code not in REPEATED:
                    raise EndpointError(self.without_key(failure)) from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                # No connection, none in time, one that was cut off, or a reply that is not JSON.
                failure = f"{type(error).__name__}: {error}"
            if attempt == endpoint.attempts:
                raise EndpointError(f"no reply after {attempt} attempts; the last one: {self.without_key(failure)}")
            self.retries += 1
            time.sleep(max(0.0, min(pause(asked, wait), deadline - time.monotonic())))
            wait *= 2
        raise EndpointError("expected at least 1 attempt")

    def without_key(self, text: str) -> str:
        """The text without the key, which an endpoint may repeat."""
        return text.replace(self.endpoint.key, "[key]") if self.endpoint.key else text


def pause(asked: str | None, otherwise: float) -> float:
    """Seconds to wait before the next attempt: as the server asks, or else as planned."""
    try:
        return min(float(asked), LONGEST_WAIT) if asked else min(otherwise, LONGEST_WAIT)
    except ValueError:
        return min(otherwise, LONGEST_WAIT)


class OpenAi(Conversation):
    """`POST /chat/completions`."""

    path = "/chat/completions"

    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.endpoint.key}"} if self.endpoint.key else {}

    def body(self) -> Json:
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool["description"],
                    "parameters": tool["input_schema"],
                },
            }
            for tool in self.tools
        ]
        system = {"role": "system", "content": self.system}
        most = {"max_completion_tokens": self.endpoint.max_tokens} if self.endpoint.max_tokens else {}
        return {"model": self.endpoint.model, "messages": [system, *self.messages], "tools": tools, **most}

    def understood(self, reply: Json) -> Turn:
        usage = reply.get("usage") or {}
        self.input_tokens += usage.get("prompt_tokens") or 0
        self.output_tokens += usage.get("completion_tokens") or 0
        choice = reply["choices"][0]
        message = choice["message"]
        calls = [
            Call(call["id"], call["function"]["name"], parsed(call["function"]["arguments"]))
            for call in message.get("tool_calls") or []
        ]
        self.messages.append(message)
        refusal = message.get("refusal")
        if refusal or choice.get("finish_reason") == "content_filter":
            return Turn(refusal or message.get("content") or "", [], "refused")
        cut_off = choice.get("finish_reason") == "length"
        return Turn(message.get("content") or "", calls, "calls" if calls else "cut_off" if cut_off else "end")

    def add_results(self, results: list[tuple[Call, str, bool]]) -> None:
        self.messages += [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text, _ in results]


class Anthropic(Conversation):
    """`POST /messages`."""

    path = "/messages"

    def headers(self) -> dict[str, str]:
        key = {"x-api-key": self.endpoint.key} if self.endpoint.key else {}
        return {"anthropic-version": "2023-06-01", **key}

    def body(self) -> Json:
        return {
            "model": self.endpoint.model,
            "system": self.system,
            "messages": self.messages,
            "tools": self.tools,
            "max_tokens": self.endpoint.max_tokens or MAX_TOKENS,
        }

    def understood(self, reply: Json) -> Turn:
        usage = reply.get("usage") or {}
        for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
            self.input_tokens += usage.get(name) or 0
        self.output_tokens += usage.get("output_tokens") or 0
        blocks = reply["content"]
        calls = [Call(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        self.messages.append({"role": "assistant", "content": blocks})
        if reply.get("stop_reason") == "refusal":
            return Turn(text, [], "refused")
        # A call that is cut off may lack arguments, so it is not made.
        if reply.get("stop_reason") == "max_tokens":
            return Turn(text, [], "cut_off")
        return Turn(text, calls, "calls" if calls else "end")

    def add_results(self, results: list[tuple[Call, str, bool]]) -> None:
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": is_error}
            for call, text, is_error in results
        ]
        self.messages.append({"role": "user", "content": blocks})


def parsed(arguments: Json) -> Json:
    """The arguments of a call, which OpenAI's API has as a text; that text if it is not JSON."""
    try:
        return json.loads(arguments) if arguments else {}
    except (ValueError, TypeError):
        return arguments


APIS: dict[str, type[Conversation]] = {"openai": OpenAi, "anthropic": Anthropic}
