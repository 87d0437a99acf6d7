"""The loop of a scripted downstream server over standard input and output, in plain Python."""
import json
import sys


def send(identity, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
    sys.stdout.flush()


def serve(name, tools, call):
    """Answers requests until the input ends. `call` returns the text of a result, or None for no answer at all."""
    for line in sys.stdin:
        message = json.loads(line)
        method, identity = message.get("method"), message.get("id")
        if method == "initialize":
            send(identity, {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": name, "version": "1"},
            })
        elif method == "tools/list":
            send(identity, {"tools": tools})
        elif method == "tools/call":
            text = call(message["params"]["name"], message["params"].get("arguments") or {})
            if text is not None:
                send(identity, {"content": [{"type": "text", "text": text}]})
        elif identity is not None:
            send(identity, {})
