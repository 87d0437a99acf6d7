"""The packages under test, clients that use them, and environments in which nothing of this machine is visible."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from packaging.project import ROOT, VERSION
from packaging.targets import TARGETS

HOST = "x86_64-unknown-linux-gnu"
STATIC = "x86_64-unknown-linux-musl"
# Set by `release/test`.
BINARY = Path(os.environ.get("RELEASE_BINARY", ROOT / "target/release/lispbox"))
GENERATOR = Path(os.environ.get("RELEASE_GENERATOR", BINARY))
PEERS = Path(os.environ.get("LISPBOX_PEERS", ROOT / "target/peers"))
MCPB = PEERS / "node_modules/@anthropic-ai/mcpb/dist"
TOOLS = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


@functools.cache
def scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="lispbox-release-"))
    # The tests also run as another user.
    folder.chmod(0o755)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def node() -> str:
    """The folder of the Node that runs these tests, and of npm."""
    return str(Path(shutil.which("node")).parent)


def environment(home: Path | None, **more: str) -> dict:
    """An environment with an empty home, and clean caches in it, without proxies and settings of this machine."""
    out = {"PATH": f"{node()}:{TOOLS}", "LC_ALL": "C.UTF-8"}
    if home is not None:
        home.mkdir(parents=True, exist_ok=True)
        out |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / ".cache"), "npm_config_cache": str(home / ".npm")}
    return out | {"npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false"} | more


def run(command: list, cwd: Path, env: dict, **more) -> subprocess.CompletedProcess:
    """Runs a command to its end, with a deadline; its output is text."""
    given = {"capture_output": True, "text": True, "timeout": 60, "check": False, "stdin": subprocess.DEVNULL} | more
    if "input" in given:
        del given["stdin"]
    return subprocess.run([str(part) for part in command], cwd=cwd, env=env, **given)


def stage(folder: Path, files: dict[str, Path | bytes]) -> Path:
    """Lays out binaries by target triple."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            shutil.copyfile(content, path)
        path.chmod(0o755)
    return folder


def build(binaries: Path, output: Path, *options: str, tag: str | None = None) -> subprocess.CompletedProcess:
    mcpb = f"{shutil.which('node')} {MCPB / 'cli/cli.js'}"
    command = [sys.executable, ROOT / "release/build", "--binaries", binaries, "--output", output]
    command += ["--generator", GENERATOR, "--mcpb", mcpb, "--fast", *options, *(["--tag", tag] if tag else [])]
    return run(command, ROOT, dict(os.environ), timeout=300)


@functools.cache
def packages() -> Path:
    """The packages for this machine. The binary also stands in for the static one, which needs another toolchain."""
    binaries = stage(scratch() / "binaries", {f"{HOST}/lispbox": BINARY, f"{STATIC}/lispbox": BINARY})
    made = build(binaries, scratch() / "packages", "--rehearsal")
    assert made.returncode == 0, made.stderr
    return scratch() / "packages"


@functools.cache
def everything() -> Path:
    """The packages for all platforms, with small stand-ins for the binaries: what registries and clients choose."""
    files: dict[str, Path | bytes] = {}
    for target in TARGETS:
        files[f"{target.triple}/{target.exe}"] = Path("/bin/true") if target.os == "linux" else b"a stand-in"
    files["universal-apple-darwin/lispbox"] = b"a stand-in"
    made = build(stage(scratch() / "stand-ins", files), scratch() / "everything", "--rehearsal")
    assert made.returncode == 0, made.stderr
    return scratch() / "everything"


def package(pattern: str, folder: Path | None = None) -> Path:
    """The one package whose name fits a pattern."""
    (found,) = (folder or packages()).glob(pattern)
    return found


class Session:
    """An MCP client of one server on standard input and output."""

    def __init__(self, command: list, env: dict, cwd: Path, **more) -> None:
        self.process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        self.count = 0

    def __enter__(self) -> "Session":
        about = {"name": "release-test", "version": VERSION}
        given = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
        self.server = self.ask("initialize", given)["serverInfo"]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=20)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.process.stderr.close()

    def send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        self.count += 1
        self.send({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params})
        for line in self.process.stdout:
            answer = json.loads(line)
            if answer.get("id") == self.count and "method" not in answer:
                return answer["result"]
        self.process.wait()
        raise AssertionError(f"the server ended with {self.process.returncode}: {self.process.stderr.read().decode()}")

    def tools(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list", {})["tools"]]

    def evaluate(self, program: str) -> str:
        result = self.ask("tools/call", {"name": "lisp_eval", "arguments": {"program": program}})
        return result["content"][0]["text"]


class Case(unittest.TestCase):
    """A test with an empty folder of its own."""

    maxDiff = None

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=scratch()))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = environment(self.folder / "home")

    def run_here(self, *command: object, **more) -> subprocess.CompletedProcess:
        return run(list(command), more.pop("cwd", self.folder), more.pop("env", self.env), **more)

    def succeeds(self, *command: object, **more) -> str:
        done = self.run_here(*command, **more)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        return done.stdout

    def fails(self, *command: object, status: int, **more) -> str:
        done = self.run_here(*command, **more)
        self.assertEqual(done.returncode, status, done.stderr + done.stdout)
        return done.stderr

    def is_used(self, command: list, env: dict | None = None, cwd: Path | None = None, **more) -> None:
        """A first minute with an installed lispbox: its version, a program, the demo and an MCP session."""
        given = {"env": env or self.env, "cwd": cwd or self.folder}
        self.assertEqual(self.succeeds(*command, "--version", **given), f"lispbox {VERSION}\n")
        self.assertEqual(self.succeeds(*command, "eval", "(+ 1 1)", **given), "2\n")
        self.assertIn("tokens", self.succeeds(*command, "demo", **given))
        self.serves([*command, "serve"], **given, **more)

    def serves(self, command: list, env: dict, cwd: Path, **more) -> None:
        with Session(command, env, cwd, **more) as session:
            self.assertEqual(session.server["version"], VERSION)
            self.assertIn("lisp_eval", session.tools())
            self.assertIn("[0 1 4 9]", session.evaluate("(mapv #(* % %) (range 4))"))
