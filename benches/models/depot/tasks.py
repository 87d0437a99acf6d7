"""The tasks of the wholesaler. The expected answers are computed from the records, not through the tools."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import Decimal
from statistics import fmean

from depot.data import CARRIERS, RATES, TODAY, Depot, Shipment, generate
from judge import Task, anything, items, number, pairs
from ranking import best, top


def in_euro(amount: Decimal, currency: str, month: str) -> Decimal:
    return amount if currency == "EUR" else amount / Decimal(RATES[month][currency])


def is_late(shipment: Shipment) -> bool:
    return shipment.delivered is not None and shipment.delivered.date() > shipment.promised


def tasks() -> list[Task]:
    depot = generate()
    return [*single_calls(depot), *orders(depot), *stock(depot), *shipments(depot), *money(depot), *changes(depot)]


def single_calls(depot: Depot) -> list[Task]:
    order = next(order for order in depot.orders if order.number == 500140)
    drill = next(product for product in depot.products if product.name == "Cordless drill pro")
    return [
        Task("order-status", "What's the status of order 500140?", items([order.status])),
        Task(
            "dollar-rate",
            "How many dollars was one euro on average in October 2026?",
            number(Decimal(RATES["2026-10"]["USD"])),
        ),
        Task("drill-cost", "What does the cordless drill pro cost us, in EUR?", number(drill.cost, 0.001)),
    ]


def orders(depot: Depot) -> list[Task]:
    placed = depot.orders
    october = [order for order in placed if (order.local.year, order.local.month) == (2026, 10)]
    new = Counter(order.warehouse for order in placed if order.status == "new")
    weekdays = Counter(f"{order.local:%A}" for order in placed)
    night = [order for order in placed if order.local.hour >= 22 or order.local.hour < 6]
    products = {product.sku: product for product in depot.products}
    revenue: dict[str, Decimal] = defaultdict(Decimal)
    for order in placed:
        if order.local.date() >= date(2026, 11, 1) and order.status != "cancelled":
            for line in order.lines:
                revenue[products[line.sku].category] += in_euro(line.quantity * line.price, order.currency, "2026-11")
    units: Counter[str] = Counter()
    for order in october:
        if order.warehouse == "RTM":
            for line in order.lines:
                units[products[line.sku].supplier] += line.quantity
    heavy = next(order for order in placed if order.number == 500222)
    grams = sum(line.quantity * products[line.sku].grams for line in heavy.lines)
    return [
        Task(
            "orders-in-october",
            "How many orders were placed in October 2026, going by the local time of their warehouse?",
            number(len(october)),
        ),
        Task(
            "new-by-warehouse",
            "How many new orders are there per warehouse? Use the codes, like RTM: 3, SIN: 2.",
            pairs(dict(new)),
        ),
        Task(
            "busiest-weekday",
            "On which day of the week do we get the most orders (local time of the warehouse)?",
            items([best(weekdays)]),
        ),
        Task(
            "night-orders",
            "How many of all our orders were placed at night, that is at 22:00 or later or before 06:00, local "
            "time of the warehouse?",
            number(len(night)),
        ),
        Task(
            "best-category",
            "Which product category has brought in the most revenue from orders placed since 1 November 2026? "
            "Cancelled orders don't count; convert with the rates of November.",
            items([best(revenue)]),
        ),
        Task(
            "supplier-units",
            "Counting the units in all orders that Rotterdam received in October 2026: the products of which "
            "supplier sold best, and how many units was that? Like Delmar: 12.",
            pairs(dict(top(units, 1))),
        ),
        Task(
            "order-weight",
            "How heavy is everything in order 500222 together, in kg?",
            number(Decimal(grams) / 1000, 0.001),
        ),
    ]


def stock(depot: Depot) -> list[Task]:
    products = {product.sku: product for product in depot.products}
    sander = next(product for product in depot.products if product.name == "Belt sander plus")
    rotterdam = depot.stock["RTM"]
    low = [sku for sku, level in rotterdam.items() if level.free < level.reorder_point]
    kept = {sku: [levels[sku] for levels in depot.stock.values() if sku in levels] for sku in products}
    gone = [sku for sku, levels in kept.items() if levels and sum(level.free <= 0 for level in levels) >= 2]
    value = sum(level.on_hand * products[sku].cost for sku, level in depot.stock["LBA"].items())
    return [
        Task(
            "free-units",
            "How many belt sander plus can we still sell from stock, all four warehouses together? Reserved units "
            "are not for sale.",
            number(sum(level.free for level in kept[sander.sku])),
        ),
        Task(
            "low-in-rotterdam",
            "Which SKUs in Rotterdam have fewer free units (on hand minus reserved) than their reorder point?",
            items(sorted(low)),
        ),
        Task(
            "gone-in-two",
            "Which products have no free units left in at least two of the warehouses that stock them? SKUs.",
            items(sorted(gone)),
        ),
        Task(
            "stock-value",
            "What is the stock in Leeds worth at cost, in EUR (everything on hand)? Two decimals.",
            number(value, 0.01),
        ),
    ]


def shipments(depot: Depot) -> list[Task]:
    sent = depot.shipments
    late = Counter({carrier: 0 for carrier in CARRIERS})
    late.update(shipment.carrier for shipment in sent if is_late(shipment))
    shares = {
        carrier: -late[carrier] / sum(one.carrier == carrier and one.delivered is not None for one in sent)
        for carrier in CARRIERS
    }
    missing = [
        shipment.id
        for shipment in sent
        if shipment.carrier == "Ferrovia" and shipment.delivered is None and shipment.promised < TODAY
    ]
    hours = [
        (one.delivered - one.shipped).total_seconds() / 3600
        for one in sent
        if one.carrier == "Nordfracht" and one.delivered
    ]
    cancelled = {order.number for order in depot.orders if order.status == "cancelled"}
    return [
        Task(
            "late-by-carrier",
            "How many shipments did each carrier deliver after the promised day (in UTC)? All five, like "
            "BlueLine: 3, Ferrovia: 0.",
            pairs(dict(late)),
        ),
        Task(
            "most-reliable",
            "Which carrier has the smallest share of late deliveries among the shipments that it has delivered?",
            items([best(shares)]),
        ),
        Task(
            "missing-shipments",
            "Which shipments of Ferrovia should have been delivered before today but are still under way? Ids.",
            items(missing),
        ),
        Task(
            "transit-time",
            "How long does Nordfracht take from shipping to delivery on average? In hours, one decimal.",
            number(round(fmean(hours), 1), 0.06),
        ),
        Task(
            "shipped-cancelled",
            "Some orders were shipped although they had been cancelled. Which ones? Order numbers.",
            items([str(one.order) for one in sent if one.order in cancelled]),
        ),
    ]


def money(depot: Depot) -> list[Task]:
    bills = depot.invoices
    by_number = {order.number: order for order in depot.orders}
    unpaid = [bill for bill in bills if bill.paid is None]
    overdue = [bill for bill in unpaid if bill.due < TODAY]
    total = sum((in_euro(bill.amount, bill.currency, "2026-11") for bill in unpaid), Decimal(0))
    owed: dict[str, Decimal] = defaultdict(Decimal)
    for bill in overdue:
        owed[bill.customer] += in_euro(bill.amount, bill.currency, "2026-11")
    counts = Counter(bill.order for bill in bills)
    shipped = [order for order in depot.orders if order.status in ("shipped", "delivered")]
    delays = [(bill.paid - bill.issued).days for bill in bills if bill.paid and bill.currency == "GBP"]
    return [
        Task(
            "open-total",
            "What is the total of our open invoices in EUR, converted with the rates of November 2026? Two decimals.",
            number(round(total, 2), 0.1),
        ),
        Task("overdue-count", "How many open invoices are overdue today?", number(len(overdue))),
        Task(
            "largest-debtors",
            "Which three customers owe us the most in overdue invoices, converted to EUR with November's rates? "
            "Largest first.",
            items([name for name, _ in top(owed, 3)], is_ordered=True),
        ),
        Task(
            "wrong-amounts",
            "Which invoices have an amount that differs from the total of their order? Invoice numbers.",
            items([bill.number for bill in bills if bill.amount != by_number[bill.order].total]),
        ),
        Task(
            "billed-twice",
            "Which orders were invoiced more than once? Order numbers.",
            items([str(order) for order, count in counts.items() if count > 1]),
        ),
        Task(
            "forgotten",
            "Which shipped or delivered orders have no invoice yet? Order numbers.",
            items([str(order.number) for order in shipped if order.number not in counts]),
        ),
        Task(
            "payment-delay",
            "How many days after issue were the GBP invoices paid, on average? Paid ones only, one decimal.",
            number(round(fmean(delays), 1), 0.06),
        ),
    ]


def changes(depot: Depot) -> list[Task]:
    overdue = [bill for bill in depot.invoices if bill.paid is None and bill.due < TODAY - timedelta(days=45)]
    customers = {order.number: order.customer for order in depot.orders}
    under_way = [shipment for shipment in depot.shipments if shipment.delivered is None]
    busiest = best(Counter(customers[shipment.order] for shipment in under_way))
    held = [shipment for shipment in under_way if customers[shipment.order] == busiest]
    moved = [shipment for shipment in under_way if shipment.carrier == "QuickPost" and shipment.promised < TODAY]
    low = {sku: level for sku, level in depot.stock["CHI"].items() if level.free < level.reorder_point}

    def change(shipment: Shipment, field: str, value: object) -> dict[str, object]:
        return {"kind": "shipment", "key": shipment.id, "field": field, "value": value}

    return [
        Task(
            "remind",
            "Send a reminder for every open invoice that has been overdue for more than 45 days. The message has to "
            "name the number of the invoice.",
            anything,
            tuple({"kind": "reminder", "invoice": bill.number, "says": [bill.number]} for bill in overdue),
        ),
        Task(
            "restock",
            "Restock Chicago: for every product whose free units (on hand minus reserved) are below the reorder point, "
            "order as many as are needed to have twice the reorder point free.",
            anything,
            tuple(
                {"kind": "purchase", "sku": sku, "quantity": 2 * level.reorder_point - level.free, "warehouse": "CHI"}
                for sku, level in low.items()
            ),
        ),
        Task(
            "change-carrier",
            "QuickPost has given up. Hand all its shipments that are still under way and should have arrived before "
            "today over to BlueLine. How many were there?",
            number(len(moved)),
            tuple(change(shipment, "carrier", "BlueLine") for shipment in moved),
        ),
        Task(
            "hold",
            "The customer with the most shipments still under way has not paid us. Put those shipments on hold and "
            "name the customer.",
            items([busiest]),
            tuple(change(shipment, "is_held", True) for shipment in held),
        ),
    ]
