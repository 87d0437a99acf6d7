"""A server made with the official Python MCP SDK, over stdio."""
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk")


@server.tool()
def shout(text: str, times: int = 1) -> str:
    """Says it louder."""
    return (text.upper() + "!") * times


server.run()
