"""A downstream server that misbehaves on request, in plain Python.

Each tool is one kind of misbehaviour. Arguments: `--start hang|exit|noise` for a server that fails to start
properly, `--start SECONDS` for one that starts slowly; `--log FILE` records each start in the file.
"""
import json
import os
import subprocess
import sys
import time

OBJECT = {"type": "object"}
COUNTED = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "deaths": {"type": "integer"}},
    "required": ["file", "deaths"],
}
TOOLS = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "fail": OBJECT,
    "hang": OBJECT,
    "die": OBJECT,
    "garbage": OBJECT,
    "flood": OBJECT,
    "large": {"type": "object", "properties": {"megabytes": {"type": "integer"}}, "required": ["megabytes"]},
    "deep": OBJECT,
    "odd": OBJECT,
    "cancelled": OBJECT,
    "children": OBJECT,
    "pid": OBJECT,
    "fetch": COUNTED,
    "store": COUNTED,
    "ask": {"type": "object", "properties": {"method": {"type": "string"}}, "required": ["method"]},
    "change": OBJECT,
}
HINTS = {"fetch": {"readOnlyHint": True}}
ASKED = {
    "sampling/createMessage": {"messages": [], "maxTokens": 10},
    "elicitation/create": {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}},
}
withdrawn = []


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def text(identity, content):
    send({"jsonrpc": "2.0", "id": identity, "result": {"content": [{"type": "text", "text": content}]}})


def call(identity, name, arguments):
    if name == "echo":
        text(identity, arguments["text"])
    elif name == "fail":
        result = {"content": [{"type": "text", "text": "no such mailbox"}], "isError": True}
        send({"jsonrpc": "2.0", "id": identity, "result": result})
    elif name == "hang":
        pass
    elif name == "die":
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "garbage":
        sys.stdout.write("debug: this is no JSON\n{\"half\": \n\x00\x01\n")
        text(identity, "after the garbage")
    elif name == "flood":
        for _ in range(20000):
            sys.stderr.write("x" * 200 + "\n")
        text(identity, "after the flood")
    elif name == "large":
        text(identity, "x" * (arguments["megabytes"] << 20))
    elif name == "deep":
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":%s%s}\n' % (identity, "[" * 5000, "]" * 5000))
        sys.stdout.flush()
    elif name == "odd":
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":oops}\n' % identity)
        sys.stdout.flush()
    elif name == "cancelled":
        text(identity, json.dumps(withdrawn))
    elif name == "children":
        child = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
        grandchild = int(child.stdout.readline())
        text(identity, json.dumps([os.getpid(), child.pid, grandchild]))
    elif name == "pid":
        text(identity, json.dumps([os.getpid()]))
    elif name in ("fetch", "store"):
        # Counts the calls in a file, and crashes during the first `deaths` of them.
        with open(arguments["file"], "a+") as count:
            count.write("x")
        calls = os.path.getsize(arguments["file"])
        if calls <= arguments["deaths"]:
            os._exit(3)
        text(identity, json.dumps([calls]))
    elif name == "ask":
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "asking"}})
        send({"jsonrpc": "2.0", "method": "notifications/resources/list_changed"})
        send({"jsonrpc": "2.0", "id": "asked", "method": arguments["method"], "params": ASKED.get(arguments["method"], {})})
        answer = json.loads(sys.stdin.readline())
        text(identity, json.dumps(answer.get("result", answer.get("error"))))
    elif name == "change":
        TOOLS["added"] = OBJECT
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        text(identity, "changed")
    elif name == "added":
        text(identity, "new")


def main():
    start = sys.argv[sys.argv.index("--start") + 1] if "--start" in sys.argv else ""
    if "--log" in sys.argv:
        with open(sys.argv[sys.argv.index("--log") + 1], "a") as log:
            log.write("started\n")
    if start == "exit":
        sys.stderr.write("the key is missing\n")
        sys.exit(7)
    if start == "noise":
        sys.stdout.write("Welcome to the server!\n\n")
        sys.stdout.flush()
    if start[:1].isdigit():
        time.sleep(float(start))
    for line in sys.stdin:
        if start == "hang":
            time.sleep(1000)
        message = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            result = {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"},
            }
            send({"jsonrpc": "2.0", "id": identity, "result": result})
        elif method == "tools/list":
            names = list(TOOLS)
            half = len(names) // 2
            first = "cursor" not in (message.get("params") or {})
            page = names[:half] if first else names[half:]
            tools = [{"name": name, "description": "Does " + name + ".", "inputSchema": TOOLS[name]} for name in page]
            for tool in tools:
                if tool["name"] in HINTS:
                    tool["annotations"] = HINTS[tool["name"]]
            result = {"tools": tools, "nextCursor": "rest"} if first else {"tools": tools}
            send({"jsonrpc": "2.0", "id": identity, "result": result})
        elif method == "tools/call":
            call(identity, message["params"]["name"], message["params"].get("arguments") or {})
        elif method == "notifications/cancelled":
            withdrawn.append(message["params"]["requestId"])
        elif identity is not None:
            send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "no such method"}})


main()
