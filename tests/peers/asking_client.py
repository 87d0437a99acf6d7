"""The Python `mcp` SDK as a client of lispbox whose user accepts every elicitation."""
import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult


async def person(context, question):
    print("asked", question.message)
    return ElicitResult(action="accept", content={"allow": True})


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as streams:
        async with ClientSession(streams[0], streams[1], elicitation_callback=person) as session:
            await session.initialize()
            result = await session.call_tool("lisp_eval", {"program": os.environ["PROGRAM"]})
            print(result.content[0].text)
            print("error", bool(getattr(result, "isError", None) or getattr(result, "is_error", None)))


asyncio.run(main())
