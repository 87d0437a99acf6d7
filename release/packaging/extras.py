"""What a package has beside the binary: manual pages, completions, licences. They are the same on all platforms, so a
binary that runs on this machine makes them for all."""

import subprocess
from pathlib import Path

from .files import copy, fresh, gzipped, settle, tar, write, zip_folder
from .project import LICENSES, ROOT, VERSION
from .targets import Target

SHELLS = {"bash": "lispbox.bash", "zsh": "_lispbox", "fish": "lispbox.fish", "powershell": "_lispbox.ps1"}


def generate(generator: Path, work: Path) -> Path:
    """Writes `man/*.1` and `completions/*`, and returns their folder."""
    folder = fresh(work / "extras")
    subprocess.run([generator, "manual", folder / "man"], check=True)
    for shell, name in SHELLS.items():
        shown = subprocess.run([generator, "completions", shell], capture_output=True, text=True, check=True)
        write(folder / "completions" / name, shown.stdout)
    return folder


def archive(target: Target, binary: Path, extras: Path, work: Path, output: Path) -> Path:
    """Makes the archive that Homebrew, Scoop and `cargo binstall` download."""
    name = f"lispbox-{VERSION}-{target.triple}"
    folder = fresh(work / name)
    copy(binary, folder / target.exe, 0o755)
    for file in ["README.md", "CHANGELOG.md", *LICENSES]:
        copy(ROOT / file, folder / file)
    for file in extras.rglob("*"):
        if file.is_file():
            copy(file, folder / file.relative_to(extras))
    settle(folder)
    if target.os == "win32":
        path = output / f"{name}.zip"
        zip_folder(folder, path, f"{name}/")
    else:
        path = output / f"{name}.tar.gz"
        path.write_bytes(gzipped(tar(folder, f"{name}/")))
    return path


def system_root(binary: Path, extras: Path, folder: Path) -> Path:
    """Lays out what the packages of Linux distributions install."""
    fresh(folder)
    copy(binary, folder / "usr/bin/lispbox", 0o755)
    copy(ROOT / "release/system/lispbox.service", folder / "usr/lib/systemd/system/lispbox.service")
    copy(ROOT / "release/system/environment", folder / "etc/lispbox/environment", 0o640)
    copy(ROOT / "release/system/config.yaml", folder / "etc/lispbox/config.yaml")
    for page in (extras / "man").iterdir():
        path = write(folder / f"usr/share/man/man1/{page.name}.gz", "")
        path.write_bytes(gzipped(page.read_bytes()))
    places = {
        "lispbox.bash": "usr/share/bash-completion/completions/lispbox",
        "_lispbox": "usr/share/zsh/vendor-completions/_lispbox",
        "lispbox.fish": "usr/share/fish/vendor_completions.d/lispbox.fish",
    }
    for name, place in places.items():
        copy(extras / "completions" / name, folder / place)
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir():
            path.chmod(0o755)
    settle(folder)
    return folder
