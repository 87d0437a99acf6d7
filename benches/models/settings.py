"""How the tools of a data set are offered, and the options of the command line for it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Setting:
    """How the tools of a data set are offered."""

    is_direct: bool = False
    lispbox: str = "lispbox"
    # Further flags of `lispbox serve`.
    flags: tuple[str, ...] = ()
    # The folder for what lispbox learns about tools; by default, each trial starts without any.
    cache: Path | None = None
    # Whether lispbox learns about the tools before the trial begins, as by `lispbox config check --sample`.
    is_sampled: bool = False
    # Whether lispbox lists the tools before the trial begins, as by `lispbox config check`.
    is_listed: bool = False
    # The time after which a call is given up, in seconds.
    call_seconds: float = 120.0

    @property
    def mode(self) -> str:
        return "direct" if self.is_direct else "lispbox"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options that `of` reads."""
    parser.add_argument(
        "--direct", action="store_true", help="offer the tools of the data set themselves, without lispbox"
    )
    parser.add_argument(
        "--lispbox", default="lispbox", metavar="PATH", help="the binary; by default `lispbox` in the path"
    )
    parser.add_argument(
        "--flag",
        action="append",
        default=[],
        metavar="FLAG",
        help="a further flag of `lispbox serve`, such as --flag=--reply=structured; may be repeated",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="keep what lispbox learns about the tools from trial to trial in this folder",
    )
    parser.add_argument(
        "--sample",
        action="store_true",
        help="let `lispbox config check --sample` list the tools and learn shapes of results first",
    )
    parser.add_argument("--listed", action="store_true", help="let `lispbox config check` list the tools first")
    parser.add_argument("--call-seconds", type=float, default=120.0, metavar="N", help="give up a call after this time")


def of(options: argparse.Namespace) -> Setting:
    """The setting of the command line. Exits if there is no such binary, or if options contradict each other."""
    for option in ("sample", "listed"):
        if options.direct and getattr(options, option):
            sys.exit(f"--{option} is of no use with --direct: nothing is learned about the tools without lispbox")
    binary = options.lispbox if options.direct else shutil.which(options.lispbox)
    if binary is None:
        sys.exit(f"expected the binary of lispbox at `{options.lispbox}`, found none; pass --lispbox PATH, or --direct")
    binary = str(Path(binary).absolute()) if os.sep in binary else binary
    return Setting(
        options.direct,
        binary,
        tuple(options.flag),
        options.cache,
        options.sample,
        options.listed,
        options.call_seconds,
    )
