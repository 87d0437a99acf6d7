"""Decides whether an answer and its effects are right.

The answer is what follows the last `Answer:` until an empty line, or the last message if there is none. The effects
are the changes that the tools made, which have to be exactly the expected ones; a task without effects expects none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from serving import Effect

NUMBER = re.compile(r"(?<![\w.\-/:])[-−]?\d+(?:\.\d+)?(?![\d/:]|-\d|\.\d)")
NOTHING = {"", "none", "nobody", "no one", "-", "–", "0", "nothing", "empty"}


@dataclass(frozen=True)
class Verdict:
    is_right: bool
    reason: str = ""


class Wrong(Exception):
    """The reason why an answer is wrong."""


@dataclass(frozen=True)
class Check:
    """A check of an answer: raises `Wrong` with the reason. The example is a right answer."""

    example: str
    require: Callable[[str], None]


def answer_of(message: str) -> str:
    """The answer in the last message of a model."""
    plain = re.sub(r"[*_`#]*\s*\banswer\b\s*[*_`]*\s*:\s*[*_`]*", "\nAnswer: ", message, flags=re.IGNORECASE)
    parts = re.split(r"^Answer: ", plain, flags=re.MULTILINE)
    return parts[-1].strip().split("\n\n")[0].strip()


def without_separators(text: str) -> str:
    """The text without thousands separators and currency signs."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"[€$£]\s*", "", text).replace("−", "-")


def items_of(text: str) -> list[str]:
    """The items of a list: separated by commas, semicolons, line ends or `and`, without bullets, quotes and remarks
    in parentheses, in lower case."""
    text = re.sub(r"\([^)]*\)|[\[\]]", " ", text)
    parts = re.split(r"[,;\n]|\band\b", text)
    parts = [re.sub(r"^\s*(?:[-*•]\s+|\d+[.)]\s+)", "", part) for part in parts]
    parts = [" ".join(part.strip(" \t.\"'`*“”").lower().split()) for part in parts]
    return [part for part in parts if part]


def number(wanted: float | Decimal | int, tolerance: float = 0) -> Check:
    """The answer has this number and no other."""

    def check(text: str) -> None:
        found = {Decimal(one.replace("−", "-")) for one in NUMBER.findall(without_separators(text))}
        if len(found) != 1:
            raise Wrong(f"expected one number, {wanted}, got {', '.join(map(str, sorted(found))) or 'none'}")
        if abs(found.pop() - Decimal(str(wanted))) > Decimal(str(tolerance)):
            raise Wrong(f"expected {wanted}, got {text.strip()}")

    return Check(str(wanted), check)


def items(wanted: list[str], is_ordered: bool = False) -> Check:
    """The answer is a list of exactly these items, in this order if `is_ordered`. An empty list is `none`."""

    def check(text: str) -> None:
        found = items_of(text)
        if not wanted and (not found or found[0] in NOTHING):
            return
        lower = [one.lower() for one in wanted]
        if (found if is_ordered else sorted(set(found))) != (lower if is_ordered else sorted(set(lower))):
            missing = [one for one in lower if one not in found]
            extra = [one for one in found if one not in lower]
            raise Wrong(
                f"expected {', '.join(wanted) or 'none'}; missing: {', '.join(missing) or 'none'}; "
                f"not expected: {', '.join(extra) or 'none'}"
            )

    return Check(", ".join(wanted) or "none", check)


def pairs(wanted: dict[str, float | Decimal | int], tolerance: float = 0) -> Check:
    """The answer has exactly these names, each with its number, such as `open: 3, closed: 5`. Names with 0 may be left
    out or added."""

    example = ", ".join(f"{name}: {value}" for name, value in wanted.items())

    def check(text: str) -> None:
        found: dict[str, Decimal] = {}
        for item in items_of(without_separators(text)):
            parts = re.fullmatch(r"(.*?)[\s:=|–—-]+(?:[a-z]{3}\s*)?(-?\d+(?:\.\d+)?)\D*", item)
            if not parts:
                raise Wrong(f"expected names with numbers such as `open: 3`, got {item}")
            try:
                found[parts[1].strip("\"'`* ")] = Decimal(parts[2])
            except InvalidOperation as error:
                raise Wrong(f"expected a number, got {parts[2]}") from error
        lower = {name.lower(): Decimal(str(value)) for name, value in wanted.items()}
        names = found.keys() | lower.keys()
        is_close = all(abs(found.get(name, 0) - lower.get(name, 0)) <= Decimal(str(tolerance)) for name in names)
        if not is_close:
            raise Wrong(f"expected {example}; got {text.strip()}")

    return Check(example, check)


# Any answer is right: only the effects count.
anything = Check("done", lambda _: None)


def net(effects: list[Effect]) -> list[Effect]:
    """The effects without fields that were later set again: of several changes of one field, only the last."""
    last: dict[tuple[Any, ...], Effect] = {}
    for at, effect in enumerate(effects):
        is_field = "field" in effect and effect["field"] != "tag"
        last[(effect["kind"], effect["key"], effect["field"]) if is_field else (at,)] = effect
    return list(last.values())


def fits(effect: Effect, wanted: Effect) -> bool:
    """Whether an effect has the wanted fields. The words in `says` have to be in its text; case is ignored."""
    text = str(effect.get("text", "")).lower()
    same = all(str(effect.get(name)).lower() == str(value).lower() for name, value in wanted.items() if name != "says")
    return same and all(word.lower() in text for word in wanted.get("says", []))


def compare(effects: list[Effect], wanted: list[Effect]) -> None:
    """Raises `Wrong` unless each wanted effect is there exactly once, and no other."""
    left = net(effects)
    missing = []
    for one in wanted:
        at = next((at for at, effect in enumerate(left) if fits(effect, one)), None)
        if at is None:
            missing.append(one)
        else:
            left.pop(at)
    if missing or left:
        raise Wrong(
            f"{len(missing)} of {len(wanted)} expected effects missing, such as {missing[:1]}; "
            f"{len(left)} not expected, such as {left[:1]}"
        )


@dataclass(frozen=True)
class Task:
    """A task in the words of a user, with the check of the answer and the expected effects."""

    name: str
    prompt: str
    check: Check
    effects: tuple[Effect, ...] = ()

    def judge(self, message: str, effects: list[Effect]) -> Verdict:
        """Judges the last message of a model and the effects of its calls."""
        try:
            self.check.require(answer_of(message))
            compare(effects, list(self.effects))
        except Wrong as reason:
            return Verdict(False, str(reason))
        return Verdict(True)
