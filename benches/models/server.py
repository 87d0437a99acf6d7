"""The MCP server of a data set, on stdio.

    python server.py desk --effects FILE

Each effect is a line of JSON in FILE, written before the tool replies. A server that starts with a file that already
has effects applies them first, so that a client may stop and restart its servers.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from serving import serve


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the tools of a data set over MCP on stdio.")
    parser.add_argument("dataset", choices=["desk", "depot"])
    parser.add_argument("--effects", type=Path, help="the file of the effects, applied at the start and added to")
    options = parser.parse_args()
    tools = importlib.import_module(f"{options.dataset}.tools")
    state = tools.fresh()
    if options.effects:
        state.restore(options.effects)
    serve(options.dataset, tools.TOOLS, state)


if __name__ == "__main__":
    main()
