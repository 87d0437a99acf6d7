"""A server over the HTTP transport of 2024-11-05, in plain Python, that misbehaves depending on the path.

It prints the port on which it listens. `/sse` works if the header `X-Key: open` is sent; `/elsewhere` announces an
endpoint at another origin, `/closed` ends its stream at once, `/page` is not an event stream, and `/silent` announces
no endpoint.
"""
import json
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOLS = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "large": {"type": "object", "properties": {"megabytes": {"type": "integer"}}, "required": ["megabytes"]},
    "die": {"type": "object"},
    "refuse": {"type": "object"},
}
streams = {}


def answer(message):
    method, identity = message.get("method"), message.get("id")
    if method == "initialize":
        return {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "events", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": name, "description": name, "inputSchema": TOOLS[name]} for name in TOOLS]}
    arguments = message["params"].get("arguments") or {}
    text = arguments.get("text") or "x" * (arguments.get("megabytes", 0) << 20)
    return {"content": [{"type": "text", "text": text}]}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        kind = self.path.strip("/")
        if kind == "sse" and self.headers.get("X-Key") != "open":
            self.send_response(401)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if kind == "page" else "text/event-stream; charset=utf-8")
        self.end_headers()
        if kind in ("page", "closed"):
            return
        stream = queue.Queue()
        streams[str(id(stream))] = stream
        origin = "http://localhost:1" if kind == "elsewhere" else ""
        if kind != "silent":
            self.wfile.write(b": a comment\r\n\r\nevent: endpoint\r\ndata: %s/post/%d\r\n\r\n" % (origin.encode(), id(stream)))
        while True:
            self.wfile.flush()
            message = stream.get()
            if message is None:
                return
            # Sends the data in several lines, after an unrelated event.
            text = json.dumps(message).replace('{"jsonrpc"', '{\ndata: "jsonrpc"', 1)
            self.wfile.write(("event: note\ndata: {}\n\nevent: message\ndata: " + text + "\n\n").encode())

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        stream = streams.get(self.path.split("/")[-1])
        name = (message.get("params") or {}).get("name")
        status = ((message.get("params") or {}).get("arguments") or {}).get("status", 503)
        refused = stream is None or self.headers.get("X-Key") != "open"
        self.send_response(404 if refused else status if name == "refuse" else 202)
        self.end_headers()
        if refused or name == "refuse":
            return
        if name == "die":
            stream.put(None)
        elif "id" in message:
            stream.put({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)})

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown()), daemon=True).start()
server.serve_forever()
