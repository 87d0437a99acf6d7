"""FastMCP as a client of lispbox, at a URL or as a command."""
import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


def target(first, *arguments):
    return first if first.startswith("http://") else StdioTransport(first, list(arguments))


async def main():
    async with Client(target(*sys.argv[1:])) as client:
        print("tools", *[tool.name for tool in await client.list_tools()])
        result = await client.call_tool("lisp_eval", {"program": "(reduce + [1 2 3])"})
        print("eval", result.content[0].text.splitlines()[0])


asyncio.run(main())
