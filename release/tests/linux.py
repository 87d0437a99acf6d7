"""Packages of Linux distributions, and the service in them."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from packaging.project import ROOT, VERSION

from .support import BINARY, Case, package
from .wheel import versions


class Debian(Case):
    """The package in a root of its own: `dpkg` with a database that is empty."""

    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder / "root"
        database = self.root / "var/lib/dpkg"
        (database / "updates").mkdir(parents=True)
        (database / "info").mkdir()
        (database / "status").touch()
        self.before = self.files()

    def dpkg(self, *command: object) -> str:
        # The root has no packages, thus none that lispbox depends on, and no shell.
        force = "--force-depends,script-chrootless,not-root"
        return self.succeeds("dpkg", f"--root={self.root}", force, "--log=/dev/null", *command)

    def files(self) -> set[str]:
        database = self.root / "var/lib/dpkg"
        found = {path for path in self.root.rglob("*") if not path.is_relative_to(database)}
        return {path.relative_to(self.root).as_posix() for path in found}

    def test_the_package_is_installed_used_and_removed_but_for_its_data(self) -> None:
        self.dpkg("--install", package("*.deb"))
        self.is_used([self.root / "usr/bin/lispbox"])
        for file in [
            "usr/share/man/man1/lispbox.1.gz",
            "usr/share/man/man1/lispbox-serve.1.gz",
            "etc/lispbox/config.yaml",
            "usr/share/bash-completion/completions/lispbox",
            "usr/share/zsh/vendor-completions/_lispbox",
            "usr/share/fish/vendor_completions.d/lispbox.fish",
            "usr/share/doc/lispbox/copyright",
            "usr/lib/systemd/system/lispbox.service",
        ]:
            self.assertIn(file, self.files())
        data = self.root / "var/lib/lispbox/sessions.db"
        data.parent.mkdir()
        data.touch()
        self.dpkg("--remove", "lispbox")
        self.assertIn("etc/lispbox/environment", self.files())
        self.dpkg("--purge", "lispbox")
        left = self.files() - self.before - {"var/lib/lispbox", "var/lib/lispbox/sessions.db"}
        self.assertEqual(left, set())

    def test_a_changed_configuration_is_kept(self) -> None:
        self.dpkg("--install", package("*.deb"))
        settings = self.root / "etc/lispbox/environment"
        self.assertEqual(settings.stat().st_mode & 0o777, 0o640)
        settings.write_text("LISPBOX_TOKEN=abc\n")
        self.dpkg("--install", package("*.deb"))
        self.assertEqual(settings.read_text(), "LISPBOX_TOKEN=abc\n")

    def test_the_package_depends_on_the_glibc_whose_symbols_are_used(self) -> None:
        needs = self.succeeds("dpkg-deb", "--field", package("*.deb"), "Depends")
        self.assertIn("libc6 (>= {}.{})".format(*max(versions(BINARY))), needs)

    def test_the_scripts_neither_enable_nor_start_the_service(self) -> None:
        for path in (ROOT / "release/system").glob("*.sh"):
            calls = re.findall(r"systemctl (.*?) \|\| true", path.read_text())
            for call in calls:
                self.assertRegex(call, r"daemon-reload|^try-restart|disable --now", path.name)
            self.assertEqual(path.read_text().count("systemctl"), len(calls), path.name)

    def test_its_configuration_is_valid(self) -> None:
        self.dpkg("--install", package("*.deb"))
        binary, config = self.root / "usr/bin/lispbox", self.root / "etc/lispbox/config.yaml"
        self.succeeds(binary, "config", "check", "--config", config)


class Rpm(Case):
    """The RPM package in a root of its own."""

    def rpm(self, *command: object) -> str:
        return self.succeeds("rpm", "--root", self.folder / "root", *command)

    def test_the_package_is_installed_used_and_removed(self) -> None:
        (self.folder / "root").mkdir()
        self.rpm("--install", "--nodeps", "--noscripts", package("*.rpm"))
        self.is_used([self.folder / "root/usr/bin/lispbox"])
        listed = self.rpm("-q", "--list", "lispbox").split()
        self.assertIn("/usr/lib/systemd/system/lispbox.service", listed)
        self.assertIn("/usr/share/licenses/lispbox/LICENSE-MIT", listed)
        self.rpm("--erase", "--noscripts", "lispbox")
        left = [path for top in ["usr", "etc"] for path in (self.folder / "root" / top).rglob("*lispbox*")]
        self.assertEqual(left, [])

    def test_it_requires_the_glibc_whose_symbols_are_used(self) -> None:
        required = self.succeeds("rpm", "-qp", "--requires", package("*.rpm"))
        self.assertIn("GLIBC_{}.{}".format(*max(versions(BINARY))), required)

    def test_its_scripts_are_shell(self) -> None:
        scripts = self.succeeds("rpm", "-qp", "--scripts", package("*.rpm"))
        self.assertEqual(scripts.count("(using /bin/sh)"), 3)
        self.succeeds("sh", "-n", input="\n".join(re.split(r"^.*scriptlet.*$", scripts, flags=re.M)))


class Service(Case):
    """The unit, checked by systemd and started as it says."""

    def setUp(self) -> None:
        super().setUp()
        self.root = self.folder / "root"
        self.succeeds("dpkg-deb", "--extract", package("*.deb"), self.root)
        self.unit = self.root / "usr/lib/systemd/system/lispbox.service"

    def test_systemd_accepts_the_unit(self) -> None:
        # The unit starts /usr/bin/lispbox, which need not be on this machine.
        here = self.folder / "lispbox.service"
        here.write_text(self.unit.read_text().replace("/usr/bin/lispbox", str(self.root / "usr/bin/lispbox")))
        done = self.run_here("systemd-analyze", "verify", "--man=no", here)
        self.assertEqual(
            (done.returncode, [line for line in done.stderr.splitlines() if "lispbox.service" in line]), (0, [])
        )

    def test_the_unit_is_hardened(self) -> None:
        shown = self.succeeds(
            "systemd-analyze",
            "security",
            "--offline=yes",
            "--no-pager",
            "--threshold=20",
            self.unit,
        )
        self.assertIn("OK", shown.splitlines()[-1])

    def test_the_service_starts_is_used_over_http_and_stops(self) -> None:
        settings = dict(re.findall(r"^Environment=(\w+)=(.*)$", self.unit.read_text(), re.M))
        (command,) = re.findall(r"^ExecStart=(.*)$", self.unit.read_text(), re.M)
        state = self.root / "var/lib/lispbox"
        state.mkdir(parents=True, mode=0o700)
        user = {}
        if os.getuid() == 0:
            os.chown(state, 65534, 65534)
            user = {"user": 65534, "group": 65534, "extra_groups": []}
        settings = {
            key: value.replace("/var/", f"{self.root}/var/").replace("/etc/", f"{self.root}/etc/")
            for key, value in settings.items()
        }
        address = f"127.0.0.1:{free_port()}"
        env = {"PATH": "/usr/bin:/bin"} | settings | {"LISPBOX_HTTP": address}
        process = subprocess.Popen(
            f"{self.root}{command}".split(),
            env=env,
            cwd=state,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **user,
        )
        try:
            self.assertEqual(wait_until_ready(process, address), 200)
            self.assertIn('"text":"42"', call(address, "(def answer 42) answer").replace("\\n", '"'))
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=20), 0)
        finally:
            process.kill()
            process.stderr.close()
        self.assertTrue((state / "sessions.db").is_file())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_ready(process: subprocess.Popen, address: str) -> int:
    for _ in range(200):
        try:
            return urllib.request.urlopen(f"http://{address}/readyz", timeout=5).status
        except urllib.error.URLError:
            if process.poll() is not None:
                raise AssertionError(process.stderr.read().decode()) from None
            time.sleep(0.05)
    raise AssertionError("the server is not ready after ten seconds")


def call(address: str, program: str) -> str:
    """Evaluates a program over MCP 2026-07-28, which needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "release-test", "version": VERSION},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "lisp_eval", "arguments": {"program": program}, "_meta": meta}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "lisp_eval",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    request = urllib.request.Request(f"http://{address}/mcp", body, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()
