"""npm: what it installs, and what the launcher does where something is missing."""

import atexit
import base64
import functools
import hashlib
import http.server
import json
import os
import signal
import tarfile
import tempfile
import threading
from pathlib import Path

from packaging.project import VERSION
from packaging.targets import TARGETS

from .support import BINARY, PEERS, Case, Session, environment, everything, node, package, packages, run, scratch

MAIN = f"lispbox-{VERSION}.tgz"
HOST = f"lispbox-linux-x64-{VERSION}.tgz"
NEW_NODE = PEERS / "node_modules/node/bin/node"


@functools.cache
def installed(*files: str, options: tuple = ()) -> Path:
    """Runs `npm install --offline ./*.tgz` in an empty folder."""
    folder = Path(tempfile.mkdtemp(dir=scratch()))
    folder.chmod(0o755)
    (folder / "package.json").write_text("{}")
    paths = [package(name) for name in files]
    done = run(["npm", "install", "--offline", *options, *paths], folder, environment(folder / "home"))
    assert done.returncode == 0, done.stderr
    return folder


class Installed(Case):
    """A test in a copy of an installation."""

    def install(self, *options: str, files: tuple = (MAIN, HOST)) -> Path:
        """Returns the launcher."""
        there = installed(*files, options=options)
        for name in ["node_modules", "package.json", "package-lock.json"]:
            self.succeeds("cp", "--archive", "--link", there / name, self.folder)
        return self.folder / "node_modules/lispbox/bin/lispbox.js"


class Files(Installed):
    """`npm install ./*.tgz`."""

    def test_packages_from_files_are_used(self) -> None:
        self.install()
        self.is_used(["npx", "--offline", "lispbox"])

    def test_inspector_uses_the_server_that_npx_starts(self) -> None:
        self.install()
        inspector = PEERS / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        server = ["npx", "--offline", "lispbox", "serve"]
        call = ["--method", "tools/call", "--tool-name", "lisp_eval", "--tool-arg", "program=(+ 20 22)"]
        env = self.env | {"PATH": f"{NEW_NODE.parent}:{self.env['PATH']}"}
        shown = self.succeeds(NEW_NODE, inspector, "--cli", *server, *call, env=env)
        self.assertIn('"42"', shown)

    def test_setup_writes_a_client_a_command_that_works(self) -> None:
        self.install()
        self.succeeds("npx", "--offline", "lispbox", "setup", "claude-desktop")
        file = self.folder / "home/.config/Claude/claude_desktop_config.json"
        entry = json.loads(file.read_text())["mcpServers"]["lispbox"]
        self.serves([entry["command"], *entry["args"]], env=self.env, cwd=Path("/"))

    def test_no_script_runs_at_install_time(self) -> None:
        for path in [*everything().glob("*.tgz"), *packages().glob("*.tgz")]:
            with tarfile.open(path) as archive:
                about = json.loads(archive.extractfile("package/package.json").read())
            self.assertNotIn("scripts", about, path.name)

    def test_without_the_optional_package_the_message_says_how_to_install_it(self) -> None:
        self.install("--omit=optional", files=(MAIN,))
        shown = self.fails("npx", "--offline", "lispbox", "demo", status=2)
        self.assertIn(
            "@lispbox/linux-x64 or @lispbox/linux-x64-musl with the binary for this platform is not installed", shown
        )
        self.assertIn(f"npm install --include=optional lispbox@{VERSION}", shown)

    def test_packages_of_two_versions_are_not_mixed(self) -> None:
        self.install()
        manifest = self.folder / "node_modules/@lispbox/linux-x64/package.json"
        changed = manifest.read_text().replace(f'"version": "{VERSION}"', '"version": "0.0.1"')
        manifest.unlink()
        manifest.write_text(changed)
        shown = self.fails("npx", "--offline", "lispbox", "demo", status=2)
        self.assertIn(f"@lispbox/linux-x64 is of version 0.0.1, and lispbox of version {VERSION}", shown)

    def test_a_variable_names_another_binary(self) -> None:
        self.install("--omit=optional", files=(MAIN,))
        named = self.env | {"LISPBOX_BINARY": str(BINARY)}
        self.assertEqual(self.succeeds("npx", "--offline", "lispbox", "eval", "(* 6 7)", env=named), "42\n")
        named["LISPBOX_BINARY"] = "/no/such/file"
        shown = self.fails("npx", "--offline", "lispbox", "demo", env=named, status=2)
        self.assertIn("LISPBOX_BINARY is `/no/such/file`, and there is no such file", shown)

    def test_an_exit_status_passes_through(self) -> None:
        launcher = self.install()
        for program in ["node", NEW_NODE]:
            self.fails(program, launcher, "eval", "(/ 1 0)", status=1)
            self.fails(program, launcher, "--no-such-option", status=2)


class Platforms(Installed):
    """The launcher on other systems, which a preloaded script imitates."""

    def launch(self, imitation: str, **names: str) -> str:
        launcher = self.install()
        for folder, manifest in names.items():
            path = self.folder / "node_modules/@lispbox" / folder.replace("_", "-") / "package.json"
            path.unlink()
            path.write_text(manifest)
        imitated = self.folder / "imitated.js"
        imitated.write_text(imitation)
        return self.fails("node", "-r", imitated, launcher, "--version", status=2)

    def test_a_platform_without_a_binary_is_named_with_those_that_have_one(self) -> None:
        shown = self.launch('Object.defineProperty(process, "platform", {value: "freebsd"});')
        self.assertIn("there is no binary for freebsd-x64; there are binaries for linux-x64, linux-arm64", shown)
        self.assertIn("cargo install lispbox", shown)

    def test_packages_of_another_platform_are_missing_ones(self) -> None:
        shown = self.launch('Object.defineProperty(process, "arch", {value: "arm64"});')
        self.assertIn("@lispbox/linux-arm64 or @lispbox/linux-arm64-musl", shown)

    def test_an_older_glibc_is_recognised_before_the_binary_starts(self) -> None:
        shown = self.launch('process.report.getReport = () => ({header: {glibcVersionRuntime: "2.17"}});')
        self.assertIn(", and this system has 2.17", shown)
        self.assertIn(f"npm install --force @lispbox/linux-x64-musl@{VERSION}", shown)

    def test_a_system_without_glibc_is_recognised(self) -> None:
        manifest = {"version": VERSION, "lispbox": {"binary": "bin/lispbox", "loader": "/no/ld.so", "glibc": "2.28"}}
        shown = self.launch("", linux_x64=json.dumps(manifest))
        self.assertIn("@lispbox/linux-x64 needs glibc, and this system has no /no/ld.so", shown)

    def test_a_static_binary_is_used_where_glibc_is_too_old(self) -> None:
        launcher = self.install("--force", files=(MAIN, HOST, f"lispbox-linux-x64-musl-{VERSION}.tgz"))
        imitated = self.folder / "imitated.js"
        imitated.write_text('process.report.getReport = () => ({header: {glibcVersionRuntime: "2.17"}});')
        self.assertEqual(self.succeeds("node", "-r", imitated, launcher, "eval", "(+ 1 1)"), "2\n")


class Signals(Installed):
    """A server that a client started through the launcher ends with it."""

    def test_a_signal_to_the_launcher_ends_the_server(self) -> None:
        launcher = self.install()
        for program in [f"{node()}/node", NEW_NODE]:
            with self.subTest(program=program), Session([program, launcher, "serve"], self.env, self.folder) as session:
                self.assertIn("3", session.evaluate("(+ 1 2)"))
                (binary,) = servers(session.process.pid)
                session.process.send_signal(signal.SIGTERM)
                self.assertEqual(session.process.wait(timeout=20), 0)
                self.assertFalse(Path(f"/proc/{binary}").exists())

    def test_a_new_node_is_replaced_by_the_binary(self) -> None:
        launcher = self.install()
        with Session([NEW_NODE, launcher, "serve"], self.env, self.folder) as session:
            self.assertEqual(servers(session.process.pid), [session.process.pid])
            session.process.stdin.close()
            self.assertEqual(session.process.wait(timeout=20), 0)
            # No warning of Node's reaches a client that reads standard error.
            self.assertNotIn(b"Warning", session.process.stderr.read())


def servers(pid: int) -> list[int]:
    """The processes of the binary among a process and its children."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rsplit(")", 1)[1].split()[1])
            is_ours = (path / "exe").readlink().name == "lispbox"
        except OSError:
            continue
        if is_ours and pid in (int(path.name), parent):
            found.append(int(path.name))
    return found


@functools.cache
def registry(folder: Path) -> str:
    """Serves packages on this machine as npm's registry does. Returns the address."""
    about: dict[str, dict] = {}
    address = ""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/").replace("%2f", "/").replace("%2F", "/")
            if name.startswith("files/"):
                return self.answer((folder / name.removeprefix("files/")).read_bytes())
            if name in about:
                return self.answer(json.dumps(about[name]).encode())
            return self.send_error(404)

        def answer(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    for path in folder.glob("*.tgz"):
        with tarfile.open(path) as archive:
            version = json.loads(archive.extractfile("package/package.json").read())
        digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
        version["dist"] = {"tarball": f"{address}/files/{path.name}", "integrity": f"sha512-{digest}"}
        about[version["name"]] = {
            "name": version["name"],
            "dist-tags": {"latest": VERSION},
            "versions": {VERSION: version},
        }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    atexit.register(server.shutdown)
    return address


class Registry(Case):
    """npm with a registry on this machine, which has the packages of all platforms."""

    def installed(self, *options: str) -> list[str]:
        (self.folder / "package.json").write_text("{}")
        self.succeeds("npm", "install", f"--registry={registry(everything())}", *options, "lispbox")
        return sorted(path.name for path in (self.folder / "node_modules/@lispbox").glob("*"))

    def test_npm_installs_the_package_of_the_platform_alone(self) -> None:
        for target in TARGETS:
            with self.subTest(target=target.npm):
                libc = [f"--libc={target.libc}"] if target.libc else []
                self.assertEqual(self.installed(f"--os={target.os}", f"--cpu={target.cpu}", *libc), [target.npm])
                os.rename(self.folder / "node_modules", self.folder / target.npm)
                (self.folder / "package-lock.json").unlink()

    def test_a_lock_file_of_another_system_has_all_platforms(self) -> None:
        self.installed("--os=darwin", "--cpu=arm64")
        lock = json.loads((self.folder / "package-lock.json").read_text())
        names = {name.removeprefix("node_modules/@lispbox/") for name in lock["packages"]}
        self.assertLessEqual({target.npm for target in TARGETS}, names)
        self.succeeds("npm", "ci", f"--registry={registry(everything())}")
        found = sorted(path.name for path in (self.folder / "node_modules/@lispbox").glob("*"))
        self.assertEqual(found, ["linux-x64"])

    def test_npx_in_an_empty_folder_needs_one_line(self) -> None:
        command = ["npx", "--yes", f"--registry={registry(packages())}", "lispbox"]
        self.assertEqual(self.succeeds(*command, "eval", "(+ 1 1)"), "2\n")
        with Session([*command, "serve"], self.env, self.folder) as session:
            self.assertIn("lisp_eval", session.tools())


class Surroundings(Installed):
    """Homes that cannot be written to, and users that have none."""

    def test_the_server_works_without_a_home_and_on_a_read_only_one(self) -> None:
        self.install()
        binary = self.folder / "node_modules/@lispbox/linux-x64/bin/lispbox"
        closed = self.folder / "closed"
        closed.mkdir(mode=0o555)
        nobody = {"user": 65534, "group": 65534, "extra_groups": []} if os.getuid() == 0 else {}
        for name, changes in {
            "read-only": {"HOME": str(closed)},
            "missing": {"HOME": "/no/such/home"},
            "unset": {"HOME": None},
            "proxy": {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"},
        }.items():
            with self.subTest(home=name):
                env = {key: value for key, value in (self.env | changes).items() if value is not None}
                if name != "proxy":
                    env = {key: value for key, value in env.items() if key != "XDG_CACHE_HOME"}
                done = self.succeeds(binary, "eval", "(+ 1 1)", env=env, cwd=Path("/"), **nobody)
                self.assertEqual(done, "2\n")
                self.serves([binary, "serve"], env=env, cwd=Path("/"), **nobody)
        self.assertEqual(list(closed.iterdir()), [])
