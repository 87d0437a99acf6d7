"""The tools of the wholesaler. Their formats differ as those of real services do: cursors, offsets, pages until a short
one and page tokens; amounts as texts, objects keyed by data, weights with units, and times in six formats."""

from __future__ import annotations

import base64
import binascii
import copy
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta, timezone
from functools import cache
from typing import Any

from depot.data import CARRIERS, CATEGORIES, NOW, RATES, WAREHOUSES, Depot, Order, Product, Shipment, generate
from serving import Effect, Refused, State, Tool, gives, page_of, takes, text, whole

ORDERS_PAGE, PRODUCTS_PAGE = 40, 30
READS = {"readOnlyHint": True}
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


@dataclass
class DepotState(State):
    depot: Depot = field(default_factory=generate)

    def shipment(self, id: str) -> Shipment:
        for shipment in self.depot.shipments:
            if shipment.id == id:
                return shipment
        raise Refused(f"shipment {id} not found")

    def order(self, number: int) -> Order:
        for order in self.depot.orders:
            if order.number == number:
                return order
        raise Refused(f"order {number} not found")

    def apply(self, effect: Effect) -> None:
        if effect["kind"] == "shipment":
            setattr(self.shipment(effect["key"]), effect["field"], effect["value"])


@cache
def generated() -> Depot:
    return generate()


def fresh() -> DepotState:
    """The wholesaler before any effect."""
    return DepotState(depot=copy.deepcopy(generated()))


def day(value: str | None, name: str, otherwise: date) -> date:
    """The day of an argument in ISO format."""
    try:
        return date.fromisoformat(value) if value else otherwise
    except ValueError:
        raise Refused(f"{name} must be a day such as 2026-10-31, got {value}") from None


def position(token: str | None, name: str) -> int:
    """The position that an opaque token stands for."""
    if not token:
        return 0
    try:
        return int(base64.urlsafe_b64decode(token).decode().removeprefix("at:"))
    except (ValueError, binascii.Error):
        raise Refused(f"{name} is not one that a result had: {token}") from None


def token(at: int) -> str:
    return base64.urlsafe_b64encode(f"at:{at}".encode()).decode()


def list_orders(
    state: DepotState,
    status: str | None = None,
    warehouse: str | None = None,
    date_from: str | None = None,
    date_to: str | None = None,
    cursor: str | None = None,
) -> Any:
    first, last = day(date_from, "date_from", date.min), day(date_to, "date_to", date.max)
    found = [
        order
        for order in state.depot.orders
        if (not status or order.status == status)
        and (not warehouse or order.warehouse == warehouse)
        and first <= order.local.date() <= last
    ]
    at = position(cursor, "cursor")
    shown = [
        {
            "orderNo": order.number,
            "customer": order.customer,
            "warehouse": order.warehouse,
            "placedAt": order.local.replace(tzinfo=timezone(timedelta(hours=order.offset))).isoformat(),
            "status": order.status.upper(),
            "currency": order.currency,
            "lineCount": len(order.lines),
        }
        for order in found[at : at + ORDERS_PAGE]
    ]
    more = at + ORDERS_PAGE
    return {"orders": shown, "nextCursor": token(more) if more < len(found) else None}


def get_order(state: DepotState, order_no: int) -> Any:
    order = state.order(order_no)
    lines = [{"sku": line.sku, "qty": str(line.quantity), "unit_price": f"{line.price:.2f}"} for line in order.lines]
    return {
        "order": {
            "number": order.number,
            "customer": order.customer,
            "status": order.status,
            "currency": order.currency,
            "lines": lines,
        }
    }


def list_shipments(
    state: DepotState, carrier: str | None = None, warehouse: str | None = None, limit: int = 20, offset: int = 0
) -> Any:
    warehouses = {order.number: order.warehouse for order in state.depot.orders}
    found = [
        shipment
        for shipment in state.depot.shipments
        if (not carrier or shipment.carrier == carrier) and (not warehouse or warehouses[shipment.order] == warehouse)
    ]
    limit = max(1, min(limit, 50))
    shown = [
        {
            "id": shipment.id,
            "order": str(shipment.order),
            "carrier": shipment.carrier,
            "shipped": int(shipment.shipped.replace(tzinfo=UTC).timestamp()),
            "promised": f"{MONTHS[shipment.promised.month - 1][:3]} {shipment.promised.day}, {shipment.promised.year}",
            "delivered": shipment.delivered.strftime("%Y-%m-%d %H:%M") if shipment.delivered else "",
            "on_hold": "Y" if shipment.is_held else "N",
        }
        for shipment in found[offset : offset + limit]
    ]
    return {"data": shown, "meta": {"offset": offset, "limit": limit, "total": len(found)}}


def weight(product: Product) -> str:
    return f"{product.grams} g" if product.grams < 1000 else f"{product.grams / 1000:g} kg"


def find_products(state: DepotState, query: str = "", category: str | None = None, page: int = 1) -> Any:
    found = [
        product
        for product in state.depot.products
        if query.lower() in product.name.lower() and (not category or product.category == category)
    ]
    return [
        {
            "sku": product.sku,
            "name": product.name,
            "category": product.category,
            "weight": weight(product),
            "cost_eur": float(product.cost) if at % 2 else f"{product.cost:.2f}",
            "supplier": {"name": product.supplier, "leadDays": product.lead_days},
        }
        for at, product in enumerate(page_of(found, page, PRODUCTS_PAGE))
    ]


def stock_levels(state: DepotState, warehouse: str) -> Any:
    levels = {
        sku: {"on_hand": level.on_hand, "reserved": level.reserved, "reorder_point": level.reorder_point}
        for sku, level in state.depot.stock[warehouse].items()
    }
    return {"warehouse": warehouse, "as_of": NOW.strftime("%d.%m.%Y"), "levels": levels}


def list_invoices(
    state: DepotState, status: str | None = None, page_size: int = 25, page_token: str | None = None
) -> Any:
    found = [
        invoice for invoice in state.depot.invoices if not status or (status == "paid") == (invoice.paid is not None)
    ]
    at, size = position(page_token, "page_token"), max(1, min(page_size, 50))
    shown = [
        {
            "number": invoice.number,
            "order_no": str(invoice.order),
            "customer": invoice.customer,
            "amount": f"{invoice.amount:,.2f}",
            "currency": invoice.currency,
            "issued": invoice.issued.strftime("%d.%m.%Y"),
            "terms": f"net {invoice.days}",
            "paid_on": invoice.paid.isoformat() if invoice.paid else None,
        }
        for invoice in found[at : at + size]
    ]
    return {"invoices": shown, "nextPageToken": token(at + size) if at + size < len(found) else ""}


def exchange_rates(_: DepotState, month: str) -> str:
    if month not in RATES:
        raise Refused(f"no rates for {month}; there are rates for {', '.join(RATES)}")
    year, number = month.split("-")
    rows = [f"{currency}  {rate}" for currency, rate in RATES[month].items()]
    return "\n".join([f"Average rates of {MONTHS[int(number) - 1]} {year}, units for 1 EUR", *rows])


def create_purchase_order(state: DepotState, sku: str, quantity: int, warehouse: str) -> Any:
    if all(product.sku != sku for product in state.depot.products):
        raise Refused(f"product {sku} not found")
    if quantity < 1:
        raise Refused(f"quantity must be at least 1, got {quantity}")
    state.do("purchase", sku=sku, quantity=quantity, warehouse=warehouse)
    return {"po": f"PO-{7000 + len(state.effects)}", "sku": sku, "qty": quantity}


def update_shipment(state: DepotState, id: str, carrier: str | None = None, hold: bool | None = None) -> str:
    shipment = state.shipment(id)
    if shipment.delivered:
        raise Refused(f"shipment {id} has been delivered")
    wanted = {"carrier": carrier, "is_held": hold}
    changes = {name: value for name, value in wanted.items() if value is not None and value != getattr(shipment, name)}
    for name, value in changes.items():
        state.do("shipment", key=id, field=name, value=value)
    return f"OK {id}" if changes else f"UNCHANGED {id}"


def send_reminder(state: DepotState, invoice: str, message: str) -> Any:
    if all(one.number != invoice for one in state.depot.invoices):
        raise Refused(f"invoice {invoice} not found")
    state.do("reminder", invoice=invoice, text=message)
    return {"sent": True}


ORDER_ROW = {
    "type": "object",
    "properties": {
        "orderNo": {"type": "integer"},
        "customer": text(),
        "warehouse": text(),
        "placedAt": text("Local time of the warehouse", format="date-time"),
        "status": text(),
        "currency": text(),
        "lineCount": {"type": "integer"},
    },
}
WAREHOUSE = text("RTM Rotterdam, CHI Chicago, SIN Singapore, LBA Leeds", enum=list(WAREHOUSES))
CARRIER = text("The carrier", enum=CARRIERS)

TOOLS = [
    Tool(
        "list_orders",
        "List orders, oldest first, 40 at a time. Pass nextCursor as cursor to get the next ones.",
        takes(
            status=text("Only orders in this status", enum=["new", "packed", "shipped", "delivered", "cancelled"]),
            warehouse=WAREHOUSE,
            date_from=text("First day, YYYY-MM-DD, in local time of the warehouse"),
            date_to=text("Last day, included"),
            cursor=text("nextCursor of the previous result"),
        ),
        list_orders,
        gives(orders={"type": "array", "items": ORDER_ROW}, nextCursor={"type": ["string", "null"]}),
        READS,
    ),
    Tool(
        "get_order",
        "Get an order with its lines. Prices are in the currency of the order.",
        takes("order_no", order_no=whole("The number of the order")),
        get_order,
        None,
        READS,
    ),
    Tool(
        "list_shipments",
        "List shipments. Times are in UTC; shipped is in seconds since 1970.",
        takes(
            carrier=CARRIER,
            warehouse=WAREHOUSE,
            limit=whole("At most 50", default=20),
            offset=whole("How many to skip", default=0),
        ),
        list_shipments,
        None,
        READS,
    ),
    Tool(
        "find_products",
        "Find products by a part of their name and by category, 30 per page. Without arguments all products.",
        takes(
            query=text("Part of the name"),
            category=text("The category", enum=list(CATEGORIES)),
            page=whole("From 1; a page with fewer than 30 products is the last", default=1),
        ),
        find_products,
        None,
        READS,
    ),
    Tool(
        "stock_levels",
        "Stock of one warehouse by SKU. Reserved units are part of on_hand.",
        takes("warehouse", warehouse=WAREHOUSE),
        stock_levels,
        gives(warehouse=text(), as_of=text(), levels={"type": "object"}),
        READS,
    ),
    Tool(
        "list_invoices",
        "List invoices, oldest order first. An invoice is open until it is paid.",
        takes(
            status=text("Only these", enum=["open", "paid"]),
            page_size=whole("At most 50", default=25),
            page_token=text("nextPageToken of the previous result"),
        ),
        list_invoices,
        None,
        READS,
    ),
    Tool(
        "exchange_rates",
        "Average exchange rates of a month against the euro.",
        takes("month", month=text("YYYY-MM")),
        exchange_rates,
        None,
        READS,
    ),
    Tool(
        "create_purchase_order",
        "Order units of a product from its supplier for a warehouse.",
        takes(
            "sku",
            "quantity",
            "warehouse",
            sku=text("For example KX-0123"),
            quantity=whole("Units"),
            warehouse=WAREHOUSE,
        ),
        create_purchase_order,
    ),
    Tool(
        "update_shipment",
        "Change the carrier of a shipment, or hold or release it. Not for delivered ones.",
        takes("id", id=text("For example SHP-3001"), carrier=CARRIER, hold={"type": "boolean"}),
        update_shipment,
    ),
    Tool(
        "send_reminder",
        "E-mail a payment reminder for an invoice to its customer. Cannot be undone.",
        takes("invoice", "message", invoice=text("Number of the invoice"), message=text("Plain text")),
        send_reminder,
    ),
]
