"""A container image as an OCI layout, made without a container engine: the binary, certificates, and folders for data.

A static binary is alone in it. A dynamic one, in a rehearsal, gets the libraries of this machine.
"""

import hashlib
import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from . import elf
from .files import copy, fresh, gzipped, settle, tar, write
from .project import LICENSE, LICENSES, MCP_NAME, REPOSITORY, ROOT, SUMMARY, VERSION, epoch
from .targets import Target

# `nonroot`, as in the images of distroless.
USER = 65532
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def root(target: Target, binary: Path, work: Path) -> Path:
    """Lays out the files of the image."""
    folder = fresh(work / f"image-{target.triple}")
    copy(binary, folder / "lispbox", 0o755)
    copy(CERTIFICATES, folder / "etc/ssl/certs/ca-certificates.crt")
    write(folder / "etc/passwd", f"root:x:0:0:root:/:/lispbox\nnonroot:x:{USER}:{USER}:nonroot:/data:/lispbox\n")
    write(folder / "etc/group", f"root:x:0:\nnonroot:x:{USER}:\n")
    write(folder / "etc/nsswitch.conf", "hosts: files dns\n")
    for name in LICENSES:
        copy(ROOT / name, folder / "usr/share/licenses/lispbox" / name)
    needs = elf.needs(binary)
    if needs.loader:
        listed = subprocess.run(["ldd", binary], capture_output=True, text=True, check=True).stdout
        libraries = [word for line in listed.splitlines() for word in line.split() if word.startswith("/")]
        for library in libraries:
            copy(Path(library).resolve(), folder / library.lstrip("/"), 0o755)
    for name, mode in {"data": 0o700, "tmp": 0o1777}.items():
        (folder / name).mkdir()
        (folder / name).chmod(mode)
    for path in folder.rglob("*"):
        if path.is_dir() and path.name not in ("data", "tmp"):
            path.chmod(0o755)
    settle(folder)
    return folder


def build(roots: dict[Target, Path], output: Path) -> Path:
    """Writes the layout, with an image for each architecture, as a folder that `skopeo copy oci:…` uploads."""
    layout = fresh(output / f"lispbox-{VERSION}-image")
    write(layout / "oci-layout", json.dumps({"imageLayoutVersion": "1.0.0"}))
    manifests = [_image(layout, target, folder) for target, folder in roots.items()]
    about = {"org.opencontainers.image.ref.name": VERSION}
    index = _blob(
        layout,
        _json(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.index.v1+json",
                "manifests": manifests,
                "annotations": _annotations(),
            }
        ),
        "application/vnd.oci.image.index.v1+json",
    ) | {"annotations": about}
    write(layout / "index.json", json.dumps({"schemaVersion": 2, "manifests": [index]}))
    return layout


def _image(layout: Path, target: Target, folder: Path) -> dict:
    content = tar(folder, owners={"data": USER})
    layer = _blob(layout, gzipped(content), "application/vnd.oci.image.layer.v1.tar+gzip")
    moment = datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    config = _blob(
        layout,
        _json(
            {
                "created": moment,
                "architecture": target.oci,
                "os": "linux",
                "config": {
                    "User": f"{USER}:{USER}",
                    "Entrypoint": ["/lispbox"],
                    # One client on standard input and output; `serve --http 0.0.0.0:8787` with a token for many.
                    "Cmd": ["serve"],
                    "Env": ["HOME=/data", "PATH=/", "LISPBOX_STORE=sqlite:/data/sessions.db"],
                    "WorkingDir": "/data",
                    "Volumes": {"/data": {}},
                    "ExposedPorts": {"8787/tcp": {}},
                    "StopSignal": "SIGTERM",
                    "Labels": _annotations() | {"io.modelcontextprotocol.server.name": MCP_NAME},
                },
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(content).hexdigest()}"]},
                "history": [{"created": moment, "created_by": "release/build"}],
            }
        ),
        "application/vnd.oci.image.config.v1+json",
    )
    manifest = _blob(
        layout,
        _json(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": config,
                "layers": [layer],
                "annotations": _annotations(),
            }
        ),
        "application/vnd.oci.image.manifest.v1+json",
    )
    return manifest | {"platform": {"architecture": target.oci, "os": "linux"}}


def _annotations() -> dict:
    return {
        "org.opencontainers.image.title": "lispbox",
        "org.opencontainers.image.description": SUMMARY,
        "org.opencontainers.image.version": VERSION,
        "org.opencontainers.image.licenses": LICENSE,
        "org.opencontainers.image.source": REPOSITORY,
    }


def _json(value: dict) -> bytes:
    return json.dumps(value, indent=1).encode()


def _blob(layout: Path, content: bytes, media_type: str) -> dict:
    digest = hashlib.sha256(content).hexdigest()
    path = layout / "blobs/sha256" / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}
