"""A server that takes a tenth of a second for each message, and reads none meanwhile: `size` returns that of a text."""
import time

from stdio import serve

PROPERTIES = {"n": {"type": "integer"}, "text": {"type": "string"}}


def call(_, arguments):
    time.sleep(0.1)
    return str(len(arguments["text"]))


serve("unhurried", [{"name": "size", "inputSchema": {"type": "object", "properties": PROPERTIES}}], call)
