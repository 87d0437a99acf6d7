"""The MCP server of a data set, on stdio.

    python server.py desk --effects FILE
    python server.py mishaps --effects FILE --faults JSON --calls FILE

Each effect is a line of JSON in FILE, written before the tool replies. A server that starts with a file that already
has effects applies them first, so that a client may stop and restart its servers. Faults go on likewise, with the
calls so far in another file.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import sets
from mishaps import faults
from serving import serve


def main() -> None:
    parser = argparse.ArgumentParser(description="Serves the tools of a data set over MCP on stdio.")
    parser.add_argument("dataset", choices=[*sets.DATASETS, sets.MISHAPS])
    parser.add_argument("--effects", type=Path, help="the file of the effects, applied at the start and added to")
    parser.add_argument("--faults", type=faults.read, default=(), metavar="JSON", help="the faults of the tools")
    parser.add_argument("--calls", type=Path, help="the file of the calls, which faults need")
    options = parser.parse_args()
    if options.faults and not options.calls:
        parser.error("--faults needs --calls")
    tools = importlib.import_module(f"{options.dataset}.tools")
    state = tools.fresh()
    if options.effects:
        state.restore(options.effects)
    name = sets.SERVERS.get(options.dataset, options.dataset)
    if options.calls:
        faulty = faults.Faulty(options.faults, options.calls)
        serve(name, tools.TOOLS, state, faulty.called, is_parallel=True)
    else:
        serve(name, tools.TOOLS, state)


if __name__ == "__main__":
    main()
