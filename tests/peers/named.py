"""A downstream server whose tools are given as JSON: an object from names to annotations, with null for none, or a list
of such pairs, in which a name may occur twice.

Each tool accepts any arguments and answers with its own name; a tool whose name begins with `slow` does not answer.
"""
import json
import sys

from stdio import serve

TOOLS = json.loads(sys.argv[1])
PAIRS = list(TOOLS.items()) if isinstance(TOOLS, dict) else TOOLS


def described(name, annotations):
    tool = {"name": name, "inputSchema": {"type": "object"}}
    return tool if annotations is None else {**tool, "annotations": annotations}


def call(name, _):
    return None if name.startswith("slow") else name + " was called"


serve("named", [described(*tool) for tool in PAIRS], call)
