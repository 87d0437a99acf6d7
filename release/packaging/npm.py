"""Packages for npm: `lispbox`, which only starts a binary, and one package with a binary for each platform, as its
optional dependencies. Nothing runs at install time."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import elf
from .files import copy, fresh, settle, write
from .project import AUTHOR, KEYWORDS, LICENSE, LICENSES, MCP_NAME, OWN, REPOSITORY, ROOT, SUMMARY, VERSION
from .targets import TARGETS, Target


def build(binaries: dict[Target, Path], work: Path, output: Path) -> list[Path]:
    """Packs the packages of the platforms first, then the one that depends on them: the order of the upload."""
    folders = [*[_platform(target, binary, work) for target, binary in binaries.items()], _launcher(work)]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda folder: _pack(folder, output), folders))


def _common(name: str, description: str) -> dict:
    return {
        "name": name,
        "version": VERSION,
        "description": description,
        "license": LICENSE,
        "author": AUTHOR,
        "homepage": REPOSITORY,
        "repository": {"type": "git", "url": f"git+{REPOSITORY}.git"},
        "bugs": {"url": f"{REPOSITORY}/issues"},
    }


def _platform(target: Target, binary: Path, work: Path) -> Path:
    folder = fresh(work / f"npm-{target.npm}")
    copy(binary, folder / "bin" / target.exe, 0o755)
    about = {"binary": f"bin/{target.exe}"}
    if target.libc == "glibc":
        needs = elf.needs(binary)
        about |= {"loader": needs.loader, "glibc": "{}.{}".format(*needs.glibc)}
    package = _common(f"@lispbox/{target.npm}", f"The binary of lispbox for {target.npm}") | {
        "os": [target.os],
        "cpu": [target.cpu],
        **({"libc": [target.libc]} if target.libc else {}),
        "files": ["bin"],
        # The binary has to be a file, also for package managers that keep packages in archives.
        "preferUnplugged": True,
        "lispbox": about,
    }
    write(folder / "package.json", json.dumps(package, indent=2) + "\n")
    readme = f"The binary of [lispbox]({REPOSITORY}) for {target.npm}. Install `lispbox` instead."
    write(folder / "README.md", f"# @lispbox/{target.npm}\n\n{readme}\n")
    return folder


def _launcher(work: Path) -> Path:
    folder = fresh(work / "npm-lispbox")
    copy(OWN / "npm/lispbox.js", folder / "bin/lispbox.js", 0o755)
    copy(ROOT / "README.md", folder / "README.md")
    package = _common("lispbox", SUMMARY) | {
        "mcpName": MCP_NAME,
        "keywords": KEYWORDS,
        "bin": {"lispbox": "bin/lispbox.js"},
        "files": ["bin"],
        "engines": {"node": ">=16"},
        "optionalDependencies": {f"@lispbox/{target.npm}": VERSION for target in TARGETS},
    }
    write(folder / "package.json", json.dumps(package, indent=2) + "\n")
    return folder


def _pack(folder: Path, output: Path) -> Path:
    for name in LICENSES:
        copy(ROOT / name, folder / name)
    settle(folder)
    command = ["npm", "pack", "--json", "--ignore-scripts", "--offline", "--pack-destination", str(output)]
    shown = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    packed = json.loads(shown)
    # npm 11 prints a list, later versions an object by name.
    entry = packed[0] if isinstance(packed, list) else next(iter(packed.values()))
    return output / entry["filename"].replace("@", "").replace("/", "-")
