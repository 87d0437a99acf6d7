"""The tools of the support desk. Their formats differ as those of real services do: three schemes of paging, results
as JSON texts, as CSV and as plain text, numbers in strings, and times in five formats."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, date
from functools import cache
from typing import Any

from desk.data import FIRST_RESPONSE, NOW, PRIORITIES, SOLUTION, STATUSES, Customer, Desk, Ticket, generate
from serving import Effect, Refused, State, Tool, gives, page_of, takes, text, whole

PAGE, COMMENTS_PAGE = 50, 5
READS = {"readOnlyHint": True}


@dataclass
class DeskState(State):
    desk: Desk = field(default_factory=generate)

    def ticket(self, key: str) -> Ticket:
        for ticket in self.desk.tickets:
            if ticket.key == key:
                return ticket
        raise Refused(f"ticket {key} not found")

    def customer(self, id: int) -> Customer:
        for customer in self.desk.customers:
            if customer.id == id:
                return customer
        raise Refused(f"customer {id} not found")

    def agent_name(self, id: int | None) -> str | None:
        return next((agent.name for agent in self.desk.agents if agent.id == id), None)

    def apply(self, effect: Effect) -> None:
        if effect["kind"] == "ticket":
            ticket = self.ticket(effect["key"])
            if effect["field"] == "tag":
                ticket.tags.append(effect["value"])
            else:
                setattr(ticket, effect["field"], effect["value"])
            ticket.updated = NOW
        elif effect["kind"] == "created":
            self.desk.tickets.append(
                Ticket(
                    effect["key"],
                    "open",
                    effect["priority"],
                    effect["customer"],
                    effect["assignee"],
                    effect["subject"],
                    effect["text"],
                    NOW,
                    NOW,
                    None,
                    None,
                    None,
                    [],
                )
            )


@cache
def generated() -> Desk:
    return generate()


def fresh() -> DeskState:
    """The desk before any effect."""
    return DeskState(desk=copy.deepcopy(generated()))


def listed(state: DeskState, ticket: Ticket) -> dict[str, Any]:
    name = state.agent_name(ticket.assignee)
    return {
        "key": ticket.key,
        "status": ticket.status,
        "priority": ticket.priority,
        "customerId": str(ticket.customer),
        "assignee": {"id": ticket.assignee, "name": name} if name else None,
        "subject": ticket.subject,
        "createdAt": ticket.created.isoformat() + "Z",
        "updatedAt": int(ticket.updated.replace(tzinfo=UTC).timestamp() * 1000),
        "tags": ", ".join(ticket.tags),
        "firstResponseMinutes": "n/a" if ticket.first_response is None else ticket.first_response,
        "satisfaction": None if ticket.satisfaction is None else str(ticket.satisfaction),
    }


def list_tickets(
    state: DeskState,
    status: str | None = None,
    priority: str | None = None,
    customer_id: str | None = None,
    tag: str | None = None,
    since: str | None = None,
    page: int = 1,
) -> Any:
    try:
        first = date.fromisoformat(since) if since else date.min
    except ValueError:
        raise Refused(f"since must be a day such as 2026-10-31, got {since}") from None
    found = [
        ticket
        for ticket in reversed(state.desk.tickets)
        if (not status or ticket.status == status)
        and (not priority or ticket.priority == priority)
        and (not customer_id or str(ticket.customer) == customer_id)
        and (not tag or tag in ticket.tags)
        and ticket.created.date() >= first
    ]
    shown = [listed(state, ticket) for ticket in page_of(found, page, PAGE)]
    return {"tickets": shown, "page": page, "totalPages": max(1, -(-len(found) // PAGE))}


def get_ticket(state: DeskState, key: str) -> Any:
    ticket = state.ticket(key)
    customer = state.customer(ticket.customer)
    form = "%d %b %Y %H:%M UTC"
    return {
        "key": ticket.key,
        "state": ticket.status.upper(),
        "priority": ticket.priority,
        "subject": ticket.subject,
        "customer": {"id": customer.id, "name": customer.name, "tier": customer.tier.upper()},
        "assignee_id": ticket.assignee,
        "body": ticket.body,
        "created": ticket.created.strftime(form),
        "solved": ticket.solved.strftime(form) if ticket.solved else None,
        "tags": ticket.tags,
        "comment_count": len(ticket.comments),
    }


def list_comments(state: DeskState, ticket_key: str, cursor: str | None = None) -> Any:
    comments = state.ticket(ticket_key).comments
    if cursor is not None and not cursor.removeprefix("c").isdecimal():
        raise Refused(f"cursor must be the next_cursor of an earlier result, got {cursor}")
    first = int(cursor.removeprefix("c")) if cursor else 0
    rest = first + COMMENTS_PAGE
    shown = [
        {
            "author": comment.author,
            "at": comment.at.strftime("%Y-%m-%d %H:%M"),
            "internal": int(comment.is_internal),
            "body": comment.body,
        }
        for comment in comments[first:rest]
    ]
    return {"items": shown, "next_cursor": f"c{rest}" if rest < len(comments) else None}


def search_tickets(state: DeskState, query: str, limit: int = 10, offset: int = 0) -> Any:
    words = query.lower().split()
    if not words:
        raise Refused("query must not be empty")
    found = []
    for ticket in reversed(state.desk.tickets):
        parts = {
            "subject": ticket.subject,
            "body": ticket.body,
            "comments": "\n".join(comment.body for comment in ticket.comments),
        }
        if all(any(word in part.lower() for part in parts.values()) for word in words):
            where = [name for name, part in parts.items() if any(word in part.lower() for word in words)]
            found.append({"key": ticket.key, "subject": ticket.subject, "matched_in": "/".join(where)})
    limit = max(1, min(limit, 25))
    return {"results": found[offset : offset + limit], "has_more": offset + limit < len(found)}


def list_customers(state: DeskState, limit: int = 20, offset: int = 0) -> Any:
    limit = max(1, min(limit, 40))
    shown = [
        [
            customer.id,
            customer.name,
            customer.tier.capitalize() if customer.id % 3 else customer.tier,
            customer.country,
            f"{customer.seats:,}" if customer.seats >= 1000 else customer.seats,
            customer.contract_end.strftime("%d/%m/%Y"),
            customer.labels,
        ]
        for customer in state.desk.customers[offset : offset + limit]
    ]
    columns = ["id", "name", "tier", "country", "seats", "contract_end", "labels"]
    return {"columns": columns, "rows": shown, "total": len(state.desk.customers)}


def list_agents(state: DeskState) -> str:
    rows = [
        f"{agent.id};{agent.name};{agent.team};{'yes' if agent.is_active else 'no'};{agent.zone}"
        for agent in state.desk.agents
    ]
    return "\n".join(["id;name;team;active;time zone", *rows])


def get_sla_policy(_: DeskState) -> str:
    def table(title: str, hours: dict[str, list[int]]) -> list[str]:
        rows = [f"{tier:<8}" + "".join(f"{hour:>6}" for hour in of) for tier, of in hours.items()]
        return [title, "tier    " + "".join(f"{priority:>6}" for priority in PRIORITIES), *rows, ""]

    return "\n".join(
        [
            "Service levels, valid from 1 January 2026. Hours around the clock, from the creation of a ticket.",
            "",
            *table("First response within", FIRST_RESPONSE),
            *table("Solution within", SOLUTION),
        ]
    )


def create_ticket(
    state: DeskState,
    customer_id: int,
    subject: str,
    priority: str = "P3",
    body: str = "",
    assignee_id: int | None = None,
) -> Any:
    state.customer(customer_id)
    check_agent(state, assignee_id)
    key = f"SUP-{1001 + len(state.desk.tickets)}"
    state.do(
        "created", key=key, customer=customer_id, priority=priority, assignee=assignee_id, subject=subject, text=body
    )
    return {"created": key}


def check_agent(state: DeskState, id: int | None) -> None:
    if id is not None and state.agent_name(id) is None:
        raise Refused(f"agent {id} not found")


def update_ticket(
    state: DeskState,
    key: str,
    status: str | None = None,
    priority: str | None = None,
    assignee_id: int | None = None,
    add_tags: list[str] | None = None,
) -> Any:
    ticket = state.ticket(key)
    check_agent(state, assignee_id)
    wanted = {"status": status, "priority": priority, "assignee": assignee_id}
    changes = [(name, value) for name, value in wanted.items() if value is not None and value != getattr(ticket, name)]
    changes += [("tag", tag) for tag in dict.fromkeys(add_tags or []) if tag not in ticket.tags]
    for name, value in changes:
        state.do("ticket", key=key, field=name, value=value)
    return f"{key}: " + (", ".join(f"{name} = {value}" for name, value in changes) or "nothing to change")


def send_notice(state: DeskState, customer_id: int, message: str) -> Any:
    customer = state.customer(customer_id)
    state.do("notice", customer=customer_id, text=message)
    return {"queued": True, "to": customer.name}


TICKET_ROW = {
    "type": "object",
    "properties": {
        "key": text(),
        "status": text(),
        "priority": text(),
        "customerId": text(),
        "assignee": {"type": ["object", "null"]},
        "subject": text(),
        "createdAt": text(),
        "updatedAt": {"type": "integer", "description": "Milliseconds since 1970"},
        "tags": text("Separated by commas"),
        "firstResponseMinutes": {"type": ["integer", "string"]},
        "satisfaction": {"type": ["string", "null"], "description": "1 to 5, from the customer"},
    },
}
STATUS = text("The status", enum=STATUSES)
PRIORITY = text("P1 is the most urgent", enum=PRIORITIES)

TOOLS = [
    Tool(
        "list_tickets",
        "List tickets, newest first, 50 per page. Filters are combined with AND.",
        takes(
            status=STATUS,
            priority=PRIORITY,
            customer_id=text("Id of the customer"),
            tag=text("One tag"),
            since=text("Created on this day (UTC) or later, YYYY-MM-DD"),
            page=whole("Page number, from 1", default=1),
        ),
        list_tickets,
        gives(tickets={"type": "array", "items": TICKET_ROW}, page={"type": "integer"}, totalPages={"type": "integer"}),
        READS,
    ),
    Tool(
        "get_ticket",
        "Get one ticket with its text, without its comments.",
        takes("key", key=text("For example SUP-1001")),
        get_ticket,
        None,
        READS,
    ),
    Tool(
        "list_comments",
        "List the comments of a ticket, oldest first, five at a time. Pass next_cursor as cursor to go on.",
        takes("ticket_key", ticket_key=text(), cursor=text("next_cursor of the previous result")),
        list_comments,
        gives(items={"type": "array"}, next_cursor={"type": ["string", "null"]}),
        READS,
    ),
    Tool(
        "search_tickets",
        "Full-text search in subjects, texts and comments of tickets. All words must occur. At most 25 results.",
        takes(
            "query",
            query=text("Words to look for"),
            limit=whole("How many results", default=10),
            offset=whole("How many results to skip", default=0),
        ),
        search_tickets,
        None,
        READS,
    ),
    Tool(
        "list_customers",
        "List the customers as a table.",
        takes(limit=whole("How many rows, at most 40", default=20), offset=whole("How many rows to skip", default=0)),
        list_customers,
        None,
        READS,
    ),
    Tool("list_agents", "List all support agents.", takes(), list_agents, None, READS),
    Tool(
        "get_sla_policy",
        "Get the service level agreement: hours to the first response and to the solution.",
        takes(),
        get_sla_policy,
        None,
        None,
    ),
    Tool(
        "create_ticket",
        "Create a ticket for a customer.",
        takes(
            "customer_id",
            "subject",
            customer_id=whole("Id of the customer"),
            subject=text(),
            priority=PRIORITY,
            body=text(),
            assignee_id=whole("Id of an agent"),
        ),
        create_ticket,
        gives(created=text("The key of the ticket")),
    ),
    Tool(
        "update_ticket",
        "Change a ticket: status, priority, assignee, or additional tags. Only what is given is changed.",
        takes(
            "key",
            key=text(),
            status=STATUS,
            priority=PRIORITY,
            assignee_id=whole("Id of an agent"),
            add_tags={"type": "array", "items": text()},
        ),
        update_ticket,
    ),
    Tool(
        "send_notice",
        "Send an e-mail notice to the contact of a customer. Cannot be undone.",
        takes("customer_id", "message", customer_id=whole("Id of the customer"), message=text("Plain text")),
        send_notice,
    ),
]
