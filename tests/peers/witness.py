"""A downstream server that records the calls that it receives in a file, one id per line.

Argument: the file. Its first line is the process id. `note` answers at once, `hold` once the file named by `until`
exists, and `remove` is annotated as destructive.
"""
import json
import os
import sys
import threading
import time

FILE = sys.argv[1]
TOOL = {"type": "object", "properties": {"id": {"type": "integer"}, "until": {"type": "string"}}}
writing = threading.Lock()


def record(line):
    with writing, open(FILE, "a") as file:
        file.write(str(line) + "\n")


def send(message):
    with writing:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def answer(identity, result):
    send({"jsonrpc": "2.0", "id": identity, "result": result})


def hold(identity, arguments):
    while not os.path.exists(arguments["until"]):
        time.sleep(0.005)
    answer(identity, {"content": [{"type": "text", "text": "held"}]})


def main():
    record(os.getpid())
    for line in sys.stdin:
        message = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            server = {"name": "witness", "version": "1"}
            answer(identity, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
        elif method == "tools/list":
            tools = [{"name": name, "description": "", "inputSchema": TOOL} for name in ("note", "hold", "remove", "image")]
            tools[2]["annotations"] = {"destructiveHint": True}
            answer(identity, {"tools": tools})
        elif method == "tools/call":
            name, arguments = message["params"]["name"], message["params"].get("arguments") or {}
            record(arguments.get("id"))
            if name == "hold":
                threading.Thread(target=hold, args=(identity, arguments), daemon=True).start()
            elif name == "image":
                image = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
                answer(identity, {"content": [image]})
            else:
                answer(identity, {"content": [{"type": "text", "text": "noted"}]})
        elif identity is not None:
            send({"jsonrpc": "2.0", "id": identity, "error": {"code": -32601, "message": "no such method"}})


main()
