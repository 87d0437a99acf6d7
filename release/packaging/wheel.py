"""Wheels with the binary as a script, so that pip, uv and pipx put it on the path without a launcher."""

import base64
import hashlib
from pathlib import Path

from . import elf
from .files import copy, fresh, write, zip_folder
from .project import AUTHOR, KEYWORDS, LICENSE, LICENSES, MCP_NAME, OWN, REPOSITORY, ROOT, SUMMARY, VERSION, Unfit
from .targets import Target


def build(target: Target, binary: Path, sbom: Path, work: Path, output: Path) -> Path:
    tag = f"py3-none-{platform(target, binary)}"
    folder = fresh(work / f"wheel-{target.triple}")
    info = folder / f"lispbox-{VERSION}.dist-info"
    copy(binary, folder / f"lispbox-{VERSION}.data/scripts" / target.exe, 0o755)
    for name in ["__init__.py", "__main__.py"]:
        copy(OWN / "python" / name, folder / "lispbox" / name)
    for name in LICENSES:
        copy(ROOT / name, info / "licenses" / name)
    # PEP 770.
    copy(sbom, info / "sboms/lispbox.cdx.json")
    write(info / "METADATA", _metadata())
    tags = "".join(f"Tag: py3-none-{name}\n" for name in tag.removeprefix("py3-none-").split("."))
    write(info / "WHEEL", f"Wheel-Version: 1.0\nGenerator: lispbox {VERSION}\nRoot-Is-Purelib: false\n{tags}")
    write(info / "RECORD", _record(folder, f"{info.name}/RECORD"))
    wheel = output / f"lispbox-{VERSION}-{tag}.whl"
    zip_folder(folder, wheel)
    return wheel


def platform(target: Target, binary: Path) -> str:
    """The platform tags; that of glibc says which symbols the binary really needs."""
    if target.libc != "glibc":
        return target.wheel
    needs = elf.needs(binary)
    if needs.unusual:
        raise Unfit(f"{binary}: not every distribution has {', '.join(needs.unusual)}")
    return "manylinux_{}_{}_{}".format(*needs.glibc, target.machine)


def _metadata() -> str:
    lines = [
        "Metadata-Version: 2.4",
        "Name: lispbox",
        f"Version: {VERSION}",
        f"Summary: {SUMMARY}",
        f"Author: {AUTHOR}",
        f"License-Expression: {LICENSE}",
        *[f"License-File: {name}" for name in LICENSES],
        f"Keywords: {','.join(KEYWORDS)}",
        f"Project-URL: Source, {REPOSITORY}",
        f"Project-URL: Changelog, {REPOSITORY}/blob/v{VERSION}/CHANGELOG.md",
        "Classifier: Programming Language :: Rust",
        "Classifier: Topic :: Software Development :: Interpreters",
        "Requires-Python: >=3.8",
        "Description-Content-Type: text/markdown; charset=UTF-8; variant=GFM",
    ]
    readme = (ROOT / "README.md").read_text()
    # The registry of MCP servers looks for its name here.
    return "\n".join(lines) + f"\n\n{readme}\n<!-- mcp-name: {MCP_NAME} -->\n"


def _record(folder: Path, own: str) -> str:
    lines = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.append(f"{path.relative_to(folder).as_posix()},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{own},,"]) + "\n"
