"""The tools of the shop: 7 that read, and 7 that have an effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mishaps import data
from serving import Effect, Refused, State, Tool, page_of, takes, text

Row = dict[str, Any]

NUMBERED = {"order_id": "orders", "customer_id": "customers", "ticket_id": "tickets"}


@dataclass
class ShopState(State):
    shop: data.Shop = field(default_factory=data.fresh)
    # What the tool of the last effect replies.
    reply: Row = field(default_factory=dict)

    def row(self, name: str, id: str) -> Row:
        """The record that an argument names."""
        kind = NUMBERED[name]
        if id not in self.shop[kind]:
            raise Refused(f"404 no such {kind[:-1]}: {id}")
        return self.shop[kind][id]

    def apply(self, effect: Effect) -> None:
        given = {name: value for name, value in effect.items() if name != "kind"}
        rows = {name: self.row(name, given[name]) for name in NUMBERED if name in given}
        self.reply = getattr(self, effect["kind"])(given, **{name[:-3]: row for name, row in rows.items()})

    def send_mail(self, given: Row) -> Row:
        mails = self.shop["mails"]
        mails.append({"id": f"M-{len(mails) + 1}", **given})
        return {"id": mails[-1]["id"], "queued": True}

    def create_ticket(self, given: Row, customer: Row) -> Row:
        id = f"T-{501 + len(self.shop['tickets'])}"
        self.shop["tickets"][id] = {
            "id": id,
            "customer_id": customer["id"],
            "title": given["title"],
            "status": "open",
            "priority": given.get("priority", "normal"),
            "created": "2026-11-30",
        }
        return {"id": id, "status": "open"}

    def close_ticket(self, given: Row, ticket: Row) -> Row:
        ticket["status"] = "closed"
        return {"id": ticket["id"], "status": "closed"}

    def mark_shipped(self, given: Row, order: Row) -> Row:
        order["status"] = "shipped"
        order["tracking"].append(data.tracking(order["id"], len(order["tracking"]) + 1))
        return {"order_id": order["id"], "tracking": order["tracking"][-1]}

    def add_label(self, given: Row, order: Row) -> Row:
        order["labels"].append(given["label"])
        return {"order_id": order["id"], "labels": order["labels"]}

    def charge(self, given: Row, order: Row) -> Row:
        order["status"] = "paid"
        receipt = data.receipt(order["id"], len(order["payments"]) + 1)
        order["payments"].append({"receipt": receipt, "amount": given["amount"]})
        return {"order_id": order["id"], **order["payments"][-1]}

    def export_item(self, given: Row, order: Row) -> Row:
        size = data.size(order["id"])
        self.shop["exports"].append({"order_id": order["id"], "format": given["format"], "bytes": size})
        return {"file": f"{order['id']}.{given['format']}", "bytes": size}


def fresh() -> ShopState:
    return ShopState()


def brief(rows: Iterable[Row], *names: str) -> list[Row]:
    return [{name: row[name] for name in names} for row in rows]


def listed(name: str, rows: Iterable[Row], filters: Row, size: int = 25) -> Row:
    """A page of the rows that have what is asked for."""
    page = filters.pop("page", 1)
    found = [row for row in rows if all(row[key] == value for key, value in filters.items())]
    return {name: page_of(found, page, size), "page": page, "pages": max(1, -(-len(found) // size))}


def list_orders(state: ShopState, **filters: Any) -> Row:
    orders = brief(state.shop["orders"].values(), "id", "customer_id", "status", "placed", "carrier")
    return listed("orders", orders, filters)


def list_customers(state: ShopState, **filters: Any) -> Row:
    return listed("customers", brief(state.shop["customers"].values(), "id", "name", "city", "tier"), filters, 20)


def list_tickets(state: ShopState, **filters: Any) -> Row:
    return listed("tickets", state.shop["tickets"].values(), filters)


def list_mails(state: ShopState, **filters: Any) -> Row:
    return listed("mails", state.shop["mails"], filters)


def list_exports(state: ShopState, **filters: Any) -> Row:
    return listed("exports", state.shop["exports"], filters)


def get_order(state: ShopState, order_id: str) -> Row:
    return state.row("order_id", order_id)


def get_customer(state: ShopState, customer_id: str) -> Row:
    return state.row("customer_id", customer_id)


STATUS = text(enum=["unpaid", "paid", "shipped", "cancelled"])
PRIORITY = text(enum=["low", "normal", "high"])
TIER = text(enum=["standard", "silver", "gold"])
PAGE = {"type": "integer", "minimum": 1}


def reads(run: Any, description: str, *required: str, **properties: Any) -> Tool:
    """A tool that reads."""
    return Tool(run.__name__, description, takes(*required, **properties), run, annotations={"readOnlyHint": True})


def writes(name: str, description: str, *required: str, **properties: Any) -> Tool:
    """A tool whose effect has its name and arguments."""

    def run(state: ShopState, **given: Any) -> Row:
        state.do(name, **given)
        return state.reply

    return Tool(name, description, takes(*required, **properties), run, annotations={"readOnlyHint": False})


TOOLS = [
    reads(
        list_orders,
        "Orders by id, 25 a page: id, customer_id, status, placed, carrier.",
        status=STATUS,
        customer_id=text(),
        page=PAGE,
    ),
    reads(
        get_order,
        "An order with its total (EUR), lines, labels, payments and tracking numbers.",
        "order_id",
        order_id=text(),
    ),
    reads(list_customers, "Customers by id, 20 a page: id, name, city, tier.", city=text(), tier=TIER, page=PAGE),
    reads(get_customer, "A customer with the e-mail address.", "customer_id", customer_id=text()),
    reads(
        list_tickets,
        "Tickets by id, 25 a page: id, customer_id, title, status, priority, created.",
        customer_id=text(),
        status=text(enum=["open", "closed"]),
        priority=PRIORITY,
        page=PAGE,
    ),
    reads(list_mails, "Mails sent so far, 25 a page: id, to, subject, body.", to=text(), page=PAGE),
    reads(list_exports, "Exports made so far, 25 a page: order_id, format, bytes.", order_id=text(), page=PAGE),
    writes("send_mail", "Sends a mail.", "to", "subject", "body", to=text(), subject=text(), body=text()),
    writes(
        "create_ticket",
        "Opens a ticket for a customer.",
        "customer_id",
        "title",
        customer_id=text(),
        title=text(),
        priority=PRIORITY,
    ),
    writes("close_ticket", "Closes a ticket.", "ticket_id", ticket_id=text()),
    writes(
        "mark_shipped",
        "Hands a paid order to the carrier, which assigns a tracking number; its status becomes shipped.",
        "order_id",
        order_id=text(),
    ),
    writes("add_label", "Adds a label to an order.", "order_id", "label", order_id=text(), label=text()),
    writes(
        "charge",
        "Charges an order's customer; its status becomes paid.",
        "order_id",
        "amount",
        order_id=text(),
        amount={"type": "number"},
    ),
    writes(
        "export_item",
        "Renders an order as a document for the archive.",
        "order_id",
        "format",
        order_id=text(),
        format=text(enum=["pdf", "csv"]),
    ),
]
