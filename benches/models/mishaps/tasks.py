"""The tasks of the shop with their faults. The expected answers and effects are computed from the records."""

from __future__ import annotations

import random
from typing import Any

from judge import Check, items, number
from mishaps import data
from mishaps.faults import Fault
from mishaps.judging import Mishap
from serving import Effect

Row = dict[str, Any]

BUSY = "503 the service is temporarily unavailable; nothing was done"
BROKEN = "500 internal error, please try again"
LATE = "504 gateway timeout: the request was passed on, its outcome is not known"

SHOP = data.fresh()
CUSTOMERS = SHOP["customers"]


def orders(**wanted: str) -> list[Row]:
    """Orders by status, city, tier, month, carrier and customer_id."""

    def fits(order: Row) -> bool:
        who = CUSTOMERS[order["customer_id"]]
        have = {**order, "city": who["city"], "tier": who["tier"], "month": order["placed"][5:7]}
        return all(have[name] == value for name, value in wanted.items())

    return [order for order in SHOP["orders"].values() if fits(order)]


def customers(**wanted: str) -> list[Row]:
    return [row for row in CUSTOMERS.values() if all(row[name] == value for name, value in wanted.items())]


def tickets(*priorities: str) -> list[Row]:
    """Open tickets of these priorities."""
    return [row for row in SHOP["tickets"].values() if row["status"] == "open" and row["priority"] in priorities]


def moment(name: str, count: int) -> int:
    """One of `count` calls, neither the first nor the last, by the name of a task."""
    return random.Random(name).randint(2, max(2, count - 1))


def middle(name: str, rows: list[Row]) -> str:
    """The id of one of the rows, by the name of a task."""
    return rows[moment(name, len(rows)) - 1]["id"]


def ids(rows: list[Row]) -> Check:
    return items([row["id"] for row in rows])


def amount(value: float) -> Check:
    return number(round(value, 2), 0.005)


def total(rows: list[Row]) -> Check:
    return amount(sum(row["total"] for row in rows))


def receipts(rows: list[Row]) -> Check:
    return items([data.receipt(row["id"], 1) for row in rows])


def trackings(rows: list[Row]) -> Check:
    return items([data.tracking(row["id"], 1) for row in rows])


def sizes(rows: list[Row]) -> Check:
    return number(sum(data.size(row["id"]) for row in rows))


def opened(count: int) -> Check:
    """The ids of the next tickets."""
    return items([f"T-{501 + len(SHOP['tickets']) + at}" for at in range(count)])


def mail(row: Row, subject: str) -> Effect:
    """A mail to a customer, or to that of an order or a ticket."""
    customer = CUSTOMERS[row["customer_id"]] if "customer_id" in row else row
    return {"kind": "send_mail", "to": customer["email"], "subject": subject}


def note(to: str, subject: str) -> Effect:
    return {"kind": "send_mail", "to": to, "subject": subject}


def mails(rows: list[Row], subject: str) -> list[Effect]:
    """A mail for each row; `subject` is a template with its fields."""
    return [mail(row, subject.format(**row)) for row in rows]


def created(rows: list[Row], title: str, **more: str) -> list[Effect]:
    """A ticket for each customer."""
    return [{"kind": "create_ticket", "customer_id": row["id"], "title": title, **more} for row in rows]


def charged(rows: list[Row]) -> list[Effect]:
    return [{"kind": "charge", "order_id": row["id"], "amount": row["total"]} for row in rows]


def labelled(rows: list[Row], label: str) -> list[Effect]:
    return [{"kind": "add_label", "order_id": row["id"], "label": label} for row in rows]


def shipped(rows: list[Row]) -> list[Effect]:
    return [{"kind": "mark_shipped", "order_id": row["id"]} for row in rows]


def exported(rows: list[Row], format: str) -> list[Effect]:
    return [{"kind": "export_item", "order_id": row["id"], "format": format} for row in rows]


def closed(rows: list[Row]) -> list[Effect]:
    return [{"kind": "close_ticket", "ticket_id": row["id"]} for row in rows]


def tasks() -> list[Mishap]:
    return [*refused_writes(), *refused_reads(), *lost(), *shapes(), *more_shapes(), *slow(), *limits()]


def mishap(
    kind: str,
    name: str,
    prompt: str,
    check: Check,
    effects: list[Effect],
    *faults: Fault,
    limit: str = "",
) -> Mishap:
    return Mishap(name, prompt, check, tuple(effects), kind, faults, ("--limit", limit) if limit else ())


def refused_writes() -> list[Mishap]:
    lyon = orders(status="unpaid", city="Lyon")
    oslo = orders(status="paid", city="Oslo")
    gold = customers(tier="gold")
    november = [order for order in orders(status="unpaid", month="11") if order["total"] > 500]
    vip = [order for order in orders(tier="gold") if order["status"] != "cancelled"]
    low = tickets("low")

    def once(tool: str, name: str, count: int) -> Fault:
        return Fault("error", tool, at=moment(name, count), text=BUSY)

    return [
        mishap(
            "error",
            "remind-lyon",
            "Please remind every customer from Lyon of their unpaid orders: one mail for each unpaid order, to the "
            "customer's address, with the subject \"Reminder: order ID\" (ID is the order's id, such as O-1001) and a "
            "short friendly body. Tell me the ids of the orders.",
            ids(lyon),
            mails(lyon, "Reminder: order {id}"),
            once("send_mail", "remind-lyon", len(lyon)),
        ),
        mishap(
            "error",
            "ship-oslo",
            "All paid orders of customers in Oslo can go out now. Mark each as shipped and then mail its customer the "
            'tracking number: subject "Order ID is on its way" (ID is the order\'s id), the tracking number in the '
            "body. Tell me all the tracking numbers.",
            trackings(oslo),
            shipped(oslo) + mails(oslo, "Order {id} is on its way"),
            once("send_mail", "ship-oslo", len(oslo)),
        ),
        mishap(
            "error",
            "gold-tickets",
            'Open a ticket with the title "Yearly address check" for every gold customer, with low priority. Tell me '
            "the ids of the new tickets.",
            opened(len(gold)),
            created(gold, "Yearly address check", priority="low"),
            once("create_ticket", "gold-tickets", len(gold)),
        ),
        mishap(
            "error",
            "charge-november",
            "Charge all unpaid orders that were placed in November and have a total of more than 500 EUR, each by its "
            "total. What is the sum that you charged?",
            total(november),
            charged(november),
            once("charge", "charge-november", len(november)),
        ),
        mishap(
            "error",
            "vip-labels",
            'Add the label "vip" to every order of a gold customer that is not cancelled. Then send one mail to '
            'ops@shop.example with the subject "VIP orders labelled" and their number in the body. How many orders '
            "got the label?",
            number(len(vip)),
            [*labelled(vip, "vip"), note("ops@shop.example", "VIP orders labelled")],
            once("add_label", "vip-labels", len(vip)),
            Fault("error", "send_mail", at=1, text=BUSY),
        ),
        mishap(
            "error",
            "close-low",
            'Close every open ticket of low priority, and after each, mail its customer with the subject "Ticket ID '
            "closed\" (ID is the ticket's id) and a line of thanks. Tell me the ids of the closed tickets.",
            ids(low),
            closed(low) + mails(low, "Ticket {id} closed"),
            once("close_ticket", "close-low", len(low)),
        ),
    ]


def refused_reads() -> list[Mishap]:
    strike = orders(status="unpaid", carrier="GLS", month="10")
    asked = {order["customer_id"] for order in strike}
    south = customers(city="Madrid") + customers(city="Turin")
    unpaid = {row["id"]: len(orders(customer_id=row["id"], status="unpaid")) for row in south}
    return [
        mishap(
            "error-read",
            "gls-strike",
            "GLS is on strike. For each unpaid order of October that is to go by GLS, look up the customer, send them "
            'a mail with the subject "Delay of order ID" (ID is the order\'s id), and add the label "gls-strike" to '
            "the order. Do one order after the other. Which orders were it?",
            ids(strike),
            mails(strike, "Delay of order {id}") + labelled(strike, "gls-strike"),
            Fault("error", "get_customer", at=moment("gls-strike", len(asked)), text=BROKEN),
        ),
        mishap(
            "error-read",
            "madrid-review",
            "For each customer in Madrid and in Turin, count the unpaid orders and open a ticket with the title "
            '"Review: N unpaid" (N is that count; also if it is 0). How many unpaid orders do these customers have '
            "altogether?",
            number(sum(unpaid.values())),
            [effect for row in south for effect in created([row], f"Review: {unpaid[row['id']]} unpaid")],
            Fault("error", "list_orders", at=moment("madrid-review", len(south)), text=BROKEN),
        ),
    ]


def lost() -> list[Mishap]:
    graz = orders(status="unpaid", city="Graz")
    silver = customers(tier="silver")
    return [
        mishap(
            "lost",
            "charge-graz",
            "Charge each unpaid order of our customers in Graz by its total, and tell me the receipt numbers.",
            receipts(graz),
            charged(graz),
            Fault("lost", "charge", at=moment("charge-graz", len(graz)), text=LATE),
        ),
        mishap(
            "lost",
            "silver-tickets",
            'Open a ticket with the title "Offer: upgrade to gold" for each silver customer. Tell me the ids of the '
            "new tickets.",
            opened(len(silver)),
            created(silver, "Offer: upgrade to gold"),
            Fault("lost", "create_ticket", at=moment("silver-tickets", len(silver)), text=LATE),
        ),
    ]


def shapes() -> list[Mishap]:
    """Results of which one has another shape than the others."""
    ghent = orders(status="unpaid", city="Ghent")
    porto = orders(status="paid", city="Porto")
    buyers = [CUSTOMERS[id] for id in sorted({order["customer_id"] for order in porto})]
    cancelled = orders(status="cancelled", month="11")
    refunds = [
        effect
        for order in cancelled
        for effect in created([CUSTOMERS[order["customer_id"]]], f"Refund check {order['id']}")
    ]
    checks = opened(len(cancelled))
    leeds = orders(status="paid", city="Leeds")
    return [
        mishap(
            "shape",
            "charge-ghent",
            "Charge each unpaid order of our customers in Ghent by its total, one after the other, reading each order "
            "just before you charge it. What is the sum?",
            total(ghent),
            charged(ghent),
            Fault("shape", "get_order", form="order_total_text", item=middle("charge-ghent", ghent)),
        ),
        mishap(
            "shape",
            "ship-porto",
            "Ship all paid orders of customers in Porto: for each, mark it as shipped, then mail the customer with the "
            'subject "Shipped: ID" (ID is the order\'s id). Tell me the ids of the orders.',
            ids(porto),
            shipped(porto) + mails(porto, "Shipped: {id}"),
            Fault("shape", "get_customer", form="customer_wrapped", item=middle("ship-porto", buyers)),
        ),
        mishap(
            "shape",
            "cancelled-tickets",
            'For each cancelled order of November, open a ticket "Refund check ID" (ID is the order\'s id) for its '
            "customer, and add the new ticket's id as a label to the order. Tell me the ids of the tickets, in any "
            "order.",
            checks,
            refunds
            + [effect for order, id in zip(cancelled, checks.example.split(", ")) for effect in labelled([order], id)],
            Fault("shape", "create_ticket", form="ticket_text", at=moment("cancelled-tickets", len(cancelled))),
        ),
        mishap(
            "shape",
            "ship-leeds",
            "Please mark the paid orders of customers in Leeds as shipped, and after each one mail its customer: the "
            'subject is "Tracking" followed by a space and the tracking number. Tell me the tracking numbers.',
            trackings(leeds),
            shipped(leeds) + [mail(order, f"Tracking {data.tracking(order['id'], 1)}") for order in leeds],
            Fault("shape", "mark_shipped", form="shipment_wrapped", at=moment("ship-leeds", len(leeds))),
        ),
    ]


def more_shapes() -> list[Mishap]:
    ups = orders(status="unpaid", carrier="UPS")
    small = [order for order in orders(status="unpaid", month="09") if order["total"] < 400]
    october = orders(status="paid", month="10")
    bulk = [order for order in october if sum(line["quantity"] for line in order["lines"]) >= 12]
    gold = customers(tier="gold")
    return [
        mishap(
            "shape",
            "ups-unpaid",
            'Go through the unpaid orders page by page, and add the label "ups-hold" to each that is to go by UPS. How '
            "many are they?",
            number(len(ups)),
            labelled(ups, "ups-hold"),
            Fault("shape", "list_orders", form="orders_keyed", at=2),
        ),
        mishap(
            "shape",
            "charge-small",
            "Charge the unpaid orders of September whose total is below 400 EUR, each by its total, and tell me the "
            "receipt numbers.",
            receipts(small),
            charged(small),
            Fault("shape", "charge", form="charge_list", at=moment("charge-small", len(small))),
        ),
        mishap(
            "shape",
            "bulk-labels",
            "For each paid order of October: read it, and if its lines have a quantity of 12 or more altogether, add "
            'the label "bulk". Work through them one by one. Which orders got the label?',
            ids(bulk),
            labelled(bulk, "bulk"),
            Fault("shape", "get_order", form="order_lines_object", item=october[len(october) * 2 // 3]["id"]),
        ),
        mishap(
            "shape",
            "gold-invite",
            'Invite each gold customer to the open day: a mail to each, subject "Open day for NAME" (NAME is the '
            "customer's full name). How many mails did you send?",
            number(len(gold)),
            mails(gold, "Open day for {name}"),
            Fault("shape", "get_customer", form="customer_emails", item=middle("gold-invite", gold)),
        ),
    ]


def slow() -> list[Mishap]:
    """Programs that take longer than a client waits that gives up after 6 s."""
    forty = orders(status="shipped")[:40]
    autumn = orders(month="09", status="paid") + orders(month="10", status="paid")
    september = orders(status="unpaid", month="09")
    gold = orders(status="unpaid", tier="gold")
    late = orders(month="11", status="shipped") + orders(month="10", status="shipped")
    insured = [order for order in late if order["total"] > 800]
    dhl = orders(status="paid", carrier="DHL", month="11")
    return [
        mishap(
            "slow",
            "export-forty",
            "Export the first 40 shipped orders (by id) as pdf. What is the total number of bytes?",
            sizes(forty),
            exported(forty, "pdf"),
        ),
        mishap(
            "slow",
            "export-autumn",
            "Export all paid orders of September and October as csv. When all are done, send one mail to "
            'archive@shop.example with the subject "Exports ready". How many orders did you export?',
            number(len(autumn)),
            [*exported(autumn, "csv"), note("archive@shop.example", "Exports ready")],
        ),
        mishap(
            "slow",
            "remind-september",
            'Send a reminder for each unpaid order of September to its customer, subject "Second reminder: ID" (ID is '
            "the order's id). Tell me the ids of the orders.",
            ids(september),
            mails(september, "Second reminder: {id}"),
            Fault("slow", "send_mail", at=moment("remind-september", len(september)), seconds=9),
        ),
        mishap(
            "slow",
            "charge-gold",
            "Charge every unpaid order of our gold customers by its total, and tell me the receipt numbers.",
            receipts(gold),
            charged(gold),
            Fault("slow", "charge", at=moment("charge-gold", len(gold)), seconds=9),
        ),
        mishap(
            "slow",
            "insured",
            'Find the shipped orders of October and November with a total above 800 EUR. Add the label "insured" to '
            "each. How many are they?",
            number(len(insured)),
            labelled(insured, "insured"),
            Fault("delay", "get_order", seconds=0.15),
            Fault("delay", "add_label", seconds=0.35),
        ),
        mishap(
            "slow",
            "ship-dhl",
            'Ship the paid DHL orders of November. After each, mail its customer with the subject "DHL has order ID" '
            "(ID is the order's id). Tell me the tracking numbers.",
            trackings(dhl),
            shipped(dhl) + mails(dhl, "DHL has order {id}"),
            Fault("delay", "mark_shipped", seconds=1.2),
        ),
    ]


def limits() -> list[Mishap]:
    """Programs that come to a limit of lispbox."""
    autumn = orders(status="unpaid", month="10") + orders(status="unpaid", month="11")
    ups = orders(status="paid", carrier="UPS")
    gls = orders(status="shipped", carrier="GLS")
    silver = orders(status="unpaid", tier="silver")
    others = [row for row in CUSTOMERS.values() if row["tier"] != "gold"]
    most = tickets("low", "normal")
    return [
        mishap(
            "limit",
            "label-autumn",
            'Add the label "autumn" to each unpaid order of October and November. How many are they?',
            number(len(autumn)),
            labelled(autumn, "autumn"),
            limit="calls=30",
        ),
        mishap(
            "limit",
            "ship-ups",
            "UPS comes today. Mark every paid UPS order as shipped, and after each, mail its customer with the subject "
            '"UPS has order ID" (ID is the order\'s id). Tell me how many orders went out.',
            number(len(ups)),
            shipped(ups) + mails(ups, "UPS has order {id}"),
            limit="calls=45",
        ),
        mishap(
            "limit",
            "export-gls",
            "Export every shipped GLS order as pdf and tell me the total number of bytes.",
            sizes(gls),
            exported(gls, "pdf"),
            limit="total=3s",
        ),
        mishap(
            "limit",
            "charge-silver",
            "Charge every unpaid order of our silver customers by its total. What is the sum?",
            total(silver),
            charged(silver),
            Fault("delay", "charge", seconds=0.3),
            limit="total=3s",
        ),
        mishap(
            "limit",
            "consent-tickets",
            'Open a ticket "Ask for consent" for each customer who is not gold. Tell me the ids of the new tickets.',
            opened(len(others)),
            created(others, "Ask for consent"),
            limit="calls=25",
        ),
        mishap(
            "limit",
            "close-most",
            "Close all open tickets that are not of high priority. How many did you close?",
            number(len(most)),
            closed(most),
            limit="calls=20",
        ),
    ]
