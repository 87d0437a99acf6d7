"""A downstream server whose tools are read from a file: a list of objects as in `tools/list`, or an object with this
list as `tools`, the `version` of the server and the `replies` of its tools.

A call returns the text of its argument `reply`, or the reply of the tool, or its name.
"""
import json
import sys


def send(identity, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
    sys.stdout.flush()


def main():
    with open(sys.argv[1]) as file:
        given = json.load(file)
    given = given if isinstance(given, dict) else {"tools": given}
    tools, replies = given["tools"], given.get("replies", {})
    for line in sys.stdin:
        message = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "schemas", "version": given.get("version", "1")}
            send(identity, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info})
        elif method == "tools/list":
            send(identity, {"tools": tools})
        elif method == "tools/call":
            params = message["params"]
            reply = (params.get("arguments") or {}).get("reply")
            reply = reply or replies.get(params["name"], params["name"])
            send(identity, {"content": [{"type": "text", "text": reply}]})


main()
