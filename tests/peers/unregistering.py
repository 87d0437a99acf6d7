"""A server behind a login whose authorization server registers no clients, and renews no token: it answers with the
error that is the first argument. Prints its port."""
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body, headers=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in [("Content-Type", "application/json"), ("Content-Length", str(len(text))), *headers]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def handle_request(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        base = f"http://127.0.0.1:{self.server.server_address[1]}"
        if self.path.startswith("/.well-known/oauth-protected-resource"):
            self.answer(200, {"resource": f"{base}/mcp", "authorization_servers": [base]})
        elif self.path.startswith("/.well-known/oauth-authorization-server"):
            self.answer(200, {"issuer": base, "authorization_endpoint": f"{base}/authorize",
                              "token_endpoint": f"{base}/token", "response_types_supported": ["code"],
                              "code_challenge_methods_supported": ["S256"]})
        elif self.path == "/token" and len(sys.argv) > 1:
            self.answer(400, {"error": sys.argv[1], "error_description": "the token ref-0123456789 was revoked"})
        elif self.path == "/mcp":
            metadata = f"{base}/.well-known/oauth-protected-resource"
            self.answer(401, {}, [("WWW-Authenticate", f'Bearer resource_metadata="{metadata}"')])
        else:
            self.answer(404, {})

    do_GET = do_POST = handle_request


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
