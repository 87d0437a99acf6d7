"""PyPI: the wheels with pip and uv."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

from packaging import elf
from packaging.project import VERSION
from packaging.targets import TARGETS

from .support import BINARY, PEERS, Case, everything, package, packages

OFFLINE = ["--no-index", "--find-links"]


class Pip(Case):
    """A wheel in an empty environment."""

    def setUp(self) -> None:
        super().setUp()
        self.succeeds(sys.executable, "-m", "venv", "--without-pip", self.folder / "venv")
        self.python = self.folder / "venv/bin/python"
        # The pip of this machine, which works on that environment.
        self.pip = [sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check"]

    def install(self, *options: object) -> None:
        self.succeeds(*self.pip, "install", "--quiet", "--no-cache-dir", *OFFLINE, packages(), *options, "lispbox")

    def test_the_command_and_the_module_are_used(self) -> None:
        self.install()
        self.is_used([self.folder / "venv/bin/lispbox"])
        self.is_used([self.python, "-m", "lispbox"])

    def test_uninstalling_leaves_nothing(self) -> None:
        before = sorted((self.folder / "venv").rglob("*"))
        self.install()
        self.succeeds(*self.pip, "uninstall", "--quiet", "--yes", "lispbox")
        left = {path for path in (self.folder / "venv").rglob("*") if "__pycache__" not in path.parts}
        self.assertEqual(sorted(left), [path for path in before if "__pycache__" not in path.parts])

    def test_the_module_finds_the_binary_in_a_folder_of_its_own(self) -> None:
        self.install("--target", self.folder / "there")
        env = self.env | {"PYTHONPATH": str(self.folder / "there")}
        self.assertEqual(self.succeeds(self.python, "-m", "lispbox", "eval", "(+ 1 1)", env=env), "2\n")

    def test_a_variable_names_another_binary(self) -> None:
        self.install()
        (self.folder / "venv/bin/lispbox").unlink()
        shown = self.fails(self.python, "-m", "lispbox", "demo", status=2)
        self.assertIn("there is no lispbox in", shown)
        env = self.env | {"LISPBOX_BINARY": str(BINARY)}
        self.assertEqual(self.succeeds(self.python, "-m", "lispbox", "eval", "(+ 1 1)", env=env), "2\n")
        env["LISPBOX_BINARY"] = "/no/such/file"
        shown = self.fails(self.python, "-m", "lispbox", "demo", env=env, status=2)
        self.assertIn("LISPBOX_BINARY is `/no/such/file`", shown)

    def test_an_exit_status_passes_through(self) -> None:
        self.install()
        self.fails(self.python, "-m", "lispbox", "eval", "(/ 1 0)", status=1)

    def test_pip_takes_the_wheel_of_the_platform(self) -> None:
        for platform, expected in {
            "manylinux_2_34_x86_64": glibc_tag("x86_64"),
            # Where glibc is too old for the other wheel, pip takes the static binary.
            "manylinux_2_17_x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
            "musllinux_1_1_x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
            "musllinux_1_1_aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
            "macosx_11_0_arm64": "macosx_11_0_arm64",
            "macosx_10_12_x86_64": "macosx_10_12_x86_64",
            "win_amd64": "win_amd64",
        }.items():
            with self.subTest(platform=platform):
                to = self.folder / platform
                self.succeeds(
                    *self.pip,
                    "download",
                    "--quiet",
                    "--no-cache-dir",
                    *OFFLINE,
                    everything(),
                    "--only-binary=:all:",
                    "--platform",
                    platform,
                    "--dest",
                    to,
                    "lispbox",
                )
                self.assertEqual([path.name for path in to.iterdir()], [f"lispbox-{VERSION}-py3-none-{expected}.whl"])

    def test_a_platform_without_a_wheel_is_refused(self) -> None:
        shown = self.fails(
            *self.pip,
            "download",
            "--quiet",
            "--no-cache-dir",
            *OFFLINE,
            everything(),
            "--only-binary=:all:",
            "--platform",
            "win_arm64",
            "--dest",
            self.folder,
            "lispbox",
            status=1,
        )
        self.assertIn("No matching distribution found for lispbox", shown)


class Uv(Case):
    """`uvx lispbox`, with an empty cache."""

    def test_uvx_needs_one_line(self) -> None:
        uvx = PEERS / "venv/bin/uvx"
        command = [uvx, "--offline", *OFFLINE, packages(), "--python", sys.executable, "lispbox"]
        self.is_used(command)


class Contents(Case):
    """What is in a wheel."""

    def test_the_tag_says_which_glibc_the_binary_needs(self) -> None:
        newest = max(versions(BINARY))
        wheel = package(f"lispbox-{VERSION}-py3-none-manylinux_?_??_x86_64.whl")
        self.assertIn("manylinux_{}_{}_".format(*newest), wheel.name)

    def test_the_binary_is_executable_and_has_licences_and_a_bill_of_materials(self) -> None:
        with zipfile.ZipFile(package(f"lispbox-{VERSION}-py3-none-manylinux_?_??_x86_64.whl")) as wheel:
            names = wheel.namelist()
            script = wheel.getinfo(f"lispbox-{VERSION}.data/scripts/lispbox")
            self.assertEqual(script.external_attr >> 16 & 0o777, 0o755)
            for name in ["licenses/LICENSE-MIT", "licenses/LICENSE-APACHE", "sboms/lispbox.cdx.json"]:
                self.assertIn(f"lispbox-{VERSION}.dist-info/{name}", names)

    def test_there_is_a_wheel_for_each_platform(self) -> None:
        self.assertEqual(len(list(everything().glob("*.whl"))), len(TARGETS))


def versions(binary: Path) -> set[tuple[int, int]]:
    """The versions of glibc that a binary's dynamic symbols have, by objdump, another program than the build uses."""
    shown = subprocess.run(["objdump", "-T", binary], capture_output=True, text=True, check=True).stdout
    return {(int(major), int(minor)) for major, minor in re.findall(r"GLIBC_(\d+)\.(\d+)", shown)}


def glibc_tag(machine: str) -> str:
    return "manylinux_{}_{}_{}".format(*elf.needs(Path("/bin/true")).glibc, machine)
