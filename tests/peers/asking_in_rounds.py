"""The Python `mcp` SDK as a client of revision 2026-07-28, whose user accepts every question in the reply to a call."""
import asyncio
import os
import sys

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def person(context, question):
    print("asked", question.message.splitlines()[0])
    return ElicitResult(action="accept", content={"allow": True})


async def main():
    server = sys.argv[1]
    if not server.startswith("http"):
        server = StdioServerParameters(command=server, args=sys.argv[2:], env=dict(os.environ))
    async with Client(server, mode="2026-07-28", elicitation_callback=person) as client:
        result = await client.call_tool("lisp_eval", {"program": os.environ["PROGRAM"]})
        print(client.protocol_version, result.content[0].text.splitlines()[0])


asyncio.run(main())
