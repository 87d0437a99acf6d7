"""A bill of materials in CycloneDX 1.6: the crates in the binary of one platform, with licences and digests."""

import json
import os
import subprocess
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from .project import LICENSE, ROOT, SLUG, VERSION, epoch
from .targets import Target


def build(target: Target, features: str, output: Path) -> Path:
    command = [
        os.environ.get("CARGO", "cargo"),
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        target.triple,
        *(["--features", features] if features else []),
    ]
    told = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    (root,) = [package["id"] for package in told["packages"] if package["name"] == "lispbox"]
    reached, links = {root}, {}
    waiting = [root]
    while waiting:
        here = waiting.pop()
        links[here] = sorted({each["pkg"] for each in nodes[here]["deps"] if _is_linked(each)})
        new = [each for each in links[here] if each not in reached]
        reached.update(new)
        waiting.extend(new)
    digests = {(each["name"], each["version"]): each.get("checksum") for each in _lock()}
    components = [
        _component(packages[each], digests) for each in sorted(reached - {root}, key=lambda each: _purl(packages[each]))
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{SLUG}/{VERSION}/{target.triple}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": _component(packages[root], digests)
            | {
                "type": "application",
                "properties": [{"name": "target", "value": target.triple}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": _purl(packages[each]), "dependsOn": [_purl(packages[other]) for other in links[each]]}
            for each in sorted(reached, key=lambda each: _purl(packages[each]))
        ],
    }
    path = output / f"lispbox-{VERSION}-{target.triple}.cdx.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _is_linked(dependency: dict) -> bool:
    """False for what only builds or tests use."""
    return any(kind["kind"] is None for kind in dependency["dep_kinds"])


def _lock() -> list[dict]:
    return tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]


def _purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def _component(package: dict, digests: dict) -> dict:
    digest = digests.get((package["name"], package["version"]))
    return {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": _purl(package),
        # Some crates still write `MIT/Apache-2.0`.
        "licenses": [{"expression": (package["license"] or LICENSE).replace("/", " OR ")}],
        **({"hashes": [{"alg": "SHA-256", "content": digest}]} if digest else {}),
    }
