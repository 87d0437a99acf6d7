"""Facts about the project, each read from its one source: the version from Cargo.toml, the notes from CHANGELOG.md,
the repository from the workflow that runs."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
OWN = ROOT / "release"
_CARGO = tomllib.loads((ROOT / "Cargo.toml").read_text())

VERSION: str = _CARGO["workspace"]["package"]["version"]
LICENSE: str = _CARGO["workspace"]["package"]["license"]
KEYWORDS: list[str] = _CARGO["package"]["keywords"]
SUMMARY = "A sandboxed Lisp in which AI agents run their data pipelines: an MCP server and a command line"
# Homebrew allows 80 characters, and no article at the beginning.
LINE = "Sandboxed Lisp in which AI agents run their data pipelines, over MCP"
# The registry of MCP servers allows 100 characters.
SHORT = "Agents run one sandboxed program over all your MCP servers; only the answer reaches the model"

# The repository in which the workflow runs. Elsewhere this is a rehearsal, whose addresses lead nowhere.
SLUG = os.environ.get("GITHUB_REPOSITORY", "lispbox/lispbox").lower()
REPOSITORY = f"https://github.com/{SLUG}"
DOWNLOADS = f"{REPOSITORY}/releases/download/v{VERSION}"
# The name in the registry of MCP servers, which npm, PyPI and the image repeat to prove that they belong to it.
MCP_NAME = f"io.github.{SLUG.split('/')[0]}/lispbox"
IMAGE = f"ghcr.io/{SLUG}"
AUTHOR = "The lispbox authors"
LICENSES = ["LICENSE-MIT", "LICENSE-APACHE"]


class Unfit(Exception):
    """A reason for which there must be no release."""


def epoch() -> int:
    """The time that all packages carry, so that the same commit makes the same files: that of the commit."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    # A source archive has no history; 1980 is the earliest time that zip files know.
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return int(shown) if shown else 315532800


def notes(version: str = VERSION) -> str:
    """The section of CHANGELOG.md about a version."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## \[|\Z)", text, re.M | re.S)
    if not found:
        raise Unfit(f"CHANGELOG.md has no section `## [{version}]`")
    return found.group(1).strip() + "\n"


def check(tag: str | None) -> list[str]:
    """Returns the reasons for which this commit cannot be released."""
    reasons = []
    if tag is not None and tag != f"v{VERSION}":
        reasons.append(f"the tag is `{tag}`, and the version in Cargo.toml `{VERSION}`")
    policy = tomllib.loads((ROOT / "src/policy/Cargo.toml").read_text())
    for place, dependencies, crate in [
        ("Cargo.toml", _CARGO["dependencies"], "lispbox-lang"),
        ("Cargo.toml", _CARGO["dependencies"], "lispbox-policy"),
        ("src/policy/Cargo.toml", policy["dependencies"], "lispbox-lang"),
    ]:
        required = dependencies[crate]["version"]
        if required != f"={VERSION}":
            reasons.append(f"{place} requires {crate} `{required}`; expected `={VERSION}`")
    if "repository" not in _CARGO["package"]:
        reasons.append("Cargo.toml names no `repository`, which `cargo binstall` needs to find the downloads")
    try:
        notes()
    except Unfit as reason:
        reasons.append(str(reason))
    return reasons
