"""An MCP server for the bench, in plain Python: ten tools of an office with data that is the same at every start, or
any number of tools of other services, which are there to be listed and searched.

Arguments: `office`, or the name of a service and how many tools it has.
"""
import json
import sys
import threading
import time
from datetime import datetime, timedelta

DOMAINS = ["northwind.example", "contoso.example", "fabrikam.example", "tailspin.example", "adatum.example"]
PEOPLE = ["Ann Lee", "Bo Frank", "Cara Diaz", "Dev Patel", "Eva Novak", "Finn Olsen", "Gita Rao", "Hugo Brandt"]
TOPICS = ["Quarterly planning", "Invoice for October", "Release schedule", "Customer interview", "Team offsite", "Budget review"]
TODAY = datetime(2026, 11, 20)


def address(person, at):
    return person.lower().replace(" ", ".") + "@" + DOMAINS[at % len(DOMAINS)]


MESSAGES = [
    {
        "id": "msg-%04d" % at,
        "from": {"name": PEOPLE[at * 7 % 8], "email": address(PEOPLE[at * 7 % 8], at * 3)},
        "subject": TOPICS[at % 6] + " #%d" % at,
        "date": (TODAY - timedelta(hours=7 * at)).isoformat() + "Z",
        "unread": at % 3 == 0,
        "labels": ["inbox"] + (["urgent"] if at % 11 == 0 else []),
        "size": 900 + at * 37 % 4000,
        "snippet": "Hello, following up on %s: please see the notes below and answer by Friday." % TOPICS[at % 6].lower(),
    }
    for at in range(200)
]
EVENTS = [
    {
        "id": "evt-%03d" % at,
        "title": TOPICS[at % 6],
        "start": (datetime(2026, 11, 1 + at * 5 % 30, 8 + at % 9)).isoformat() + "Z",
        "minutes": [30, 60, 45, 90][at % 4],
        "location": "Room %d" % (at % 5 + 1),
        "attendees": [address(PEOPLE[(at + step) % 8], 0) for step in range(at % 4 + 1)],
    }
    for at in range(90)
]
INVOICES = {
    "invoices/2026-%03d.txt" % at: "Invoice 2026-%03d\nCustomer: %s\nDate: 2026-%02d-15\n\n%s\nTotal: %d.50 EUR\nPaid: %s\n"
    % (at, DOMAINS[at % 5], at % 12 + 1, "\n".join("Item %d: consulting, %d hours" % (n, n + at) for n in range(8)), 120 + at * 13, "yes" if at % 4 else "no")
    for at in range(16)
}
ISSUES = [
    {
        "number": 1000 + at,
        "title": "%s fails when %s is %s" % (["Export", "Login", "Search", "Sync"][at % 4], ["the file", "the network", "the cache"][at % 3], ["large", "slow", "empty"][at // 3 % 3]),
        "state": "open" if at % 5 else "closed",
        "comments": at * 17 % 41,
        "assignee": PEOPLE[at % 8],
        "labels": ["bug"] if at % 2 else ["bug", "customer"],
        "created": (TODAY - timedelta(days=at * 3 % 100)).date().isoformat(),
        "body": "Steps: open the application, choose the %s view, wait. Expected: it works. Seen: an error %d." % (["list", "table"][at % 2], at),
    }
    for at in range(100)
]


def text(**more):
    return {"type": "string", **more}


def whole(default, description):
    return {"type": "integer", "minimum": 0, "default": default, "description": description}


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


OFFICE = {
    "search_messages": (
        "Searches the messages of the mailbox, newest first, and returns a page of them, at most 50, with sender, subject, date, labels and the beginning of the text.",
        schema(
            query=text(description="Words that the subject or the text must have; all messages if it is left out"),
            unread_only={"type": "boolean", "default": False, "description": "Only messages that have not been read"},
            limit=whole(50, "How many to return, at most 50"),
            offset=whole(0, "How many to pass over, for paging"),
        ),
    ),
    "get_message": ("Returns one message with its whole text.", schema(["id"], id=text(description="The id that a search returned"))),
    "send_message": (
        "Sends a message from the user's own address. This cannot be undone.",
        schema(["to", "subject", "body"], to={"type": "array", "items": text(format="email"), "description": "The addresses of those who get it"}, subject=text(), body=text(description="The text, as Markdown")),
    ),
    "list_events": (
        "Lists the events of the user's calendar between two days, both included, with title, start, length in minutes, location and attendees.",
        schema(["from", "to"], **{"from": text(format="date", description="The first day, such as 2026-11-01"), "to": text(format="date", description="The last day")}),
    ),
    "create_event": (
        "Adds an event to the user's calendar and invites the attendees.",
        schema(["title", "start"], title=text(), start=text(format="date-time"), minutes=whole(60, "How long it takes"), attendees={"type": "array", "items": text(format="email"), "default": []}),
    ),
    "list_files": ("Lists the paths of all files in a folder.", schema(["folder"], folder=text(description="The folder, such as invoices"))),
    "read_file": ("Returns the text of a file.", schema(["path"], path=text(description="The path that list_files returned"))),
    "list_issues": (
        "Lists the issues of the project, a page of at most 30 at a time, with title, state, comments, assignee, labels and text.",
        schema(state={"enum": ["open", "closed", "all"], "default": "open", "description": "Which issues to list"}, page=whole(1, "The page, from 1")),
    ),
    "find_contact": ("Finds a person in the address book by name, and returns name, email and phone.", schema(["name"], name=text(description="First and last name"))),
    "look_up_order": ("Looks up an order in the warehouse by its number; takes a tenth of a second.", schema(["number"], number={"type": "integer", "description": "The order's number"})),
}


def office(name, arguments):
    if name == "search_messages":
        found = [m for m in MESSAGES if arguments.get("query", "").lower() in (m["subject"] + m["snippet"]).lower()]
        found = [m for m in found if m["unread"] or not arguments.get("unread_only")]
        offset = arguments.get("offset", 0)
        return {"messages": found[offset : offset + min(arguments.get("limit", 50), 50)], "total": len(found)}
    if name == "get_message":
        return next(m for m in MESSAGES if m["id"] == arguments["id"])
    if name == "list_events":
        return [e for e in EVENTS if arguments["from"] <= e["start"][:10] <= arguments["to"]]
    if name == "list_files":
        return sorted(path for path in INVOICES if path.startswith(arguments["folder"] + "/"))
    if name == "read_file":
        return INVOICES[arguments["path"]]
    if name == "list_issues":
        state = arguments.get("state", "open")
        found = [issue for issue in ISSUES if state in ("all", issue["state"])]
        first = 30 * (arguments.get("page", 1) - 1)
        return found[first : first + 30]
    if name == "find_contact":
        at = PEOPLE.index(arguments["name"])
        return {"name": PEOPLE[at], "email": address(PEOPLE[at], 0), "phone": "+49 30 5550%d" % at}
    if name == "look_up_order":
        time.sleep(0.1)
        return {"number": arguments["number"], "items": arguments["number"] % 7}
    return {"done": True}


VERBS = ["get", "list", "search", "create", "update", "delete", "archive", "share", "export", "restore"]
NOUNS = ["ticket", "invoice", "customer", "document", "deployment", "channel", "campaign", "report", "branch", "order"]


def others(service, count):
    def one(at):
        verb, noun, kind = VERBS[at % 10], NOUNS[at // 10 % 10], at // 100
        name = "%s_%s%s" % (verb, noun, "" if kind == 0 else "_v%d" % kind)
        description = "%ss a %s of %s. Needs the right to %s; returns the %s as it is afterwards, with all its fields." % (verb.capitalize(), noun, service, verb, noun)
        return name, (
            description,
            schema(
                [noun + "_id"],
                **{
                    noun + "_id": text(description="The id of the " + noun),
                    "workspace": text(description="The workspace that it belongs to, if not the default one"),
                    "fields": {"type": "array", "items": text(), "description": "The fields to return; all if it is left out"},
                    "limit": whole(25, "How many to return at most"),
                    "notify": {"type": "boolean", "default": False, "description": "Tell those who watch it"},
                }
            ),
        )

    return dict(one(at) for at in range(count))


def main():
    tools = OFFICE if sys.argv[1] == "office" else others(sys.argv[1], int(sys.argv[2]))
    lock = threading.Lock()

    def send(identity, result):
        with lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": identity, "result": result}) + "\n")
            sys.stdout.flush()

    def call(identity, params):
        try:
            answer = office(params["name"], params.get("arguments") or {})
            shown = answer if isinstance(answer, str) else json.dumps(answer)
            send(identity, {"content": [{"type": "text", "text": shown}]})
        except Exception as problem:
            send(identity, {"content": [{"type": "text", "text": repr(problem)}], "isError": True})

    for line in sys.stdin:
        message = json.loads(line)
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            information = {"name": sys.argv[1], "version": "1"}
            send(identity, {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": information})
        elif method == "tools/list":
            listed = [{"name": name, "description": said, "inputSchema": takes} for name, (said, takes) in tools.items()]
            send(identity, {"tools": listed})
        elif method == "tools/call" and params["name"] == "look_up_order":
            threading.Thread(target=call, args=(identity, params)).start()
        elif method == "tools/call":
            call(identity, params)


main()
