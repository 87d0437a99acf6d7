"""A downstream server whose replies are given by its caller, in plain Python.

`say` replies with the text `reply` after the identity of the request, such as `"result": {"content": []}`; with `whole`
that text is the whole message, in which `ID` is the identity. `about` tells the working folder, the arguments and the
variables that begin with `T_`. Arguments: `--handshake JSON` replaces the result of the handshake, `--tools JSON` that
of the list, and `--list FILE` names a file with that result, which is read each time: its tools reply with their name and
arguments, other tools are unknown, and a result with an `error` is one. `--only VERSION` refuses a handshake in another
version of the protocol. `--ping answer|refuse|ignore`. `--http` serves over HTTP and prints the port: `say` then also takes the
`status` and the content type `kind`. `forget` makes it answer requests of its sessions with `status` and `body`.
"""
import json
import os
import sys

TEXT = {"type": "string"}
TOOLS = [
    {"name": "say", "inputSchema": {"type": "object", "properties": {
        "reply": TEXT, "whole": TEXT, "status": {"type": "integer"}, "kind": TEXT}}},
    {"name": "about", "inputSchema": {"type": "object"}},
    {"name": "forget", "inputSchema": {"type": "object", "properties": {"status": {"type": "integer"}, "body": TEXT}}},
    {"name": "count", "inputSchema": {"type": "object"}},
]
HANDSHAKE = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}}


def option(name, otherwise=None):
    given = sys.argv[1:]
    return given[given.index(name) + 1] if name in given else otherwise


calls = lists = 0


def listed():
    if option("--list"):
        with open(option("--list")) as file:
            return json.load(file)
    return option("--tools") or {"tools": TOOLS}


def answer(message):
    """Returns the text of the reply, or None."""
    global calls, lists
    identity, method = message.get("id"), message.get("method")
    if identity is None or method is None:
        return None

    def whole(part):
        return '{"jsonrpc": "2.0", "id": %s, %s}' % (json.dumps(identity), part)

    def result(value):
        return whole('"result": ' + (value if isinstance(value, str) else json.dumps(value)))

    if method == "initialize":
        version = message["params"]["protocolVersion"]
        if option("--only", version) != version:
            return whole('"error": {"code": -32602, "message": "Unsupported protocol version"}')
        return result(option("--handshake") or os.environ.get("ODD_HANDSHAKE") or HANDSHAKE)
    if method == "tools/list":
        lists += 1
        known = listed()
        return whole('"error": ' + json.dumps(known["error"])) if "error" in known else result(known)
    if method == "ping":
        kind = option("--ping", "answer")
        refusal = '"error": {"code": -32600, "message": "unsupported"}'
        return {"answer": result({}), "refuse": whole(refusal), "ignore": None}[kind]
    if method != "tools/call":
        return whole('"error": {"code": -32601, "message": "no such method"}')
    calls += 1
    name, given = message["params"]["name"], message["params"].get("arguments") or {}
    if name == "say":
        return given["whole"].replace("ID", json.dumps(identity)) if "whole" in given else whole(given["reply"])
    if name == "count":
        return result({"content": [], "structuredContent": {"calls": calls, "lists": lists, "pid": os.getpid()}})
    if option("--list"):
        if name in [tool["name"] for tool in listed().get("tools", [])]:
            return result({"content": [], "structuredContent": {"tool": name, "given": given}})
        return whole('"error": {"code": -32602, "message": "Unknown tool: %s"}' % name)
    variables = {key: value for key, value in os.environ.items() if key.startswith("T_")}
    about = {"cwd": os.getcwd(), "args": sys.argv[1:], "env": variables}
    return result({"content": [], "structuredContent": about})


def stdio():
    for line in sys.stdin:
        if line.strip():
            text = answer(json.loads(line))
            if text is not None:
                sys.stdout.write(text + "\n")
                sys.stdout.flush()


def http():
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    sessions, lost = [], {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def reply(self, status, body, kind="application/json", session=None):
            body = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if session:
                self.send_header("Mcp-Session-Id", session)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.reply(405, "")

        do_DELETE = do_GET

        def do_POST(self):
            message = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "https://example.com/login?token=abc")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            session = self.headers.get("mcp-session-id")
            if session in lost:
                return self.reply(*lost[session])
            text = answer(message)
            if message.get("method") == "initialize":
                sessions.append("s%d" % len(sessions))
                return self.reply(200, text, session=sessions[-1])
            if text is None:
                return self.reply(202, "")
            given = (message.get("params") or {}).get("arguments") or {}
            if (message.get("params") or {}).get("name") == "forget":
                body = given["body"]
                lost[session] = (given["status"], body, "application/json" if body.startswith("{") else "text/plain")
            self.reply(given.get("status", 200) if "body" not in given else 200, text, given.get("kind", "application/json"))

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


http() if "--http" in sys.argv else stdio()
