"""An RPM package, built by rpmbuild from the same files as the Debian package."""

import subprocess
from pathlib import Path

from . import elf, files
from .extras import system_root
from .files import copy, fresh, settle, write
from .project import LICENSE, LICENSES, REPOSITORY, ROOT, SUMMARY, VERSION, epoch
from .targets import Target


def build(target: Target, binary: Path, extras: Path, work: Path, output: Path) -> Path:
    root = system_root(binary, extras, work / f"rpm-{target.rpm}")
    for old, new in [("vendor-completions", "site-functions")]:
        (root / "usr/share/zsh" / old).rename(root / "usr/share/zsh" / new)
    for name in LICENSES:
        copy(ROOT / name, root / "usr/share/licenses/lispbox" / name)
    settle(root)
    top = fresh(work / f"rpmbuild-{target.rpm}")
    spec = write(top / "lispbox.spec", _spec(root))
    payload = "w9.xzdio" if files.level == 9 else f"w{files.level}.gzdio"
    command = [
        "rpmbuild",
        "-bb",
        "--target",
        f"{target.rpm}-linux",
        "--define",
        f"_topdir {top}",
        "--define",
        f"_rpmdir {top}/out",
        "--define",
        "_build_id_links none",
        "--define",
        "__os_install_post %{nil}",
        "--define",
        "use_source_date_epoch_as_buildtime 1",
        "--define",
        "clamp_mtime_to_source_date_epoch 1",
        "--define",
        "_buildhost release",
        "--define",
        f"_binary_payload {payload}",
        "--buildroot",
        str(top / "root"),
        str(spec),
    ]
    environment = {"SOURCE_DATE_EPOCH": str(epoch()), "PATH": elf.PATH, "HOME": str(top)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"rpmbuild: {done.stderr}")
    (built,) = (top / "out").rglob("*.rpm")
    return copy(built, output / built.name)


def _spec(root: Path) -> str:
    scripts = ROOT / "release/system"
    return f"""Name: lispbox
Version: {VERSION}
Release: 1
Summary: {SUMMARY}
License: {LICENSE}
URL: {REPOSITORY}
# The binary needs the C library alone, whose symbols rpmbuild finds out.
Recommends: ca-certificates
Suggests: nodejs

%description
An agent sends one Clojure-style program. The program calls the tools of your MCP servers, filters and aggregates their
results in the sandbox, and only the answer reaches the model. The service is neither enabled nor started.

%install
mkdir -p %{{buildroot}}
cp -a {root}/. %{{buildroot}}

%files
%license /usr/share/licenses/lispbox
/usr/bin/lispbox
/usr/lib/systemd/system/lispbox.service
%dir /etc/lispbox
%config(noreplace) /etc/lispbox/config.yaml
%config(noreplace) %attr(0640, root, root) /etc/lispbox/environment
/usr/share/man/man1/lispbox*
/usr/share/bash-completion/completions/lispbox
/usr/share/zsh/site-functions/_lispbox
/usr/share/fish/vendor_completions.d/lispbox.fish

%post
{_script(scripts / "postinst.sh")}
%preun
{_script(scripts / "prerm.sh")}
%postun
{_script(scripts / "postrm.sh")}
"""


def _script(path: Path) -> str:
    """The body of a script; rpm passes the number of versions that are left, 0 at a removal."""
    return "".join(line for line in path.read_text().splitlines(True) if not line.startswith("#!"))
