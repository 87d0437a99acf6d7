"""The container image: unpacked as an engine does, and run by unshare and chroot as its configuration says."""

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
from pathlib import Path

from packaging.image import USER
from packaging.project import MCP_NAME, VERSION

from .support import Case, Session, everything, package

# A read-only root with an empty volume for data, and with /proc and /dev, in namespaces without a network.
START = """
set -e
mkdir "$1/proc" "$1/dev"
mount --bind "$1" "$1"
mount -o remount,bind,ro "$1"
mount -t tmpfs -o uid=$2,gid=$2,mode=700 data "$1/data"
mount -t tmpfs tmp "$1/tmp"
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
root=$1 user=$2
shift 2
exec chroot --userspec=$user:$user "$root" "$@"
"""


class Layout:
    """Reads an OCI layout and checks each digest and size on the way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (top,) = json.loads((folder / "index.json").read_text())["manifests"]
        self.index = json.loads(self.blob(top))
        self.read = {top["digest"]}

    def blob(self, about: dict) -> bytes:
        algorithm, digest = about["digest"].split(":")
        content = (self.folder / "blobs" / algorithm / digest).read_bytes()
        assert hashlib.new(algorithm, content).hexdigest() == digest and len(content) == about["size"], digest
        self.read = getattr(self, "read", set()) | {about["digest"]}
        return content

    def image(self, architecture: str) -> tuple[dict, list[bytes]]:
        """The configuration and the layers, as tar files, of the image for an architecture."""
        (about,) = [each for each in self.index["manifests"] if each["platform"]["architecture"] == architecture]
        manifest = json.loads(self.blob(about))
        config = json.loads(self.blob(manifest["config"]))
        layers = [gzip.decompress(self.blob(layer)) for layer in manifest["layers"]]
        identities = [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]
        assert config["rootfs"]["diff_ids"] == identities, "the layers are not those of the configuration"
        return config, layers


class Image(Case):
    """The image for this machine."""

    def unpack(self) -> tuple[Path, dict]:
        config, layers = Layout(package("*-image")).image("amd64")
        root = self.folder / "root"
        for layer in layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                archive.extractall(root, numeric_owner=True, filter="fully_trusted")
        return root, config["config"]

    def command(self, root: Path, config: dict, *arguments: str) -> tuple[list, dict]:
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts"]
        if os.getuid() != 0:
            isolated.append("--map-root-user")
        user = config["User"].split(":")[0]
        run = [*config["Entrypoint"], *(arguments or config["Cmd"])]
        env = dict(variable.split("=", 1) for variable in config["Env"])
        # `unshare` and `chroot` are found before the root changes.
        return [
            shutil.which("unshare"),
            *isolated[1:],
            shutil.which("sh"),
            "-c",
            f"PATH=/usr/sbin:/usr/bin:/sbin:/bin; {START}",
            "sh",
            root,
            user,
            *run,
        ], env

    def test_the_server_runs_as_nobody_on_a_read_only_root_and_keeps_sessions_in_its_volume(self) -> None:
        root, config = self.unpack()
        command, env = self.command(root, config)
        with Session(command, env, Path("/")) as session:
            self.assertEqual(session.server["version"], VERSION)
            self.assertIn("42", session.evaluate("(def answer 42) answer"))
            self.assertNotIn("NotKept", session.evaluate("(def other 1)"))
        self.assertEqual(list((root / "data").iterdir()), [])

    def test_the_demo_runs(self) -> None:
        root, config = self.unpack()
        command, env = self.command(root, config, "demo")
        self.assertIn("tokens", self.succeeds(*command, env=env, cwd=Path("/")))

    def test_nothing_in_the_root_belongs_to_the_user_but_the_volume(self) -> None:
        _, layers = Layout(package("*-image")).image("amd64")
        for layer in layers:
            with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
                for entry in archive:
                    self.assertEqual(entry.uid, USER if entry.name == "data" else 0, entry.name)
                    if entry.name != "tmp":
                        self.assertEqual(entry.mode & 0o22, 0, entry.name)
                    self.assertFalse(entry.mode & 0o6000, entry.name)

    def test_both_architectures_are_there_and_each_names_the_server_of_the_registry(self) -> None:
        layout = Layout(package("*-image", everything()))
        for architecture in ["amd64", "arm64"]:
            config, _ = layout.image(architecture)
            self.assertEqual(config["architecture"], architecture)
            self.assertEqual(config["config"]["User"], f"{USER}:{USER}")
            self.assertEqual(config["config"]["Labels"]["io.modelcontextprotocol.server.name"], MCP_NAME)
        blobs = {f"sha256:{path.name}" for path in (layout.folder / "blobs/sha256").iterdir()}
        self.assertEqual(blobs, layout.read)
