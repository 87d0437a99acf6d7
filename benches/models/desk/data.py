"""The records of the support desk, as plain values. `tools.py` presents them in the formats of its tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from draw import Draw

TODAY = date(2026, 11, 20)
NOW = datetime(2026, 11, 20, 12, 0)

TIERS = ["gold", "silver", "bronze"]
PRIORITIES = ["P1", "P2", "P3", "P4"]
STATUSES = ["open", "pending", "solved", "closed"]

# Hours to the first response, by tier and priority.
FIRST_RESPONSE = {"gold": [1, 4, 8, 24], "silver": [2, 8, 24, 48], "bronze": [4, 16, 48, 72]}
# Hours to the solution, by tier and priority.
SOLUTION = {"gold": [8, 24, 72, 168], "silver": [16, 48, 120, 240], "bronze": [24, 96, 240, 480]}


@dataclass
class Agent:
    id: int
    name: str
    team: str
    is_active: bool
    zone: str


@dataclass
class Customer:
    id: int
    name: str
    tier: str
    country: str
    seats: int
    contract_end: date
    labels: list[str]


@dataclass
class Comment:
    author: str
    at: datetime
    is_internal: bool
    body: str


@dataclass
class Ticket:
    """Times are in UTC, the first response in minutes after creation."""

    key: str
    status: str
    priority: str
    customer: int
    assignee: int | None
    subject: str
    body: str
    created: datetime
    updated: datetime
    solved: datetime | None
    first_response: int | None
    satisfaction: int | None
    tags: list[str]
    comments: list[Comment] = field(default_factory=list)


@dataclass
class Desk:
    agents: list[Agent]
    customers: list[Customer]
    tickets: list[Ticket]


AGENTS = [
    ("Ann Lee", "Billing", True, "Europe/London"),
    ("Jon Berg", "Platform", True, "Europe/Oslo"),
    ("John Bergman", "Mobile", True, "Europe/Stockholm"),
    ("Priya Nair", "Platform", True, "Asia/Kolkata"),
    ("Marco Ruiz", "Billing", False, "Europe/Madrid"),
    ("Lena Vogt", "Onboarding", True, "Europe/Berlin"),
    ("Tomas Hajek", "Mobile", True, "Europe/Prague"),
    ("Grace Owusu", "Onboarding", True, "Africa/Accra"),
    ("Ines Duarte", "Billing", True, "Europe/Lisbon"),
    ("Kenji Mori", "Platform", False, "Asia/Tokyo"),
    ("Sara Lind", "Mobile", True, "Europe/Helsinki"),
    ("Omar Haddad", "Platform", True, "Africa/Cairo"),
    ("Ruth Klein", "Onboarding", False, "Europe/Vienna"),
    ("Wei Chen", "Platform", True, "Asia/Singapore"),
]
FIRST = [
    "Cedar",
    "Blue",
    "Iron",
    "Silver",
    "North",
    "River",
    "Amber",
    "Granite",
    "Willow",
    "Harbor",
    "Falcon",
    "Copper",
]
SECOND = ["Point", "Ridge", "Mill", "Gate", "Field", "Forge", "Bay", "Cross", "Wharf", "Grove"]
FORMS = {
    "Germany": "GmbH",
    "Netherlands": "BV",
    "United Kingdom": "Ltd",
    "United States": "Inc",
    "Sweden": "AB",
    "France": "SA",
}
LABELS = ["reference", "beta", "late-payer", "partner", "education"]

# Of each topic: subjects, the text, and tags.
TOPICS = [
    (
        ["Charged twice for {month}", "Invoice for {month} is wrong", "Money back for duplicate charge"],
        "Our card was charged twice for order ORD-{order}. Please correct this.",
        ["billing", "refund"],
    ),
    (
        ["Cannot log in since the update", "Password reset mail never arrives", "SSO redirect loops"],
        "Several of our people cannot sign in. The page shows code {code}.",
        ["login"],
    ),
    (
        ["Export to CSV stops at {code} rows", "Report export is empty", "Scheduled export did not run"],
        "The export of our monthly report fails. It worked last month.",
        ["export", "reports"],
    ),
    (
        ["App crashes when opening photos", "Mobile app drains the battery", "Push messages come late"],
        "Seen on three phones with version 8.{small}. Reinstalling does not help.",
        ["mobile", "crash"],
    ),
    (
        ["How do we add {small} users", "Training for new staff", "Please move our go-live date"],
        "We would like help with this before the end of {month}.",
        ["onboarding"],
    ),
    (
        ["API answers 429 too often", "Webhook for ORD-{order} never fired", "API key stopped working"],
        "Our integration has been failing since Monday; the reference is ORD-{order}.",
        ["api"],
    ),
    (
        ["Dashboard is slow in the morning", "Time out when loading the customer list", "Search takes {small} seconds"],
        "It takes far too long for everyone in our office.",
        ["performance"],
    ),
]
MONTHS = ["August", "September", "October", "November"]
EXTRA_TAGS = ["vip", "follow-up", "regression", "docs"]
REMARKS = [
    "Thanks, we are looking into it.",
    "Could you send us a screenshot?",
    "This is still happening today.",
    "I have passed this on to the {team} team.",
    "The fix is in the next release.",
    "Any news on this?",
    "A refund was promised on the phone.",
    "We have seen the same for another customer.",
    "Please see ORD-{order} as well.",
    "It works again, thank you!",
    "Escalated, see the internal notes.",
]


def customers(draw: Draw) -> list[Customer]:
    names = [f"{first} {second}" for first in FIRST for second in SECOND]
    out = []
    for at, name in enumerate(draw.some(names, 110)):
        country = draw.one(list(FORMS))
        out.append(
            Customer(
                id=2001 + at,
                name=f"{name} {FORMS[country]}",
                tier=draw.weighted(TIERS, [4, 4, 5]),
                country=country,
                seats=draw.between(5, 90) * draw.weighted([1, 10, 30], [5, 3, 2]),
                contract_end=TODAY + timedelta(days=draw.between(-20, 400)),
                labels=draw.some(LABELS, draw.weighted([0, 1, 2], [3, 2, 1])),
            )
        )
    return out


def comments(draw: Draw, agents: list[Agent], customer: Customer, created: datetime) -> list[Comment]:
    out = []
    at = created
    for _ in range(draw.weighted([0, 1, 2, 3, 5, 8, 13], [2, 3, 4, 4, 3, 2, 1])):
        at += timedelta(minutes=draw.between(15, 60 * 30))
        agent = draw.one(agents)
        is_agent = draw.chance(0.6)
        body = draw.one(REMARKS).format(team=agent.team, order=draw.between(10000, 99999))
        author = agent.name if is_agent else f"user@{customer.name.split()[0].lower()}.example"
        out.append(Comment(author, at, is_agent and draw.chance(0.3), body))
    return [comment for comment in out if comment.at < NOW]


def ticket(draw: Draw, number: int, created: datetime, agents: list[Agent], customers: list[Customer]) -> Ticket:
    customer = draw.one(customers)
    subjects, body, tags = draw.one(TOPICS)
    words = {
        "month": draw.one(MONTHS),
        "order": draw.between(10000, 99999),
        "code": draw.between(100, 999),
        "small": draw.between(2, 40),
    }
    said = comments(draw, agents, customer, created)
    age = (NOW - created).days
    status = draw.weighted(STATUSES, [5, 3, 3, 1] if age < 30 else [1, 1, 4, 5])
    solved = None
    if status in ("solved", "closed"):
        begun = said[-1].at if said else created
        solved = min(begun + timedelta(minutes=draw.between(20, 60 * 40)), NOW - timedelta(minutes=draw.between(1, 50)))
    last = [created, *([solved] if solved else []), *(comment.at for comment in said)]
    is_done = solved is not None
    also = [tags[0], *(tag for tag in tags[1:] if draw.chance(0.6))]
    return Ticket(
        key=f"SUP-{number}",
        status=status,
        priority=draw.weighted(PRIORITIES, [2, 4, 6, 3]),
        customer=customer.id,
        assignee=draw.one(agents).id if draw.chance(0.95 if is_done else 0.8) else None,
        subject=draw.one(subjects).format(**words),
        body=body.format(**words),
        created=created,
        updated=max(last),
        solved=solved,
        first_response=draw.between(3, 60 * draw.one([1, 4, 30])) if is_done or draw.chance(0.6) else None,
        satisfaction=draw.weighted([1, 2, 3, 4, 5], [2, 2, 3, 5, 5]) if is_done and draw.chance(0.7) else None,
        tags=[*also, *draw.some(EXTRA_TAGS, draw.weighted([0, 1, 2], [4, 2, 1]))],
        comments=said,
    )


SEED = 27_264


def generate(seed: int = SEED) -> Desk:
    """All records; the same at every call with a seed."""
    draw = Draw(seed)
    agents = [Agent(11 + at, *agent) for at, agent in enumerate(AGENTS)]
    people = customers(draw)
    busy = draw.some(people, 92)
    times = sorted(NOW - timedelta(minutes=draw.between(60, 60 * 24 * 110)) for _ in range(400))
    tickets = [ticket(draw, 1001 + at, created, agents, busy) for at, created in enumerate(times)]
    return Desk(agents, people, tickets)
