"""The Python `mcp` SDK as a client of lispbox whose user answers questions about calls.

It takes the arguments and variables of `asking.js` without the folder of the peers, and prints the same without the
messages that were sent."""
import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

revision, *target = sys.argv[1:]
answers = json.loads(os.environ.get("ANSWERS", "null"))
asked = []


async def person(context, question):
    asked.append(question.message)
    return ElicitResult(**next(answer for text, answer in answers if text in question.message))


async def connect(stack):
    """Connects a client, and returns it with the revision in use."""
    form = person if answers else None
    over_http = target[0].startswith("http")
    server = target[0] if over_http else StdioServerParameters(
        command=target[0], args=target[1:], env=dict(os.environ))
    if revision == "2026-07-28":
        from mcp import Client
        client = await stack.enter_async_context(Client(server, mode=revision, elicitation_callback=form))
        return client, client.protocol_version
    connection = streamable_http_client(server) if over_http else stdio_client(server)
    streams = await stack.enter_async_context(connection)
    session = await stack.enter_async_context(ClientSession(streams[0], streams[1], elicitation_callback=form))
    greeting = (await session.initialize()).model_dump(by_alias=True)
    return session, greeting["protocolVersion"]


async def main():
    async with AsyncExitStack() as stack:
        client, negotiated = await connect(stack)
        results = []
        for call in json.loads(os.environ["CALLS"]):
            result = (await client.call_tool("lisp_eval", call)).model_dump(by_alias=True)
            results.append({"text": result["content"][0]["text"], "isError": bool(result.get("isError"))})
    print(json.dumps({"revision": negotiated, "asked": asked, "results": results}))


asyncio.run(main())
