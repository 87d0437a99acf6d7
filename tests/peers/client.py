"""The Python `mcp` SDK as a client of lispbox, at a URL or as a command: lists the tools, calls both of
them, and receives the progress of a long call."""
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


def connected(target, *arguments):
    if target.startswith("http://"):
        return streamable_http_client(target)
    return stdio_client(StdioServerParameters(command=target, args=list(arguments)))


async def main():
    async with connected(*sys.argv[1:]) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
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
            reports = []

            async def report(progress, total, message):
                reports.append((progress, message))

            endless = {"program": "(loop [] (recur))", "limits": {"fuel": 1e12, "compute": "2500ms"}}
            await session.call_tool("lisp_eval", endless, progress_callback=report)
            every_second = all(progress >= second for second, (progress, _) in enumerate(reports, 1))
            print("progress", len(reports) >= 2 and every_second, reports[0][1])


asyncio.run(main())
