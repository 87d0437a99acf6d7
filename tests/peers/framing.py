"""A server whose messages do not stand on a line each, and whose calls report progress.

framing.py FORM: `pretty`, `crlf`, `log` (a line that looks like the beginning of a message before each), `length`
(`Content-Length` headers; `characters` counts characters in place of bytes), `bare` (nothing between messages), `tagged`
(the level of a log before each), `batch`, `joined` (a notification and the reply on one line), `frames` (`Content-Length`
headers in both directions; `refuse-frames` ends with an error when it reads anything else). `--listing SECONDS` is the time
that the list of tools takes.
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
    text = json.dumps(message, ensure_ascii=False)
    if FORM in ("length", "frames", "refuse-frames", "characters"):
        length = len(text) if FORM == "characters" else len(text.encode())
        text = f"Content-Length: {length}\r\nContent-Type: application/json\r\n\r\n{text}"
    elif FORM == "batch":
        text = json.dumps([NOTICE, message]) + "\n"
    elif FORM == "joined":
        text = json.dumps(NOTICE) + text + "\n"
    elif FORM in ("pretty", "crlf", "log"):
        text = json.dumps(message, indent=2) + "\n"
    elif FORM == "tagged":
        text = "\x1b[0m[info] " + text + "\n"
    elif FORM != "bare":
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
    text = "x" * (arguments["big"] << 20) if "big" in arguments else json.dumps(arguments, ensure_ascii=False)
    return {"content": [{"type": "text", "text": text}]}


def messages():
    """Reads the messages as their sender has to frame them."""
    if "frames" not in FORM:
        yield from map(json.loads, sys.stdin)
        return
    stream = sys.stdin.buffer
    while True:
        headers = {}
        # What is no header is skipped, as by most readers of this framing.
        while (line := stream.readline()) not in (b"\r\n", b"\n", b""):
            name, _, value = line.partition(b":")
            headers[name.strip().lower()] = value.strip()
            if FORM == "refuse-frames" and name.lower() != b"content-length":
                sys.exit("Error: Header must provide a Content-Length property.")
        if not line:
            return
        if b"content-length" in headers:
            yield json.loads(stream.read(int(headers[b"content-length"])))


for message in messages():
    method, identity = message.get("method"), message.get("id")
    if identity is None or method is None:
        continue
    if method == "initialize":
        server = {"name": "framing", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": server}
    elif method == "tools/list":
        if "--listing" in sys.argv:
            threading.Event().wait(float(sys.argv[sys.argv.index("--listing") + 1]))
        result = {"tools": TOOLS}
    elif method == "tools/call":
        result = call(message)
    else:
        result = {}
    if result is not None:
        send({"jsonrpc": "2.0", "id": identity, "result": result})
