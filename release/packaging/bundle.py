"""Bundles for Claude Desktop, one for each system, validated and packed by Anthropic's `mcpb`."""

import json
import subprocess
from pathlib import Path

from .files import copy, fresh, settle, settle_zip, write
from .project import AUTHOR, KEYWORDS, LICENSE, LICENSES, OWN, REPOSITORY, ROOT, SUMMARY, VERSION

# The name of a bundle, the system that its manifest names, and the binary.
SYSTEMS = {
    "macos": ("darwin", "universal-apple-darwin/lispbox"),
    "windows": ("win32", "x86_64-pc-windows-msvc/lispbox.exe"),
    # Static, so that it runs on every distribution.
    "linux": ("linux", "x86_64-unknown-linux-musl/lispbox"),
}


def build(system: str, binary: Path, packer: list[str], work: Path, output: Path) -> Path:
    folder = fresh(work / f"bundle-{system}")
    exe = "lispbox.exe" if system == "windows" else "lispbox"
    copy(binary, folder / "server" / exe, 0o755)
    for name in LICENSES:
        copy(ROOT / name, folder / name)
    manifest = json.loads((OWN / "claude-desktop/manifest.json").read_text())
    manifest |= {
        "version": VERSION,
        "description": SUMMARY,
        "author": {"name": AUTHOR, "url": REPOSITORY},
        "repository": {"type": "git", "url": f"{REPOSITORY}.git"},
        "documentation": f"{REPOSITORY}/blob/v{VERSION}/docs/install.md",
        "support": f"{REPOSITORY}/issues",
        "keywords": KEYWORDS,
        "license": LICENSE,
        "compatibility": {"platforms": [SYSTEMS[system][0]]},
    }
    manifest["server"]["entry_point"] = f"server/{exe}"
    manifest["server"]["mcp_config"]["command"] = f"${{__dirname}}/server/{exe}"
    write(folder / "manifest.json", json.dumps(manifest, indent=2) + "\n")
    settle(folder)
    path = output / f"lispbox-{VERSION}-{system}.mcpb"
    path.unlink(missing_ok=True)
    for command in [["validate", str(folder / "manifest.json")], ["pack", str(folder), str(path)]]:
        done = subprocess.run([*packer, *command], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout:
            raise RuntimeError(f"mcpb {command[0]}: {done.stdout}{done.stderr}")
    settle_zip(path)
    return path
