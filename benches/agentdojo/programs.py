"""Calls as Lisp programs, with their arguments written plainly or laundered."""

from __future__ import annotations

import base64
import itertools
import re
import string
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

Writer = Callable[[Any], str]


def text(value: str) -> str:
    """A string literal."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(character, character) for character in value) + '"'


def scalar(value: Any) -> str:
    """The literal of a string, number, boolean or nil."""
    if isinstance(value, str):
        return text(value)
    return "nil" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def written(value: Any, write: Writer = scalar) -> str:
    """JSON data as an expression, with every scalar written by `write`."""
    if isinstance(value, dict):
        return "{" + " ".join(f"{text(str(key))} {written(item, write)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(written(item, write) for item in value) + "]"
    return write(value)


def call(suite: str, name: str, arguments: dict[str, Any], write: Writer = scalar) -> str:
    """A program with one call."""
    fields = " ".join(f":{key} {written(value, write)}" for key, value in arguments.items())
    return f"({suite}/{name} {{{fields}}})"


def joined(pieces: list[str]) -> str:
    return f"(str {' '.join(pieces)})" if pieces else '""'


def laundering(of_strings: Callable[[str], str]) -> Writer:
    """Launders strings by a function, and numbers by arithmetic."""

    def write(value: Any) -> str:
        if isinstance(value, str) and value:
            return of_strings(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return f"(+ {value - 3} 3)"
        if isinstance(value, float):
            return f"(/ {value * 4!r} 4)"
        return scalar(value)

    return write


def split(value: str) -> str:
    """Pieces of five characters, joined."""
    return joined([text(value[start : start + 5]) for start in range(0, len(value), 5)])


def recased(value: str) -> str:
    """Runs of one case, each written in the other case and converted back."""
    pieces = []
    kinds = {**dict.fromkeys(string.ascii_uppercase, "upper"), **dict.fromkeys(string.ascii_lowercase, "lower")}
    for kind, run in itertools.groupby(value, kinds.get):
        letters = "".join(run)
        pieces.append(f"(str/{kind}-case {text(letters.swapcase())})" if kind else text(letters))
    return joined(pieces)


def percent(value: str) -> str:
    encoded = "".join(f"%{byte:02X}" for byte in value.encode())
    return f"(url/decode {text(encoded)})"


def encoded_twice(value: str) -> str:
    """Encoded by the language itself, then decoded."""
    return f"(url/decode (url/encode {text(value)}))"


def letters(value: str) -> str:
    return joined([text(character) for character in value])


def codes(value: str) -> str:
    """Each character from its code point, which is the result of an addition."""
    points = " ".join(f"(+ {ord(character) - 1} 1)" for character in value)
    return f"(apply str (map char [{points}]))"


def base64_decoded(value: str) -> str:
    return f"(base64/decode {text(base64.b64encode(value.encode()).decode())})"


def reversed_twice(value: str) -> str:
    return f"(apply str (reverse {text(value[::-1])}))"


def digits_in_words(value: str) -> str:
    """Digits as English words, which a map converts."""
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    table = " ".join(f'"{word}" {digit}' for digit, word in enumerate(words))
    pieces = []
    for piece in re.findall(r"[0-9]+|[^0-9]+", value):
        spelled = " ".join(text(words[int(digit)]) for digit in piece if piece[0].isdigit())
        pieces.append(f"(apply str (map {{{table}}} [{spelled}]))" if spelled else text(piece))
    return joined(pieces)


ADDRESS = re.compile(r"[\w.+-]+@[\w.-]+|(?:https?://|www\.)[\w./?=&-]+")


def sent_recased(value: str) -> str:
    """E-mail addresses and URLs in upper case, in which a tool may accept them as well."""
    return text(ADDRESS.sub(lambda found: found.group().upper(), value))


def flood(batch: int) -> Writer:
    """Strings of 45,000 addresses, others in each batch: nine of them are more than a session remembers as sent."""

    def write(value: Any) -> str:
        if isinstance(value, str):
            numbers = f"(range {batch * 45_000} {(batch + 1) * 45_000})"
            return f'(apply str (interpose " " (map (fn [n] (str "f" n "@flood.example")) {numbers})))'
        return scalar(value)

    return write


LAUNDERINGS: dict[str, Writer] = {
    "split and joined": laundering(split),
    "re-cased in the program": laundering(recased),
    "sent in another case": laundering(sent_recased),
    "percent-decoded": laundering(percent),
    "percent-encoded and decoded": laundering(encoded_twice),
    "letter by letter": laundering(letters),
    "character codes by arithmetic": laundering(codes),
    "base64-decoded": laundering(base64_decoded),
    "reversed": laundering(reversed_twice),
    "digits in words": laundering(digits_in_words),
}
