"""The Python `mcp` SDK as a client of lispbox over stdio: lists the tools and calls both of them."""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["serve"])
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            tools = await session.list_tools()
            print("tools", *[tool.name for tool in tools.tools])
            await session.call_tool("lisp_eval", {"program": "(def prices 3)"})
            result = await session.call_tool("lisp_eval", {"program": "prices"})
            print("eval", result.content[0].text.splitlines()[0])
            result = await session.call_tool("lisp_env", {})
            print("env", "prices" in result.content[0].text)
            result = await session.call_tool("lisp_eval", {"program": "no-such-name"})
            print("error", getattr(result, "isError", None) or getattr(result, "is_error", None))


asyncio.run(main())
