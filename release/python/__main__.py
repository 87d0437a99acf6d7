"""`python -m lispbox`: runs the binary."""

import os
import subprocess
import sys

from lispbox import find_binary


def main() -> int:
    """Runs the binary in the place of this process, or as a child on Windows, which has no such call."""
    try:
        binary = find_binary()
        if sys.platform != "win32":
            os.execv(binary, [binary, *sys.argv[1:]])
        return subprocess.run([binary, *sys.argv[1:]], check=False).returncode
    except OSError as problem:
        print(f"lispbox: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
