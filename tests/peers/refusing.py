"""An HTTP server that refuses requests, at each path as the case of that name says. Prints its port.

refusing.py CASES [CERTIFICATE KEY]: a JSON object of cases with `status`, `body`, `kind` and `headers`; `on` names the
method that is refused, all if it is absent. `raw` is sent in place of a response, and the connection closed.
"""
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CASES = json.loads(sys.argv[1])
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "r", "version": "1"}}
TOOLS = [{"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind, headers=()):
        self.send_response(status)
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(body))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def handle_request(self):
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        message = json.loads(text or "{}")
        method, case = message.get("method"), CASES.get(self.path.strip("/"), {})
        if "raw" in case:
            self.wfile.write(case["raw"].encode())
            self.close_connection = True
        elif "status" in case and case.get("on") in (None, method):
            headers = list(case.get("headers", {}).items())
            self.answer(case["status"], case.get("body", "").encode(), case.get("kind", "application/json"), headers)
        elif self.command != "POST":
            self.answer(405, b"", "text/plain")
        elif "id" not in message:
            self.answer(202, b"", "text/plain")
        else:
            results = {"initialize": HANDSHAKE, "tools/list": {"tools": TOOLS}}
            result = results.get(method, {"content": [{"type": "text", "text": "answered"}]})
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            self.answer(200, json.dumps(reply).encode(), "application/json")

    do_GET = do_POST = do_DELETE = do_CONNECT = handle_request


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2], sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
