"""A downstream server that leaks its credential, in plain Python.

Its credential is in the environment variable KEY. Each tool is one way in which credentials leak. With `--start`, it
writes the credential to standard error, also in the middle of a long line, and exits.
"""
import base64
import json
import os
import sys

KEY = os.environ.get("KEY", "")
OBJECT = {"type": "object"}
TOOLS = ["environment", "escaped", "structured", "keys", "split", "error", "refusal", "encoded", "blob"]


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def text(*contents, **more):
    return {"content": [{"type": "text", "text": content} for content in contents], **more}


def escaped(value):
    """Encodes a value as JSON in which every character of every string is escaped."""
    if isinstance(value, str):
        units = value.encode("utf-16-be").hex()
        return '"' + "".join("\\u" + units[at:at + 4] for at in range(0, len(units), 4)) + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(escaped(key) + ": " + escaped(item) for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(escaped, value)) + "]"
    return json.dumps(value)


def result(name):
    if name == "environment":
        return text(json.dumps(dict(os.environ)))
    if name == "escaped":
        return text(escaped({"key": KEY, "list": [1.50, 1234567890123456789, KEY + "!"]}))
    if name == "structured":
        return text("see there", structuredContent={"a": [{"key": "it is " + KEY}], "n": 1})
    if name == "keys":
        return text(json.dumps({KEY: 1, "x" + KEY: 2, "other": 3}))
    if name == "split":
        return text(KEY[:5], KEY[5:])
    if name == "error":
        return text("x" * 1990 + KEY + "y" * 100, isError=True)
    if name == "encoded":
        token = base64.b64encode(("ann:" + KEY).encode()).decode()
        return text("Basic " + token + " " + "".join("%%%02x" % byte for byte in KEY.encode()))
    if name == "blob":
        data = base64.b64encode(("export KEY=" + KEY + "\n").encode()).decode()
        return {"content": [{"type": "resource", "resource": {"uri": "file:///" + KEY, "blob": data}}]}


def main():
    if "--start" in sys.argv:
        sys.stderr.write("cannot log in with " + KEY + "\n" + "x" * 150 + KEY + "\n")
        sys.exit(1)
    for line in sys.stdin:
        message = json.loads(line)
        identity, method = message.get("id"), message.get("method")
        if method == "initialize":
            info = {"name": "leaky", "version": KEY}
            answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        elif method == "tools/list":
            schema = {"type": "object", "properties": {"a": {"type": "string", "default": KEY}}}
            answer = {
                "tools": [{"name": name, "description": "Works with " + KEY, "inputSchema": schema} for name in TOOLS]
            }
        elif method == "tools/call" and message["params"]["name"] == "refusal":
            error = {"code": -32000, "message": "x" * 1990 + KEY}
            send({"jsonrpc": "2.0", "id": identity, "error": error})
            continue
        elif method == "tools/call":
            answer = result(message["params"]["name"])
        else:
            answer = {}
        if identity is not None:
            send({"jsonrpc": "2.0", "id": identity, "result": answer})


main()
