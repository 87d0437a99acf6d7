"""An HTTP server over TLS that counts its connections and the calls of `note`. Prints its port.

persistent.py CERTIFICATE KEY. At `/kept` a connection stays open, at `/closed` it is closed behind each reply without a
word, at `/idle` after 200 ms without a request, and at `/dropped` when its fourth request has been read. `count` returns the calls of `note` and the connections of its path.
"""
import collections
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "p", "version": "1"}}
TOOLS = [
    {"name": "note", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": False, "destructiveHint": False}},
    {"name": "count", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
]
connections, notes = collections.Counter(), collections.Counter()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    requests = 0

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        self.requests += 1
        if self.requests == 1:
            connections[self.path] += 1
        if self.path == "/dropped" and self.requests == 4:
            self.close_connection = True
            return
        self.handle_message()
        self.close_connection = self.path == "/closed"

    def handle_message(self):
        if self.path == "/idle":
            self.connection.settimeout(0.2)
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        message = json.loads(text or "{}")
        if self.command != "POST":
            return self.answer(405, b"", "text/plain")
        if "id" not in message:
            return self.answer(202, b"", "text/plain")
        results = {"initialize": HANDSHAKE, "tools/list": {"tools": TOOLS}}
        result = results.get(message["method"])
        if result is None:
            name = message["params"]["name"]
            notes[self.path] += name == "note"
            text = json.dumps({"notes": notes[self.path], "connections": connections[self.path]})
            result = {"content": [{"type": "text", "text": text}]}
        self.answer(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode(), "application/json")

    do_GET = do_POST = do_DELETE = handle_request


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
