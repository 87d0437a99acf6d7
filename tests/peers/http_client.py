"""The Python `mcp` SDK and FastMCP as clients of lispbox over HTTP."""
import asyncio
import sys

from fastmcp import Client
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client


async def main():
    async with streamable_http_client(sys.argv[1]) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            tools = await session.list_tools()
            print("mcp tools", *[tool.name for tool in tools.tools])
            await session.call_tool("lisp_eval", {"program": "(def prices 3)"})
            result = await session.call_tool("lisp_eval", {"program": "prices"})
            print("mcp eval", result.content[0].text.splitlines()[0])
            result = await session.call_tool("lisp_eval", {"program": "no-such-name"})
            print("mcp error", getattr(result, "isError", None) or getattr(result, "is_error", None))
    async with Client(sys.argv[1]) as client:
        print("fastmcp tools", *[tool.name for tool in await client.list_tools()])
        result = await client.call_tool("lisp_eval", {"program": "(reduce + [1 2 3])"})
        print("fastmcp eval", result.content[0].text.splitlines()[0])


asyncio.run(main())
