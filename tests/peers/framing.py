"""A server whose messages do not stand on a line each, and whose calls report progress.

framing.py FORM: `pretty`, `crlf`, `log` (a line that looks like the beginning of a message before each), `length`
(`Content-Length` headers), `batch`, `joined` (a notification and the reply on one line).
"""
import json, sys, threading

FORM = sys.argv[1]
NOTICE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}
OBJECT = {"type": "object"}
ALTERNATIVES = {"$defs": {
    "File": {"type": "object", "properties": {"kind": {"const": "file"}, "filePath": {"type": "string"}},
             "required": ["kind", "filePath"]},
    "Page": {"type": "object", "properties": {"kind": {"const": "page"}, "url": {"type": "string"}},
             "required": ["kind", "url"]}},
    "oneOf": [{"$ref": "#/$defs/File"}, {"$ref": "#/$defs/Page"}]}
TOOLS = [
    {"name": "echo", "description": "echoes", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "slow", "description": "reports progress", "inputSchema": OBJECT, "annotations": {"readOnlyHint": True}},
    {"name": "open", "description": "opens", "inputSchema": ALTERNATIVES, "annotations": {"readOnlyHint": True}},
    {"name": "later", "description": "takes long", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
]


def send(message):
    text = json.dumps(message)
    if FORM == "length":
        text = f"Content-Length: {len(text)}\r\nContent-Type: application/json\r\n\r\n{text}"
    elif FORM == "batch":
        text = json.dumps([NOTICE, message]) + "\n"
    elif FORM == "joined":
        text = json.dumps(NOTICE) + text + "\n"
    elif FORM in ("pretty", "crlf", "log"):
        text = json.dumps(message, indent=2) + "\n"
    else:
        text += "\n"
    if FORM == "crlf":
        text = text.replace("\n", "\r\n")
    if FORM == "log":
        text = "[info] {not json}\n" + text
    sys.stdout.write(text)
    sys.stdout.flush()


def call(message):
    params = message["params"]
    arguments = params.get("arguments") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    if params["name"] == "slow":
        # Progress as often as asked for, each after a part of the time, and then the reply or nothing at all.
        for step in range(arguments["steps"]):
            threading.Event().wait(arguments["wait"])
            report = {"progressToken": str(token), "progress": step}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})
        if arguments.get("silent"):
            return None
    text = "x" * (arguments["big"] << 20) if "big" in arguments else json.dumps(arguments)
    return {"content": [{"type": "text", "text": text}]}


for line in sys.stdin:
    message = json.loads(line)
    method, identity = message.get("method"), message.get("id")
    if identity is None or method is None:
        continue
    if method == "initialize":
        server = {"name": "framing", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = call(message)
    else:
        result = {}
    if result is not None:
        send({"jsonrpc": "2.0", "id": identity, "result": result})
