"""A Debian package, built by dpkg-deb."""

import subprocess
from email.utils import formatdate
from pathlib import Path

from . import elf, files
from .extras import system_root
from .files import copy, gzipped, settle, write
from .project import AUTHOR, LICENSE, LINE, REPOSITORY, ROOT, VERSION, epoch
from .targets import Target

MAINTAINER = f"{AUTHOR} <lispbox@packages.invalid>"
CONFIGURATION = ["/etc/lispbox/environment", "/etc/lispbox/config.yaml"]


def build(target: Target, binary: Path, extras: Path, work: Path, output: Path) -> Path:
    root = system_root(binary, extras, work / f"deb-{target.deb}")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    major, minor = elf.needs(binary).glibc
    control = {
        "Package": "lispbox",
        "Version": f"{VERSION}-1",
        "Architecture": target.deb,
        "Maintainer": MAINTAINER,
        "Installed-Size": str(size),
        "Depends": f"libc6 (>= {major}.{minor}), libgcc-s1 | libgcc1",
        "Recommends": "ca-certificates",
        "Suggests": "nodejs, npm",
        "Section": "interpreters",
        "Priority": "optional",
        "Homepage": REPOSITORY,
        "Description": f"{LINE}\n"
        " An agent sends one Clojure-style program. The program calls the tools of your\n"
        " MCP servers, filters and aggregates their results in the sandbox, and only\n"
        " the answer reaches the model. The service is neither enabled nor started.",
    }
    write(root / "DEBIAN/control", "".join(f"{key}: {value}\n" for key, value in control.items()))
    write(root / "DEBIAN/conffiles", "".join(f"{path}\n" for path in CONFIGURATION))
    for script in ["postinst", "prerm", "postrm"]:
        copy(ROOT / "release/system" / f"{script}.sh", root / "DEBIAN" / script, 0o755)
    write(root / "usr/share/doc/lispbox/copyright", _copyright())
    for name, text in {
        "changelog.gz": (ROOT / "CHANGELOG.md").read_text(),
        "changelog.Debian.gz": _changelog(),
    }.items():
        write(root / "usr/share/doc/lispbox" / name, "").write_bytes(gzipped(text.encode()))
    _own(root)
    path = output / f"lispbox_{VERSION}-1_{target.deb}.deb"
    compression = ["-Zxz"] if files.level == 9 else ["-Zgzip", f"-z{files.level}"]
    command = ["dpkg-deb", "--build", "--root-owner-group", *compression, str(root), str(path)]
    subprocess.run(command, check=True, capture_output=True, env={"SOURCE_DATE_EPOCH": str(epoch()), "PATH": elf.PATH})
    return path


def _own(root: Path) -> None:
    for path in root.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)
    settle(root)


def _changelog() -> str:
    return (
        f"lispbox ({VERSION}-1) stable; urgency=medium\n\n  * {REPOSITORY}/releases/tag/v{VERSION}\n\n"
        f" -- {MAINTAINER}  {formatdate(epoch())}\n"
    )


def _copyright() -> str:
    mit = "".join(f" {line}\n" if line else " .\n" for line in (ROOT / "LICENSE-MIT").read_text().strip().split("\n"))
    return (
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"
        f"Upstream-Name: lispbox\nSource: {REPOSITORY}\n\n"
        f"Files: *\nCopyright: the lispbox authors\nLicense: {LICENSE.replace(' OR ', ' or ')}\n\n"
        "License: Apache-2.0\n On Debian systems, the text is in /usr/share/common-licenses/Apache-2.0.\n\n"
        f"License: MIT\n{mit}"
    )
