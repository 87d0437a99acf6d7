"""Faults of tools at awkward moments."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from serving import Json, Refused, State, Tool, called, check, effects_of

# How long tools take without a fault, in seconds.
DELAYS = {"export_item": 0.2}

# Other shapes of results, by name.
FORMS: dict[str, Callable[[Any], Any]] = {
    "order_total_text": lambda it: {**it, "total": f"{it['total']:,.2f} EUR"},
    "order_lines_object": lambda it: {**it, "lines": {line["sku"]: line["quantity"] for line in it["lines"]}},
    "customer_wrapped": lambda it: {"customer": it},
    "customer_emails": lambda it: {**it, "email": None, "emails": [it["email"]]},
    "orders_keyed": lambda it: {**it, "orders": {row["id"]: row for row in it["orders"]}},
    "ticket_text": lambda it: f"Ticket {it['id']} was opened.",
    "shipment_wrapped": lambda it: {"shipment": it},
    "charge_list": lambda it: [it],
}


@dataclass(frozen=True)
class Fault:
    """A fault of a tool: once, at its `at`-th call, or whenever an argument is `item`. Its kind is

    - `error`: the call is refused with `text` before its effect;
    - `lost`: the effect is made, and the reply is the error `text`;
    - `slow`: the effect is made, and the reply comes after `seconds`;
    - `shape`: the result has the form `form` of `FORMS`;
    - `delay`: every call of the tool takes `seconds`.
    """

    kind: str
    tool: str
    at: int = 0
    item: str = ""
    text: str = ""
    seconds: float = 0.0
    form: str = ""


def written(faults: tuple[Fault, ...]) -> str:
    """The faults as `read` reads them."""
    return json.dumps([asdict(fault) for fault in faults])


def read(text: str) -> tuple[Fault, ...]:
    return tuple(Fault(**fault) for fault in json.loads(text))


def failed(text: str) -> Json:
    """The result of a call that has failed."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


class Faulty:
    """Calls of tools with faults. The calls are kept in a file, so that their numbers survive a restart."""

    def __init__(self, faults: tuple[Fault, ...], calls: Path) -> None:
        self.calls = calls
        self.sudden = [fault for fault in faults if fault.kind != "delay"]
        self.delays = {**DELAYS, **{fault.tool: fault.seconds for fault in faults if fault.kind == "delay"}}
        self.counts = Counter(call["tool"] for call in effects_of(calls))
        # Calls that change something, or take their time, are made one after the other.
        self.turn, self.records = threading.Lock(), threading.Lock()

    def called(self, tool: Tool | None, state: State, arguments: Json) -> Json:
        """The result of a call, as `serving.called` returns it without faults."""
        if tool is None or (tool.annotations == {"readOnlyHint": True} and tool.name not in self.delays):
            return self.carried_out(tool, state, arguments)
        with self.turn:
            return self.carried_out(tool, state, arguments)

    def carried_out(self, tool: Tool | None, state: State, arguments: Json) -> Json:
        with self.records:
            fault = self.met(tool, arguments)
            if fault and fault.kind == "error":
                return failed(fault.text)
            result = called(tool, state, arguments)
        if tool:
            time.sleep(fault.seconds if fault and fault.kind == "slow" else self.delays.get(tool.name, 0))
        if fault and fault.kind == "lost":
            return failed(fault.text)
        if fault and fault.kind == "shape" and "isError" not in result:
            shaped = FORMS[fault.form](json.loads(result["content"][0]["text"]))
            result["content"][0]["text"] = shaped if isinstance(shaped, str) else json.dumps(shaped)
        return result

    def met(self, tool: Tool | None, arguments: Json) -> Fault | None:
        """Counts a call that fits the tool's schema, and returns the fault that it meets."""
        try:
            if tool is None:
                return None
            check(tool, arguments)
        except Refused:
            return None
        self.counts[tool.name] += 1
        fault = next((one for one in self.sudden if one.tool == tool.name and self.is_met(one, arguments)), None)
        with self.calls.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"tool": tool.name, "fault": fault and fault.kind}) + "\n")
        return fault

    def is_met(self, fault: Fault, arguments: Json) -> bool:
        return fault.at == self.counts[fault.tool] or (fault.item != "" and fault.item in arguments.values())
