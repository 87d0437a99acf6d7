"""A downstream server with tickets in pages, in plain Python: by the number of the page, by offset and by cursor, each
with faults.

The tools are described in JSON text, as most servers do. `apps` is offered to the pages of an app alone, and `quoted`
replies with a JSON string. The descriptions and names hold control characters.
"""
import json

from stdio import serve

ALL = [{"key": f"T-{number}", "status": "open"} for number in range(230)]
calls = []


def page(arguments):
    """Pages of at most 50, whatever is asked for; the last one is short."""
    number, size = arguments.get("page", 1), min(arguments.get("perPage", 20), 50)
    return {"tickets": ALL[(number - 1) * size : number * size], "page": number, "perPage": size}


def lying(arguments):
    """Offsets, with a total that is too large."""
    offset = arguments.get("offset", 0)
    return {"data": {"items": ALL[offset : offset + 50], "meta": {"total": 500}}}


def cursor(arguments):
    start = int(arguments.get("pageToken", "t0")[1:])
    reply = {"items": ALL[start : start + 100]}
    return reply | ({"nextPageToken": f"t{start + 100}"} if start + 100 < len(ALL) else {})


def circle(arguments):
    """Cursors that lead from A to B and back, with other items each time."""
    calls.append(arguments)
    start = 10 * len(calls)
    return {"items": ALL[start : start + 10], "next_cursor": "B" if arguments.get("cursor") == "A" else "A"}


def changing(arguments):
    """Offsets; a ticket is put in front after the first page, so that one comes twice."""
    offset = arguments.get("offset", 0)
    tickets = ALL if offset == 0 else [{"key": "T-new"}] + ALL
    return {"items": tickets[offset : offset + 100], "has_more": offset + 100 < len(tickets)}


NUMBER, TEXT = {"type": "integer"}, {"type": "string"}
TOOLS = {
    "page": (page, {"page": {"type": "integer", "minimum": 1}, "perPage": NUMBER}),
    "lying": (lying, {"offset": NUMBER}),
    "cursor": (cursor, {"pageToken": TEXT}),
    "circle": (circle, {"cursor": TEXT}),
    "changing": (changing, {"offset": NUMBER}),
    "quoted": (lambda _: "he said \"hi\"\n", {}),
    "number": (lambda _: 42, {}),
    "insert_rows": (lambda arguments: calls.append(arguments) or {"rows": len(calls)}, {"start": NUMBER, "count": NUMBER}),
    "read_text": (lambda _: "the text of a page", {"page": {"type": "integer", "description": "Page number"}, "limit": NUMBER}),
    "apps": (lambda _: "secret", {}),
    "both": (lambda _: "for both", {}),
}
META = {"apps": {"ui": {"resourceUri": "ui://a", "visibility": ["app"]}}, "both": {"ui": {"visibility": ["model", "app"]}}}


def described(name):
    tool = {
        "name": name,
        "description": f"The tool\x07 {name}\nof tickets",
        "inputSchema": {"type": "object", "properties": TOOLS[name][1]},
        "annotations": {} if name == "insert_rows" else {"readOnlyHint": True},
    }
    return tool | ({"_meta": META[name]} if name in META else {})


serve("paged", [described(name) for name in TOOLS], lambda name, arguments: json.dumps(TOOLS[name][0](arguments)))
