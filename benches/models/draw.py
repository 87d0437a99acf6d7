"""Data that is the same on every machine and with every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """Seeded draws. Only `Random.random` is used, whose sequence Python guarantees for a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        """An integer from 0 to `count - 1`."""
        return int(self.random() * count)

    def between(self, low: int, high: int) -> int:
        """An integer from `low` to `high`."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """True in this share of draws."""
        return self.random() < share

    def one(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]

    def weighted(self, items: Sequence[Item], weights: Sequence[int]) -> Item:
        """One of the items, which are drawn in proportion to the weights."""
        at = self.below(sum(weights))
        for item, weight in zip(items, weights):
            at -= weight
            if at < 0:
                return item
        raise AssertionError("weights are exhausted only after their sum")

    def some(self, items: Sequence[Item], count: int) -> list[Item]:
        """`count` different items, in the order in which they were drawn."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]
