"""What a Linux binary needs from the system, read with `readelf`, which knows all processors."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

# The libraries that every distribution with glibc has, and that a wheel for `manylinux` may use.
EVERYWHERE = re.compile(r"lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|ld-linux[-a-z0-9_]*\.so\.\d+")


@dataclass(frozen=True)
class Needs:
    # The newest version of glibc of which a symbol is used; None without glibc.
    glibc: tuple[int, int] | None
    libraries: list[str]
    # The dynamic loader; None for a static binary.
    loader: str | None

    @property
    def unusual(self) -> list[str]:
        return [name for name in self.libraries if not EVERYWHERE.fullmatch(name)]


def needs(binary: Path) -> Needs:
    def read(*options: str) -> str:
        command = ["readelf", "--wide", *options, str(binary)]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, env={"LC_ALL": "C", "PATH": PATH}
        ).stdout

    versions = {(int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", read("--version-info"))}
    loader = re.search(r"interpreter: ([^\]]+)\]", read("--program-headers"))
    libraries = re.findall(r"\(NEEDED\).*\[([^\]]+)\]", read("--dynamic"))
    return Needs(max(versions, default=None), libraries, loader.group(1) if loader else None)


PATH = "/usr/local/bin:/usr/bin:/bin"
