"""A downstream server that sends too much, too little or invalid output, in plain Python.

Its tool `flood` misbehaves as the argument `kind` specifies, and then answers if it can.
Arguments: `--tools N` for the number of tools, `--pages` for an endless list of tools.
"""
import json
import os
import sys
import time

OUT = sys.stdout.buffer
SCHEMA = {"type": "object", "properties": {"kind": {"type": "string"}, "count": {"type": "integer"}, "text": {"type": "string"}}}


def line(message):
    return json.dumps(message).encode() + b"\n"


def reply(identity, content):
    return line({"jsonrpc": "2.0", "id": identity, "result": {"content": [{"type": "text", "text": content}]}})


def flood(identity, kind, count):
    done = reply(identity, "done")
    if kind == "notifications":
        for number in range(count // 100):
            OUT.write(line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 200}}) * 100)
    elif kind == "unknown":
        OUT.write(line({"jsonrpc": "2.0", "method": "notifications/" + "y" * 1000, "params": {}}) * count)
    elif kind == "lines":
        OUT.write(b"[debug] this is no message, though it is long\n" * count)
    elif kind == "unasked":
        for number in range(count):
            OUT.write(reply(1000000 + number, "nobody asked"))
    elif kind == "pings":
        # Sends requests to the client, whose answers remain unread in the meantime.
        for number in range(count):
            OUT.write(line({"jsonrpc": "2.0", "id": number, "method": "ping"}))
    elif kind == "twice":
        OUT.write(done)
    elif kind == "other":
        done = reply("somebody else", "done")
    elif kind == "errors":
        for block in range(count):
            os.write(2, b"e" * (1 << 20))
    elif kind == "endless":
        done = b""
        OUT.write(b'{"jsonrpc":"2.0","id":%d,"result":"' % identity)
        for block in range(count):
            OUT.write(b"x" * (1 << 20))
        OUT.flush()
        time.sleep(60)
    elif kind == "many":
        done = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":{"result":[%s0]}}}\n' % (identity, b"0," * count)
    elif kind == "half":
        OUT.write(done[: len(done) // 2])
        OUT.flush()
        os._exit(0)
    elif kind == "deaf":
        time.sleep(60)
    OUT.write(done)
    OUT.flush()


def main():
    tools = [{"name": "flood", "description": "Too much.", "inputSchema": SCHEMA}]
    if "--tools" in sys.argv:
        count = int(sys.argv[sys.argv.index("--tools") + 1])
        tools += [{"name": "tool-%d" % n, "description": "Does %d." % n, "inputSchema": SCHEMA} for n in range(count)]
    for received in sys.stdin:
        message = json.loads(received)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "flooding", "version": "1"},
            }
            OUT.write(line({"jsonrpc": "2.0", "id": identity, "result": result}))
        elif method == "tools/list":
            result = {"tools": tools}
            if "--pages" in sys.argv:
                page = int((message.get("params") or {}).get("cursor") or 0)
                large = {"name": "page-%d" % page, "description": "d" * (1 << 20), "inputSchema": SCHEMA}
                result = {"tools": tools + [large] if page == 0 else [large], "nextCursor": str(page + 1)}
            OUT.write(line({"jsonrpc": "2.0", "id": identity, "result": result}))
        elif method == "tools/call":
            arguments = message["params"].get("arguments") or {}
            flood(identity, arguments.get("kind"), arguments.get("count", 0))
        elif identity is not None and method is not None:
            OUT.write(line({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "no such method"}}))
        OUT.flush()


main()
