"""A downstream server whose tools are given as JSON: an object from names to annotations, with null for none, or a list
of such pairs, in which a name may occur twice.

Each tool accepts any arguments and answers with its own name; a tool whose name begins with `slow` does not answer.
"""
import json
import sys

TOOLS = json.loads(sys.argv[1])
PAIRS = list(TOOLS.items()) if isinstance(TOOLS, dict) else TOOLS


def send(identity, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
    sys.stdout.flush()


def described(name, annotations):
    tool = {"name": name, "inputSchema": {"type": "object"}}
    return tool if annotations is None else {**tool, "annotations": annotations}


for line in sys.stdin:
    message = json.loads(line)
    method, identity = message.get("method"), message.get("id")
    if method == "initialize":
        send(identity, {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "named", "version": "1"},
        })
    elif method == "tools/list":
        send(identity, {"tools": [described(*tool) for tool in PAIRS]})
    elif method == "tools/call":
        name = message["params"]["name"]
        if not name.startswith("slow"):
            send(identity, {"content": [{"type": "text", "text": name + " was called"}]})
    elif identity is not None:
        send(identity, {})
