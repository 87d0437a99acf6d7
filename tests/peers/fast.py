"""A server made with FastMCP: results that Python's SDKs wrap, over stdio, or over HTTP with the arguments
`PORT [TRANSPORT]`."""
import sys

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
def people() -> list[dict]:
    """Lists people."""
    return [{"name": "Ada", "born": 1815}, {"name": "Grace", "born": 1906}]


if len(sys.argv) > 1:
    server.run(transport=(sys.argv[2:] or ["http"])[0], host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
