"""Decides whether each effect of a task was made exactly once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from judge import Task, Verdict, Wrong, answer_of
from mishaps import tools
from mishaps.faults import Fault
from serving import Effect

# The arguments that tell effects apart; others, such as the body of a mail, are free.
KEYS = {
    "send_mail": ["to", "subject"],
    "create_ticket": ["customer_id", "title"],
    "close_ticket": ["ticket_id"],
    "mark_shipped": ["order_id"],
    "add_label": ["order_id", "label"],
    "charge": ["order_id", "amount"],
    "export_item": ["order_id", "format"],
}

Key = tuple[str, ...]


def plain(value: Any) -> str:
    """A number with two decimals, or a text in lower case without a period at its end."""
    return f"{value:.2f}" if isinstance(value, (int, float)) else " ".join(str(value).lower().split()).rstrip(".")


def keys(effects: list[Effect]) -> Counter[Key]:
    """How often each effect was made. A label that is the id of a ticket made before is named by the ticket's title,
    since ids depend on the order."""
    state, titles = tools.fresh(), {}
    found: Counter[Key] = Counter()
    for effect in effects:
        state.apply(effect)
        if effect["kind"] == "create_ticket":
            titles[state.reply["id"]] = f"ticket {effect['title']}"
        values = {**effect, "label": titles.get(effect.get("label"), effect.get("label"))}
        found[effect["kind"], *(plain(values[name]) for name in KEYS[effect["kind"]])] += 1
    return found


@dataclass(frozen=True)
class Tally:
    """Effects that are not as they have to be; one that was made three times is there twice."""

    missing: list[Key]
    repeated: list[Key]
    unexpected: list[Key]

    @property
    def is_exact(self) -> bool:
        return not (self.missing or self.repeated or self.unexpected)

    def __str__(self) -> str:
        named = [("missing", self.missing), ("repeated", self.repeated), ("not expected", self.unexpected)]
        return "; ".join(f"{len(found)} {name}, such as {' '.join(found[0])}" for name, found in named if found)


@dataclass(frozen=True)
class Mishap(Task):
    """A task with the faults that its tools have, and with further flags of `lispbox serve`."""

    kind: str = ""
    faults: tuple[Fault, ...] = ()
    flags: tuple[str, ...] = ()

    def tally(self, effects: list[Effect]) -> Tally:
        made, wanted = keys(effects), keys(list(self.effects))
        further = made - wanted
        return Tally(
            missing=list((wanted - made).elements()),
            repeated=[key for key, count in further.items() for _ in range(count - (key not in wanted))],
            unexpected=[key for key in further if key not in wanted],
        )

    def is_answer(self, message: str) -> bool:
        """Whether the answer is right, whatever the effects are."""
        try:
            self.check.require(answer_of(message))
        except Wrong:
            return False
        return True

    def judge(self, message: str, effects: list[Effect]) -> Verdict:
        tally = self.tally(effects)
        try:
            self.check.require(answer_of(message))
        except Wrong as reason:
            return Verdict(False, f"{reason}; {tally}" if not tally.is_exact else str(reason))
        return Verdict(tally.is_exact, str(tally))

    def is_met(self, calls: list[dict[str, Any]]) -> bool:
        """Whether the calls came to the moment of the fault. Slow tools and limits are always met."""
        has_moment = any(fault.kind != "delay" for fault in self.faults)
        return not has_moment or any(call["fault"] for call in calls)
