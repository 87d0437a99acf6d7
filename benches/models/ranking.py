"""Rankings for expected answers, which must not depend on how ties are broken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Name = TypeVar("Name")


def top(values: Mapping[Name, float], count: int) -> list[tuple[Name, float]]:
    """The `count` largest entries, largest first. Raises `ValueError` on a tie among them or with the next one."""
    ranked = sorted(values.items(), key=lambda entry: -entry[1])
    for (one, value), (other, same) in zip(ranked[:count], ranked[1 : count + 1]):
        if value == same:
            raise ValueError(f"{one} and {other} both have {value}")
    return ranked[:count]


def best(values: Mapping[Name, float]) -> Name:
    """The name with the largest value. Raises `ValueError` on a tie."""
    return top(values, 1)[0][0]
