"""The platforms of a release, and what each registry calls them."""

from dataclasses import dataclass
from pathlib import Path

# The newest symbols of glibc that a released binary may need: those of RHEL 8, Debian 10 and Ubuntu 18.10.
GLIBC = (2, 28)


@dataclass(frozen=True)
class Target:
    triple: str
    # The package for npm, `@lispbox/NAME`, and its fields `os`, `cpu` and `libc`.
    npm: str
    os: str
    cpu: str
    libc: str | None = None
    # The platforms of a wheel; that of glibc is computed from the binary. A static binary runs with any C library, so
    # that pip takes it where glibc is too old for the other one.
    wheel: str | None = None
    # Debian's, RPM's and OCI's names of the architecture.
    deb: str | None = None
    rpm: str | None = None
    oci: str | None = None

    @property
    def exe(self) -> str:
        return "lispbox.exe" if self.os == "win32" else "lispbox"

    @property
    def machine(self) -> str:
        return self.triple.split("-")[0]


TARGETS = [
    Target("x86_64-unknown-linux-gnu", "linux-x64", "linux", "x64", "glibc", deb="amd64", rpm="x86_64"),
    Target("aarch64-unknown-linux-gnu", "linux-arm64", "linux", "arm64", "glibc", deb="arm64", rpm="aarch64"),
    Target(
        "x86_64-unknown-linux-musl",
        "linux-x64-musl",
        "linux",
        "x64",
        "musl",
        wheel="manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        oci="amd64",
    ),
    Target(
        "aarch64-unknown-linux-musl",
        "linux-arm64-musl",
        "linux",
        "arm64",
        "musl",
        wheel="manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        oci="arm64",
    ),
    Target("x86_64-apple-darwin", "darwin-x64", "darwin", "x64", wheel="macosx_10_12_x86_64"),
    Target("aarch64-apple-darwin", "darwin-arm64", "darwin", "arm64", wheel="macosx_11_0_arm64"),
    Target("x86_64-pc-windows-msvc", "win32-x64", "win32", "x64", wheel="win_amd64"),
]

# One bundle for all Macs: the manifest of a bundle knows systems, not processors.
UNIVERSAL = "universal-apple-darwin"


def present(binaries: Path) -> dict[Target, Path]:
    """The platforms for which there is a binary, `TRIPLE/lispbox` or `TRIPLE/lispbox.exe`."""
    paths = {target: binaries / target.triple / target.exe for target in TARGETS}
    return {target: path for target, path in paths.items() if path.is_file()}
