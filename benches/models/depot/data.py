"""The records of the wholesaler, as plain values. `tools.py` presents them in the formats of its tools."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal

from draw import Draw

TODAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 12, 0)

# Of each warehouse: the time zone, the currency, and the offset from UTC in hours until the end of daylight saving time
# in 2026, and after it.
WAREHOUSES = {
    "RTM": ("Europe/Amsterdam", "EUR", datetime(2026, 10, 25, 1), 2, 1),
    "CHI": ("America/Chicago", "USD", datetime(2026, 11, 1, 7), -5, -6),
    "SIN": ("Asia/Singapore", "SGD", datetime(2026, 1, 1), 8, 8),
    "LBA": ("Europe/London", "GBP", datetime(2026, 10, 25, 1), 1, 0),
}
# Units of a currency for one euro, by month.
RATES = {
    "2026-08": {"USD": "1.0911", "GBP": "0.8623", "SGD": "1.4702"},
    "2026-09": {"USD": "1.0874", "GBP": "0.8590", "SGD": "1.4655"},
    "2026-10": {"USD": "1.0842", "GBP": "0.8571", "SGD": "1.4618"},
    "2026-11": {"USD": "1.0790", "GBP": "0.8604", "SGD": "1.4583"},
}
CARRIERS = ["Ferrovia", "BlueLine", "Nordfracht", "QuickPost", "Meridian Air"]
SUPPLIERS = [
    ("Hallberg", 12),
    ("Okafor Tools", 21),
    ("Delmar", 9),
    ("Sunrise Works", 30),
    ("Petrov & Sons", 14),
    ("Axiom", 7),
]
CATEGORIES = {
    "power tools": ["Cordless drill", "Angle grinder", "Jigsaw", "Impact driver", "Belt sander"],
    "hand tools": ["Claw hammer", "Torque wrench", "Screwdriver set", "Hand saw", "Pipe wrench"],
    "safety": ["Safety goggles", "Ear defenders", "Work gloves", "Hard hat", "Dust mask"],
    "garden": ["Hedge trimmer", "Garden hose", "Leaf rake", "Pruning shears", "Wheelbarrow"],
    "lighting": ["Work light", "Head lamp", "LED strip", "Flood light", "Extension reel"],
    "storage": ["Tool box", "Shelf unit", "Parts cabinet", "Tarpaulin", "Ratchet straps"],
}
VARIANTS = ["basic", "plus", "pro"]
CUSTOMERS = [
    f"{first} {second}"
    for first in ("Alder", "Beacon", "Crown", "Dover", "Eagle", "Fulton", "Garnet", "Hudson")
    for second in ("Builders", "Hardware", "Supply", "Interiors", "Estates")
]


@dataclass
class Product:
    sku: str
    name: str
    category: str
    grams: int
    cost: Decimal
    supplier: str
    lead_days: int


@dataclass
class Level:
    """The stock of one product in one warehouse."""

    on_hand: int
    reserved: int
    reorder_point: int

    @property
    def free(self) -> int:
        return self.on_hand - self.reserved


@dataclass
class Line:
    sku: str
    quantity: int
    price: Decimal


@dataclass
class Order:
    """The time is in UTC; prices are in the currency of the warehouse."""

    number: int
    customer: str
    warehouse: str
    placed: datetime
    status: str
    lines: list[Line]

    @property
    def currency(self) -> str:
        return WAREHOUSES[self.warehouse][1]

    @property
    def offset(self) -> int:
        """Hours by which the local time of the warehouse is ahead of UTC."""
        _, _, change, before, after = WAREHOUSES[self.warehouse]
        return before if self.placed < change else after

    @property
    def local(self) -> datetime:
        return self.placed + timedelta(hours=self.offset)

    @property
    def total(self) -> Decimal:
        return sum((line.quantity * line.price for line in self.lines), Decimal(0))


@dataclass
class Shipment:
    id: str
    order: int
    carrier: str
    shipped: datetime
    promised: date
    delivered: datetime | None
    is_held: bool = False


@dataclass
class Invoice:
    number: str
    order: int
    customer: str
    amount: Decimal
    currency: str
    issued: date
    days: int
    paid: date | None

    @property
    def due(self) -> date:
        return self.issued + timedelta(days=self.days)


@dataclass
class Depot:
    products: list[Product]
    stock: dict[str, dict[str, Level]]
    orders: list[Order]
    shipments: list[Shipment]
    invoices: list[Invoice]


def products(draw: Draw) -> list[Product]:
    kinds = [
        (category, f"{name} {variant}")
        for category, names in CATEGORIES.items()
        for name in names
        for variant in VARIANTS
    ]
    numbers = draw.some(range(100, 999), len(kinds))
    out = []
    for (category, name), number in zip(kinds, numbers):
        supplier, days = draw.one(SUPPLIERS)
        grams = draw.between(8, 180) * draw.one([10, 50, 100])
        out.append(
            Product(f"KX-0{number}", name, category, grams, Decimal(draw.between(250, 18000)) / 100, supplier, days)
        )
    return out


def stock(draw: Draw, products: list[Product]) -> dict[str, dict[str, Level]]:
    levels: dict[str, dict[str, Level]] = {}
    for warehouse in WAREHOUSES:
        levels[warehouse] = {}
        for product in products:
            if draw.chance(0.8):
                on_hand = draw.weighted([0, draw.between(1, 30), draw.between(20, 300)], [1, 2, 12])
                reserved = min(on_hand, draw.between(0, 25))
                levels[warehouse][product.sku] = Level(on_hand, reserved, draw.one([2, 4, 5, 10, 12]))
    return levels


def order(draw: Draw, number: int, placed: datetime, products: list[Product]) -> Order:
    age = (NOW - placed).days
    status = draw.weighted(
        ["new", "packed", "shipped", "delivered", "cancelled"], [6, 4, 3, 1, 1] if age < 8 else [0, 1, 3, 14, 2]
    )
    lines = [
        Line(product.sku, draw.between(1, 24), (product.cost * draw.between(120, 190) / 100).quantize(Decimal("0.01")))
        for product in draw.some(products, draw.between(1, 5))
    ]
    return Order(number, draw.one(CUSTOMERS), draw.weighted(list(WAREHOUSES), [5, 4, 3, 3]), placed, status, lines)


def shipments(draw: Draw, orders: list[Order]) -> list[Shipment]:
    out = []
    sent = [order for order in orders if order.status in ("shipped", "delivered")]
    # Three orders were shipped although they are cancelled.
    sent += draw.some([order for order in orders if order.status == "cancelled"], 3)
    for at, order in enumerate(sorted(sent, key=lambda order: order.number)):
        shipped = min(
            order.placed + timedelta(minutes=draw.between(300, 6000)), NOW - timedelta(minutes=draw.between(60, 900))
        )
        promised = shipped.date() + timedelta(days=draw.between(2, 8))
        delivered = None
        if order.status == "delivered":
            delivered = min(
                shipped + timedelta(minutes=draw.between(1200, 14000)), NOW - timedelta(minutes=draw.between(1, 50))
            )
        out.append(Shipment(f"SHP-{3001 + at}", order.number, draw.one(CARRIERS), shipped, promised, delivered))
    return out


def invoices(draw: Draw, orders: list[Order]) -> list[Invoice]:
    billed = [order for order in orders if order.status in ("shipped", "delivered", "packed")]
    # Five orders were forgotten, three were billed twice, and four invoices have a wrong amount.
    forgotten = draw.some([order for order in billed if order.status != "packed"], 5)
    billed = [order for order in billed if order not in forgotten]
    twice = draw.some(billed, 3)
    wrong = draw.some([order for order in billed if order not in twice], 4)
    out = []
    for at, order in enumerate(sorted([*billed, *twice], key=lambda order: order.number)):
        issued = min(order.local.date() + timedelta(days=draw.between(0, 3)), TODAY)
        days = draw.one([14, 30, 30, 45, 60])
        off = Decimal(draw.between(5, 400)) / 10 if order in wrong else Decimal(0)
        paid = issued + timedelta(days=draw.between(3, days + 12)) if draw.chance(0.75) else None
        out.append(
            Invoice(
                f"INV-2026-{at + 1:04}",
                order.number,
                order.customer,
                order.total + off,
                order.currency,
                issued,
                days,
                paid if paid and paid < TODAY else None,
            )
        )
    return out


SEED = 27_501


def generate(seed: int = SEED) -> Depot:
    """All records; the same at every call with a seed."""
    draw = Draw(seed)
    goods = products(draw)
    times = sorted(NOW - timedelta(minutes=draw.between(60, 60 * 24 * 105)) for _ in range(280))
    orders = [order(draw, 500101 + at, placed, goods) for at, placed in enumerate(times)]
    return Depot(goods, stock(draw, goods), orders, shipments(draw, orders), invoices(draw, orders))
