"""The records of the shop, which are the same on every machine; a test compares their digest."""

from __future__ import annotations

import random
from typing import Any

Shop = dict[str, Any]

CITIES = ["Lyon", "Oslo", "Madrid", "Turin", "Graz", "Ghent", "Porto", "Leeds"]
TIERS = ["standard", "silver", "standard", "gold", "silver"]
FIRST = ("Ada Bela Cleo Dana Emil Fred Gina Hugo Iris Jana Kurt Lena Milo Nora Otto Pia Quin Rosa Sven Tara").split()
LAST = (
    "Adler Berg Costa Dubois Eriksen Fabre Garcia Holm Ibsen Jansen Keller Lopez Moreau Novak Olsen Pires Rossi Silva "
    "Toth Weber"
).split()
TITLES = ["Parcel is late", "Wrong colour", "Invoice missing", "Refund asked", "Box damaged", "Change of address"]


def customer(at: int) -> dict[str, Any]:
    name = f"{FIRST[at % 20]} {LAST[(at * 7 + at // 20) % 20]}"
    return {
        "id": f"C-{at + 1:02}",
        "name": name,
        "email": name.lower().replace(" ", ".") + "@example.org",
        "city": CITIES[at % 8],
        "tier": TIERS[at % 5],
    }


def order(at: int, draw: random.Random) -> dict[str, Any]:
    month, day = divmod(at * 90 // 240, 30)
    return {
        "id": f"O-{1001 + at}",
        "customer_id": f"C-{draw.randint(1, 40):02}",
        "status": draw.choices(["unpaid", "paid", "shipped", "cancelled"], [30, 35, 25, 10])[0],
        "placed": f"2026-{9 + month:02}-{day + 1:02}",
        "carrier": draw.choice(["DHL", "UPS", "GLS"]),
        "total": draw.randint(1500, 129999) / 100,
        "lines": [
            {"sku": f"SKU-{draw.randint(100, 199)}", "quantity": draw.randint(1, 9)} for _ in range(draw.randint(1, 4))
        ],
        "labels": [],
        "payments": [],
        "tracking": [],
    }


def ticket(at: int, draw: random.Random) -> dict[str, Any]:
    return {
        "id": f"T-{501 + at}",
        "customer_id": f"C-{draw.randint(1, 40):02}",
        "title": draw.choice(TITLES),
        "status": draw.choices(["open", "closed"], [65, 35])[0],
        "priority": draw.choice(["low", "normal", "high"]),
        "created": f"2026-{9 + at * 3 // 70:02}-{at % 28 + 1:02}",
    }


def keyed(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows}


def fresh() -> Shop:
    """The records before any effect: customers, orders and tickets by id, and lists of mails and exports."""
    draw = random.Random(50)
    return {
        "customers": keyed([customer(at) for at in range(40)]),
        "orders": keyed([order(at, draw) for at in range(240)]),
        "tickets": keyed([ticket(at, draw) for at in range(70)]),
        "mails": [],
        "exports": [],
    }


def receipt(order_id: str, count: int) -> str:
    """The number of an order's receipt; `count` is 1 for the first."""
    return f"R-{(int(order_id[2:]) * 7919) % 9000 + 1000}-{count}"


def tracking(order_id: str, count: int) -> str:
    """The tracking number of an order; `count` is 1 for the first."""
    return f"TRK-{(int(order_id[2:]) * 6007) % 90000 + 10000}-{count}"


def size(order_id: str) -> int:
    """The bytes of an order's document."""
    return (int(order_id[2:]) * 331) % 4000 + 500
