"""A server made with FastMCP over HTTP that requires a login (OAuth), on the port given as its argument.

Opening the login URL completes the login.
"""
import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions

port = int(sys.argv[1])
auth = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(enabled=True),
)
server = FastMCP("guarded", auth=auth)


@server.tool
def secret() -> str:
    """Tells a secret."""
    return "it is out"


@server.tool
def token() -> str:
    """Shows the token that it was given."""
    return "it is " + get_access_token().token


server.run(transport="http", host="127.0.0.1", port=port)
