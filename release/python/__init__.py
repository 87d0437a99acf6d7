"""lispbox, a sandboxed Lisp in which AI agents run their data pipelines. The package carries the binary."""

import os
import sys
import sysconfig


def find_binary() -> str:
    """Returns the path of the binary: LISPBOX_BINARY, or the one that was installed with this package."""
    named = os.environ.get("LISPBOX_BINARY")
    if named:
        if os.path.isfile(named):
            return named
        raise FileNotFoundError(f"LISPBOX_BINARY is `{named}`, and there is no such file")
    name = "lispbox" + (sysconfig.get_config_var("EXE") or "")
    package = os.path.dirname(os.path.abspath(__file__))
    user = sysconfig.get_preferred_scheme("user")
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", vars={"base": sys.base_prefix}),
        sysconfig.get_path("scripts", scheme=user),
        # `pip install --target FOLDER` and `--prefix FOLDER`.
        os.path.join(os.path.dirname(package), "bin"),
        os.path.join(package, "..", "..", "..", "..", "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(
        f"there is no {name} in {', '.join(map(os.path.normpath, folders))}; install the package again"
    )
