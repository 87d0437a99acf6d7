"""A streamable HTTP server, in plain Python, some of whose calls break their own connection.

It prints the port on which it listens. `hold` answers half a second after another call has broken: `reset` closes its
connection without a reply, `cut` in the middle of one, and `page` answers with a page of HTML.
"""
import json
import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAMES = ["hold", "reset", "cut", "page"]
broken = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.reply(405, b"")

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method = message.get("method")
        if "id" not in message:
            return self.reply(202, b"")
        if method == "initialize":
            version = message["params"]["protocolVersion"]
            about = {"name": "breaking", "version": "1"}
            return self.result(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
        if method == "tools/list":
            return self.result(message, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]})
        name = message.get("params", {}).get("name")
        if name == "hold":
            broken.wait()
            return self.result(message, {"content": [{"type": "text", "text": "held"}]})
        if name not in NAMES:
            return self.reply(400, b"")
        threading.Timer(0.5, broken.set).start()
        if name == "page":
            return self.reply(200, b"<html>busy</html>", "text/html")
        if name == "cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{\"jsonrpc\"")
            self.wfile.flush()
        # Without lingering, closing resets the connection.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def result(self, message, result):
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.reply(200, body, "application/json")

    def reply(self, status, body, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
